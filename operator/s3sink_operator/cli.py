"""The command `s3sink operator`. The imports of the operator are deferred until it runs."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    from s3sink_operator.command_line import add_arguments

    about = "Runs the operator: watches S3Sinks, manages their drivers and writes their status."
    add_arguments(subparsers.add_parser("operator", description=about))


def run(args: argparse.Namespace) -> int:
    """Runs the operator until a signal. Returns its exit code."""
    from s3sink_operator import main

    return main.run(args)
