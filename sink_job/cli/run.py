"""`s3sink run`: runs one sink in the foreground, on local Spark."""

from __future__ import annotations

import argparse
from pathlib import Path

from sink_job.api.errors import InvalidSpec
from sink_job.api.units.quantities import parse_size
from sink_job.cli import connector_position
from sink_job.cli.common import (
    EXIT_CODES,
    LOG_HELP,
    add_config_maps,
    add_sink,
    add_take_over_from,
    read_sink,
    secret_dirs,
    with_schema,
)

HTTP_HOST = "127.0.0.1"

DESCRIPTION = """\
Copies the topics of SINK.yaml to S3 with exactly-once delivery, until SIGTERM
or Ctrl-C. The process can be killed at any moment; the next run resumes from
the ledger. Logs and progress are written to standard error, the summary to
standard output.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "run",
        help="copy topics to S3, in the foreground, on local Spark",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    add_config_maps(parser)
    _add_stop_condition(parser)
    connector_position.add_arguments(parser)
    parser.add_argument(
        "--cores", metavar="N", type=_count, help="number of concurrent tasks (default: number of CPUs, at most 4)"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=_size,
        help="memory of all processes together, such as 3Gi (default: about 1 GB plus 0.4 GB for each task, more for "
        "large parts, within spec.executor.memory.min and max)",
    )
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=_address,
        help=f"serve /report, /metrics, /healthz and /readyz (default host: {HTTP_HOST}; port 0: any free port)",
    )
    parser.add_argument(
        "--spark-properties",
        metavar="FILE",
        type=Path,
        help="file with the Spark properties of executor pods, written by the operator; ${NAME} is replaced from the "
        "environment. Tasks then run in these pods, and --memory applies to the driver only",
    )
    parser.add_argument("--log", choices=("text", "json"), default="text", help=LOG_HELP)
    parser.add_argument(
        "--progress",
        choices=("auto", "never"),
        default="auto",
        help="auto: a live console on a terminal, else progress in log lines; never: no live console (default: auto)",
    )


def _add_stop_condition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--until-caught-up", action="store_true", help="stop when all records now in Kafka are recorded in the ledger"
    )
    parser.add_argument(
        "--publish-open",
        action="store_true",
        help="publish open objects and stop: with --until-caught-up after catching up, otherwise immediately and "
        "without reading more records",
    )
    parser.add_argument(
        "--take-over", action="store_true", help="take ownership of the ledger and the topics from another sink"
    )
    add_take_over_from(parser)
    parser.add_argument(
        "--start-new-ledger",
        action="store_true",
        help="start a new ledger although objects exist and their ledger is lost; records can be duplicated",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the sink; returns 0. Raises the SinkError that ended the run."""
    sink = read_sink(args.manifest)
    if reason := sink.reason_not_to_run():
        raise InvalidSpec([f"{reason} (the operator handles this field; remove it for s3sink run)"])
    from_connector = connector_position.requested(args)
    secrets = secret_dirs(args, sink)
    sink = with_schema(args, sink)
    if from_connector is not None and args.dry_run:
        return connector_position.dry_run(sink, secrets, from_connector)

    from sink_job.driver.signals import StopSignals

    with StopSignals() as signals:
        from sink_job.coordinator.context import StopCondition
        from sink_job.driver.console import summary
        from sink_job.driver.run import RunOptions, run_sink
        from sink_job.ledger.ownership import Owner

        condition = StopCondition(
            until_caught_up=args.until_caught_up,
            publish_open=args.publish_open,
            take_over=args.take_over,
            take_over_from=None if args.take_over_from is None else Owner(*args.take_over_from),
            start_new_ledger=args.start_new_ledger,
        )
        options = RunOptions(
            goal=condition,
            secret_dirs=secrets,
            http=args.http,
            log=args.log,
            screen=args.progress == "auto",
            cores=args.cores,
            memory=args.memory,
            spark_properties=args.spark_properties,
            from_connector=from_connector,
            debug=args.debug,
        )
        report = run_sink(sink, options, signals)
    print(summary(report))
    return 0


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not [HOST:]PORT")
    return host.strip("[]") or HTTP_HOST, int(port)


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tasks")
    return int(text)
