"""`s3sink run`: one sink in the foreground, on local Spark, until it is told to stop."""

from __future__ import annotations

import argparse
from pathlib import Path

from sink_job.api.errors import InvalidSpec
from sink_job.api.quantities import parse_size
from sink_job.cli.common import EXIT_CODES, add_sink, read_sink, secret_dirs

HTTP_HOST = "127.0.0.1"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "run",
        help="copy topics into objects, in the foreground, on local Spark",
        description="Copies the topics of SINK.yaml into S3 objects, exactly once, until SIGTERM or Ctrl-C. It may be "
        "killed at any moment: the next run goes on where the ledger says. Logs and progress go to standard error, "
        "the summary to standard output.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    _add_goal(parser)
    parser.add_argument("--cores", metavar="N", type=_count, help="tasks at a time (default: the CPUs, at most 4)")
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=_size,
        help="memory of all processes together, such as 3Gi (default: about 1 GB and 0.4 GB a task, more for large "
        "parts, within spec.executor.memory.min and max)",
    )
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=_address,
        help=f"serve /report, /metrics, /healthz and /readyz there (host: {HTTP_HOST}; port 0: any that is free)",
    )
    parser.add_argument(
        "--spark-properties",
        metavar="FILE",
        type=Path,
        help="run tasks in executor pods, which these properties of Spark describe (the operator writes them; "
        "${NAME} is the environment's); --memory is then the driver's alone",
    )
    parser.add_argument("--log", choices=("text", "json"), default="text", help="how log lines look (default: text)")
    parser.add_argument(
        "--progress",
        choices=("auto", "never"),
        default="auto",
        help="auto: a live screen on a terminal, else a log line now and then; never: log lines only",
    )


def _add_goal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--until-caught-up", action="store_true", help="end when what is in Kafka now is recorded")
    parser.add_argument(
        "--publish-open",
        action="store_true",
        help="close what is open, so that it becomes visible, and end: with --until-caught-up after that, alone at "
        "once, without reading on",
    )
    parser.add_argument(
        "--take-over", action="store_true", help="take ledger and topics over from the sink that owns them"
    )
    parser.add_argument(
        "--start-new-ledger", action="store_true", help="go on although objects are there and their ledger is lost"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the sink; returns 0. Raises the SinkError that ended it."""
    sink = read_sink(args.manifest)
    if reason := sink.reason_not_to_run():
        raise InvalidSpec([f"{reason} (the operator does that in a cluster; here, remove the field)"])
    secrets = secret_dirs(args, sink)

    from sink_job.driver.signals import StopSignals

    with StopSignals() as signals:
        from sink_job.coordinator.context import StopCondition
        from sink_job.driver.console import summary
        from sink_job.driver.run import Options, run_sink

        goal = StopCondition(
            until_caught_up=args.until_caught_up,
            publish_open=args.publish_open,
            take_over=args.take_over,
            start_new_ledger=args.start_new_ledger,
        )
        options = Options(
            goal=goal,
            secret_dirs=secrets,
            http=args.http,
            log=args.log,
            screen=args.progress == "auto",
            cores=args.cores,
            memory=args.memory,
            spark_properties=args.spark_properties,
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
