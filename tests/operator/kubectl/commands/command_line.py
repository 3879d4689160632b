"""Runs one command of the plug-in with a kubectl in memory."""

from __future__ import annotations

import argparse

from s3sink_operator.kubectl import command
from tests.operator.kubectl.fake_kubectl import FakeKubectl


def parse(*words: str) -> argparse.Namespace:
    """The arguments of a command line."""
    return command.parser().parse_args(words)


def run(kubectl: FakeKubectl, *words: str) -> int:
    """The exit code of a command line."""
    args = parse(*words)
    code = args.run(kubectl, args)
    assert isinstance(code, int)
    return code
