"""`s3sink operator`, as the program `s3sink` finds it: the flags without what they need to run."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    from s3sink_operator.main import add_arguments

    about = "Runs S3Sinks in Kubernetes: watches them, keeps their drivers, tells in their status what goes on."
    add_arguments(subparsers.add_parser("operator", description=about))


def run(args: argparse.Namespace) -> int:
    """Runs the operator until a signal; returns its exit code."""
    from s3sink_operator import main

    return main.run(args)
