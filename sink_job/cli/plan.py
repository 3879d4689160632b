"""`s3sink plan`: what the settings of a manifest will do to the live topics, before they are applied."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sink_job.api.errors import InvalidSpec
from sink_job.cli.common import (
    EXIT_CODES,
    OUTPUT_HELP,
    add_config_maps,
    add_secrets,
    parse_time,
    read_sink,
    schemas_of,
    secret_dirs,
    with_schema,
)

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.plan.plan import Plan
    from sink_job.plan.prices import Prices
    from sink_job.plan.sample import Sample, SampleLimits

_DESCRIPTION: Final = """\
Reads a bounded sample of the topics of SINK.yaml, runs the sink over it with a
clock of its own and a bucket in memory, and shows what a day would bring: objects
and their sizes, the delay until a record is visible, open objects, memory, S3
requests and their cost, and what late data and changing schemas do.

The command uses no consumer group, commits nothing, and sends no request to S3.
Records arrive at their timestamps. With a second manifest of the same topics the
figures of both are side by side, over the same sample.

At most 64 partitions of a topic and 256 MiB are read.
"""

_PRICES: Final = """\
file with prices as YAML: writes and reads (of 1,000 requests), storage (of a GB
and month), and optionally currency, source and date; default: the list prices of
S3 Standard in us-east-1"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "plan",
        help="show what the settings would do to the live topics; writes nothing",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("manifests", metavar="SINK.yaml", nargs="+", help="one manifest, or two to compare")
    add_secrets(parser)
    add_config_maps(parser)
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument(
        "--sample", metavar="DURATION", type=_span, default=600_000, help="time that the sample covers (default: 10m)"
    )
    amount.add_argument("--records", metavar="N", type=_count, help="number of records of each topic instead of a time")
    parser.add_argument(
        "--from",
        dest="since",
        metavar="TIME",
        type=parse_time,
        help="time of the first records, such as 2025-11-03T10:00:00Z; default: the sample ends now",
    )
    parser.add_argument("--prices", metavar="FILE", type=Path, help=_PRICES.replace("\n", " "))
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write a page with timelines and histograms")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help=OUTPUT_HELP)


def run(args: argparse.Namespace) -> int:
    """Prints the plan. Raises InvalidSpec for an invalid manifest or file of prices, and what the run of a sink
    raises."""
    sinks = [with_schema(args, read_sink(manifest)) for manifest in args.manifests]
    if len(sinks) > 2:
        raise InvalidSpec(["plan compares at most two manifests"])
    if len({_topics(sink) for sink in sinks}) > 1:
        raise InvalidSpec(["the manifests read different topics (spec.kafka): plans are compared over one sample"])
    secrets = secret_dirs(args, sinks[0])
    prices = _prices(args.prices)
    plans = _plans(args, sinks, secrets, prices)

    from sink_job.cli import plan_output
    from sink_job.plan.page import page
    from sink_job.plan.timeline import write_page

    if args.html is not None:
        write_page(args.html, page(plans))
    print(plan_output.as_json(plans) if args.output == "json" else plan_output.text(plans))
    return 0


def _topics(sink: Sink) -> tuple[object, ...]:
    kafka = sink.spec.kafka
    return tuple(kafka.topics or ()), kafka.topics_pattern, kafka.bootstrap_servers, kafka.isolation_level


def _plans(args: argparse.Namespace, sinks: Sequence[Sink], secrets: Mapping[str, Path], prices: Prices) -> list[Plan]:
    from sink_job.driver import logs
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.plan.plan import make_plan
    from sink_job.plan.sample import SampleLimits

    logs.set_up("text")
    now = time.time_ns() // 1_000_000
    if args.since is not None and args.since >= now:
        raise InvalidSpec(["--from is in the future"])
    limits = SampleLimits(until=now, span=args.sample, since=args.since, records=args.records)
    sample = _sample(sinks[0], KafkaProperties.of(sinks[0].spec.kafka, secrets), limits)
    plans = []
    with ExitStack() as stack:
        for name, sink in zip(args.manifests, sinks, strict=True):
            registry = stack.enter_context(schemas_of(sink, secrets))
            plans.append(make_plan(Path(name).name if name != "-" else sink.name, sink, sample, prices, registry))
    return plans


def _sample(sink: Sink, properties: KafkaProperties, limits: SampleLimits) -> Sample:
    from sink_job.api.enums import IsolationLevel
    from sink_job.cli.kafka_access import kafka_access, shown_progress
    from sink_job.coordinator.topic_discovery import TopicDiscovery
    from sink_job.driver.broker_check import wait_for_broker
    from sink_job.plan.sample_reader import read_sample

    wait_for_broker(properties.bootstrap_servers)
    with shown_progress() as progress, kafka_access(sink, properties, "plan", reads=True) as (admin, engine):
        assert engine is not None, "a plan reads records"
        topics = TopicDiscovery(sink, admin).discover()
        if not topics:
            raise InvalidSpec([f"spec.kafka.topicsPattern: no topic matches {sink.spec.kafka.topics_pattern}"])
        progress(f"reading {', '.join(sorted(topics)[:3])}")
        committed = sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED
        return read_sample(topics, limits, admin, engine, committed=committed)


def _prices(file: Path | None) -> Prices:
    from sink_job.plan.prices import DEFAULT, parse_prices

    if file is None:
        return DEFAULT
    try:
        return parse_prices(file.read_bytes(), str(file))
    except OSError as error:
        raise InvalidSpec([f"{file} cannot be read: {error.strerror}"]) from None


def _span(text: str) -> int:
    from sink_job.api.units.quantities import parse_duration

    try:
        span = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None
    if span < 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is shorter than 1s")
    return span


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 2**53):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
