"""`s3sink run`: runs one sink in the foreground, on local Spark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import InvalidSpec
from sink_job.api.units.quantities import parse_size
from sink_job.cli.common import (
    EXIT_CODES,
    LOG_HELP,
    add_config_maps,
    add_sink,
    add_take_over_from,
    read_sink,
    schemas_of,
    secret_dirs,
    with_schema,
)
from sink_job.driver.secret_registry import SECRETS

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.maintenance.position.start import FromConnector

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
    _add_from_connector(parser)
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
    from_connector = _requested(args)
    secrets = secret_dirs(args, sink)
    sink = with_schema(args, sink)
    if from_connector is not None and args.dry_run:
        return _dry_run(sink, secrets, from_connector)

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


def _add_from_connector(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to `s3sink run`."""
    group = parser.add_argument_group("first start in the place of a Kafka Connect connector (docs/migrating.md)")
    group.add_argument(
        "--from-connector",
        action="store_true",
        help="continue the consumer group of a connector: start behind its newest objects if their records are those "
        "in Kafka. Without effect once the sink has a ledger",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="with --from-connector: print where it would start, and change nothing"
    )
    group.add_argument(
        "--start-at-objects",
        action="store_true",
        help="with --from-connector: topic-partitions of which Kafka has forgotten the group's offset start behind "
        "their newest object",
    )
    group.add_argument(
        "--stop-connector",
        metavar="URL",
        help="with --from-connector: stop this connector first, such as http://HOST:8083/connectors/NAME. With "
        "--dry-run: print the command",
    )


def _requested(args: argparse.Namespace) -> FromConnector | None:
    """The request of the arguments. Raises InvalidSpec for contradicting ones, InvalidConnector for a wrong URL."""
    options = {
        "--dry-run": args.dry_run,
        "--start-at-objects": args.start_at_objects,
        "--stop-connector": args.stop_connector,
    }
    if not args.from_connector:
        if alone := [name for name, value in options.items() if value]:
            raise InvalidSpec([f"{alone[0]} needs --from-connector"])
        return None
    others = {
        "--start-new-ledger": args.start_new_ledger,
        "--take-over-from": args.take_over_from is not None,
        "--publish-open without --until-caught-up": args.publish_open and not args.until_caught_up,
    }
    if beside := [name for name, value in others.items() if value]:
        raise InvalidSpec([f"--from-connector and {beside[0]} exclude each other"])
    from sink_job.maintenance.position.start import FromConnector

    if args.stop_connector is not None:
        from sink_job.migrate.inputs.worker_rest import connector_url

        at = connector_url(args.stop_connector)
        SECRETS.hide([at.login, at.login.partition(":")[2]])
    return FromConnector(start_at_objects=args.start_at_objects, stop_url=args.stop_connector)


def _dry_run(sink: Sink, secrets: Mapping[str, Path], request: FromConnector) -> int:
    """Prints where the sink would start; returns 0, or 7 if it could not. Raises InvalidConnector for a connector to
    stop that is not the sink's, and the errors of Kafka, the store and the worker."""
    from sink_job.cli.kafka_access import kafka_access, shown_progress
    from sink_job.driver import logs
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.maintenance.position.connector_check import check_connector
    from sink_job.maintenance.position.finder import find_position
    from sink_job.maintenance.position.output import output
    from sink_job.maintenance.position.start import has_ledger
    from sink_job.s3 import S3Settings, connect

    logs.set_up("text")
    settings = S3Settings.of(sink.spec, secrets, reads_only=True)
    properties = KafkaProperties.of(sink.spec.kafka, secrets)
    s3 = connect(settings)
    s3.check_access()
    if has_ledger(sink, s3):
        print(f"The sink {sink.sink_id} has a ledger: it continues there, and --from-connector has no effect.")
        return 0
    if request.stop_url is not None:
        check_connector(request.stop_url, sink)
    with (
        schemas_of(sink, secrets) as schemas,
        shown_progress() as progress,
        kafka_access(sink, properties, "position", reads=True) as (admin, engine),
    ):
        assert engine is not None
        position = find_position(
            sink,
            s3,
            settings,
            admin,
            engine,
            registry=schemas,
            start_at_objects=request.start_at_objects,
            report=progress,
        )
    print("\n".join(output(sink, position, request.stop_url)))
    return position.exit_code


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
