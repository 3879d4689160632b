"""`skip`: pass over records at which the sink stops."""

from __future__ import annotations

import argparse

from s3sink_operator.kubectl import actions
from s3sink_operator.kubectl.client import RESOURCE, Kubectl
from s3sink_operator.kubectl.commands.arguments import Commands
from s3sink_operator.kubectl.commands.run_action import add_arguments, run_action


def add_parser(commands: Commands, common: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    command = commands.add_parser(
        "skip",
        parents=[common],
        help="pass over a record at which the sink stops; the driver restarts",
        description="Pass over records, whether they are valid or not: they are in no object, and no dead letters. The "
        "message of a data error names the record. What the sink has read already stays as it is.",
    )
    add_arguments(command)
    command.add_argument("records", metavar="TOPIC-PARTITION@OFFSET", nargs="+", help="such as flights-0@42")
    command.set_defaults(run=run)


def run(kubectl: Kubectl, args: argparse.Namespace) -> int:
    """Adds the records to the annotation."""
    return run_action(kubectl, args, actions.skip(kubectl.get(RESOURCE, args.name), args.records))
