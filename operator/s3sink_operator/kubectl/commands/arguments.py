"""Arguments that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from s3sink_operator.kubectl.client import Kubectl

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run = Callable[[Kubectl, argparse.Namespace], int]


def add_name(command: argparse.ArgumentParser) -> None:
    """The name of the sink."""
    command.add_argument("name", metavar="NAME")


def add_output(command: argparse.ArgumentParser) -> None:
    """The format of the output."""
    command.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")


def prints_json(args: argparse.Namespace) -> bool:
    """Whether the output is JSON."""
    return bool(args.output == "json")
