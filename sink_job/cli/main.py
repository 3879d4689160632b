"""`s3sink`: selects the command and sets the exit code.

Only the module of the selected command is imported, and a command imports its dependencies when it runs. Help, errors
in a manifest, and `simulate` therefore need neither Spark nor an S3 client.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from sink_job.api.errors import ConfigurationError
from sink_job.api.version import package_version
from sink_job.cli.common import EXIT_CODES, report_failure

COMMANDS: Final = {
    "run": "copy topics to S3, in the foreground, on local Spark",
    "verify": "verify that every record is in exactly one object",
    "compare": "compare the objects with those of another writer, such as a connector",
    "repair": "restore missing and damaged objects",
    "status": "show committed offsets, lag and open objects",
    "reset-offsets": "start from other offsets, in a new generation of the ledger",
    "discard-open": "abort open uploads and delete staged data",
    "forget-schema": "delete the ledger's copy of a registry's schema",
    "check-store": "check whether a sink can use a bucket",
    "simulate": "show which objects given records would produce; without Kafka, S3 or Spark",
    "plan": "show what the settings would do to the live topics; writes nothing",
    "convert": "convert the configuration of a Kafka Connect S3 sink to a manifest",
    "ddl": "print the statement that creates a table over the objects",
    "register": "add published objects to the Iceberg tables of spec.tables",
    "operator": "run the Kubernetes operator for S3Sinks",
}
"""The commands with their help. Each is a module with `add_parser(subparsers)` and `run(args) -> exit code`."""

_MODULES: Final = {
    "operator": ("s3sink_operator.cli", "operator"),
    "compare": ("sink_job.cli.compare.command", "job"),
    "reset-offsets": ("sink_job.cli.reset_offsets", "job"),
    "discard-open": ("sink_job.cli.discard_open", "job"),
    "forget-schema": ("sink_job.cli.forget_schema", "job"),
    "check-store": ("sink_job.cli.check_store", "job"),
    "register": ("sink_job.cli.register.command", "job,tables"),
}
"""The commands with another module than `sink_job.cli.<name>`, and the pip extra with their dependencies."""

_OF_TABLES: Final = ("pyiceberg", "sqlalchemy")
"""Packages of the extra `tables`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command in `argv` (default: the arguments of this process) and returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((each for each in arguments if not each.startswith("-")), None)
    try:
        module = _module(command) if command in COMMANDS else None
        parser = _parser(command, module)
    except ModuleNotFoundError as error:
        return report_failure(_explained(error, command), debug="--debug" in arguments)
    args = parser.parse_args(arguments)
    if module is None:
        parser.print_help()
        return 2
    try:
        code: int = module.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed the pipe; the result of the command is unknown
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        failure = _explained(error, command)
        from sink_job.driver import termination_message

        termination_message.failed(failure)
        return report_failure(failure, debug=args.debug, as_json=getattr(args, "log", "text") == "json")
    return code


def _module(command: str) -> Any:
    return import_module(_MODULES.get(command, (f"sink_job.cli.{command}", ""))[0])


def _parser(command: str | None, module: Any) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s3sink",
        description="Copies Kafka topics to S3 with exactly-once delivery, configured by an S3Sink manifest.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"s3sink {package_version()}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, about in COMMANDS.items():
        if name == command:
            module.add_parser(subparsers)
            subparsers.choices[name].add_argument(
                "--debug", action="store_true", help="show stack traces and debug logs"
            )
        else:
            subparsers.add_parser(name, help=about)
    return parser


def _explained(error: Exception, command: str | None) -> Exception:
    """The error; for a missing package, a ConfigurationError with the command to install it."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "sink_job").startswith("sink_job"):
        extra = _MODULES[command][1] if command in _MODULES else "job"
        if error.name in _OF_TABLES:  # verify --table
            extra = "job,tables"
        return ConfigurationError(f"the package {error.name} is not installed: pip install 's3sink[{extra}]'")
    return error


if __name__ == "__main__":
    sys.exit(main())
