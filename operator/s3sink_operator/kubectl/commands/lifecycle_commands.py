"""`restart`, `pause`, `resume` and `stop`: whether a driver runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from s3sink_operator.kubectl import actions
from s3sink_operator.kubectl.actions import Action
from s3sink_operator.kubectl.client import RESOURCE, Kubectl
from s3sink_operator.kubectl.commands.arguments import Commands
from s3sink_operator.kubectl.commands.run_action import add_arguments, new_nonce, run_action
from s3sink_operator.types import Json

_ABOUT: Final = {
    "restart": "restart the driver; it resumes from the ledger",
    "pause": "terminate the driver; open objects stay open",
    "resume": "start the sink again",
    "stop": "terminate the driver and publish the open objects",
}
_ACTIONS: Final[dict[str, Callable[[Json], Action]]] = {
    "restart": lambda sink: actions.restart(sink, new_nonce()),
    "pause": actions.pause,
    "resume": actions.resume,
    "stop": actions.stop,
}


def add_parsers(commands: Commands, common: argparse.ArgumentParser) -> None:
    """The four commands, which have the same arguments."""
    for name, about in _ABOUT.items():
        command = commands.add_parser(name, parents=[common], help=about, description=f"{about[0].upper()}{about[1:]}.")
        add_arguments(command)
        command.set_defaults(run=run)


def run(kubectl: Kubectl, args: argparse.Namespace) -> int:
    """Runs the command that `args` names."""
    sink = kubectl.get(RESOURCE, args.name)
    return run_action(kubectl, args, _ACTIONS[args.command](sink))
