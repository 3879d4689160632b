"""`explain`: the settings of a sink, and whether its spec or the operator sets them."""

from __future__ import annotations

import argparse

from s3sink_operator.kubectl import effective_settings
from s3sink_operator.kubectl.client import RESOURCE, Kubectl
from s3sink_operator.kubectl.commands.arguments import Commands, add_name, add_output, prints_json
from s3sink_operator.kubectl.console import fail, write, write_json
from sink_job.api.errors import InvalidSpec


def add_parser(commands: Commands, common: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    command = commands.add_parser(
        "explain", parents=[common], help="show the settings of a sink and whether its spec or the operator sets them"
    )
    add_name(command)
    add_output(command)
    command.set_defaults(run=run)


def run(kubectl: Kubectl, args: argparse.Namespace) -> int:
    """Shows the settings."""
    sink = kubectl.get(RESOURCE, args.name)
    try:
        if prints_json(args):
            write_json(effective_settings.as_data(sink))
        else:
            write(effective_settings.explanation(sink))
    except InvalidSpec as error:
        return fail(f"{args.name}: the spec is invalid: {error}")
    return 0
