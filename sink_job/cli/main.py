"""`s3sink`: picks the command and turns how it ends into an exit code, here and nowhere else.

Only the module of the command that is asked for is imported, and a command imports what it needs when it runs: help, a
wrong manifest and `simulate` answer at once, without Spark or an S3 client.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from sink_job.api.errors import ConfigurationError
from sink_job.cli.common import EXIT_CODES, report_failure

COMMANDS: Final = {
    "run": "copy topics into objects, in the foreground, on local Spark",
    "verify": "prove that every record is in exactly one object",
    "status": "committed offsets, lag and open objects",
    "reset-offsets": "start elsewhere: a new generation of the ledger",
    "discard-open": "give up what is open, so that nothing unfinished is left in the bucket",
    "check-store": "check whether a sink can use a bucket",
    "simulate": "what these settings would do to these records; no Kafka, S3 or Spark",
    "operator": "run S3Sinks in Kubernetes: watch them, keep their drivers, tell in their status",
}
"""The commands and what each is for. Each is a module with `add_parser(subparsers)` and `run(args) -> exit code`."""

_ELSEWHERE: Final = {
    "operator": ("s3sink_operator.cli", "operator"),
    "reset-offsets": ("sink_job.cli.reset_offsets", "job"),
    "discard-open": ("sink_job.cli.discard_open", "job"),
    "check-store": ("sink_job.cli.check_store", "job"),
}
"""The commands whose module is not `sink_job.cli.<name>`, and the extra that brings what they need."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command in `argv` (default: of this process) and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    asked = next((word for word in words if not word.startswith("-")), None)
    try:
        module = _module(asked) if asked in COMMANDS else None
        parser = _parser(asked, module)
    except ModuleNotFoundError as error:
        return report_failure(_known(error, asked), debug="--debug" in words)
    args = parser.parse_args(words)
    if module is None:
        parser.print_help()
        return 2
    try:
        code: int = module.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # who read our output has read enough; what the command would have said is not known
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        known = _known(error, asked)
        from sink_job.driver import termination_message

        termination_message.failed(known)
        return report_failure(known, debug=args.debug, as_json=getattr(args, "log", "text") == "json")
    return code


def _module(command: str) -> Any:
    return import_module(_ELSEWHERE.get(command, (f"sink_job.cli.{command}", ""))[0])


def _parser(asked: str | None, module: Any) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s3sink",
        description="Kafka topics into S3 objects, exactly once, from one S3Sink manifest.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"s3sink {_version()}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, about in COMMANDS.items():
        if name == asked:
            module.add_parser(subparsers)
            subparsers.choices[name].add_argument("--debug", action="store_true", help="show where an error comes from")
        else:
            subparsers.add_parser(name, help=about)
    return parser


def _known(error: Exception, asked: str | None) -> Exception:
    """The error, or what a missing package means to the person who installed us."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "sink_job").startswith("sink_job"):
        extra = _ELSEWHERE[asked][1] if asked in _ELSEWHERE else "job"
        return ConfigurationError(f"the package {error.name} is not installed: pip install 's3sink[{extra}]'")
    return error


def _version() -> str:
    try:
        return version("s3sink")
    except PackageNotFoundError:
        return "0"


if __name__ == "__main__":
    sys.exit(main())
