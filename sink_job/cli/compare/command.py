"""`s3sink compare`: compares the objects of a sink with those of another writer. Read-only."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import InvalidSpec
from sink_job.cli.common import OUTPUT_HELP, add_sink, read_sink, secret_dirs

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.api.topic_partition import TopicPartition
    from sink_job.cli.compare.output import ComparisonReport
    from sink_job.compare.location import Location

THREADS = 8
"""Number of groups of objects that are read at the same time."""

DESCRIPTION = """\
Compares the objects of SINK.yaml with those that another writer of the same
topics, such as a Kafka Connect S3 sink, has written to another directory. Both
may be running: objects take part that begin at an offset at which both have
arrived. The command needs no Kafka.

Without --deep, keys are compared, and the sink's objects with its ledger: an
object in both directories with the same topic, path, partition and first offset
in its key is equal. The key of an object has no last offset, so the records of
the last object of a path are compared with --deep only.

With --deep, the command reads all of these objects. Records of JSON are equal if
their values are (the order of keys and white space do not count); rows of Avro
and Parquet if their fields and types are; others byte by byte.
"""

EXIT_CODES = """\
exit codes:
   0  equal
   5  the sink lacks records: no object of it has the offset or the record, an
      object of its ledger is not in the bucket, or is damaged
   6  different, the sink lacks no records: keys, values, types, the order, or
      records that only the sink has or that are doubled
   7  configuration error: no ledger, or nothing to compare
   1, 2, 75  as for s3sink run: unexpected error, invalid manifest or command
      line, transient error
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "compare",
        help="compare the objects with those of another writer, such as a connector",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument(
        "--with",
        metavar="s3://BUCKET/DIRECTORY",
        required=True,
        type=_location,
        dest="location",
        help="topics.dir of the other writer. Another bucket has the region, endpoint and credentials of the sink's",
    )
    parser.add_argument(
        "--partition", metavar="TOPIC-PARTITION", type=_partition, help="compare this topic-partition only"
    )
    parser.add_argument(
        "--from", metavar="OFFSET", type=_offset, dest="start", help="compare objects that begin at or after it"
    )
    parser.add_argument("--to", metavar="OFFSET", type=_offset, dest="end", help="compare objects that begin before it")
    parser.add_argument("--deep", action="store_true", help="read the objects and compare their records")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help=OUTPUT_HELP)


def _location(text: str) -> Location:
    from sink_job.compare.location import Location

    try:
        return Location.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _partition(text: str) -> TopicPartition:
    from sink_job.api.topic_partition import TopicPartition

    try:
        return TopicPartition.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not an offset")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Prints the results and findings; returns 0, or the exit code of the findings."""
    if None not in (args.start, args.end) and args.start >= args.end:
        raise InvalidSpec([f"--from {args.start} is not below --to {args.end}"])
    sink = read_sink(args.manifest)
    secrets = secret_dirs(args, sink)
    location: Location = args.location
    names = sink.spec.s3
    if (location.bucket, location.directory) == (names.bucket, names.topics_dir):
        raise InvalidSpec([f"--with {location} is the directory of the sink itself (spec.s3.topicsDir)"])

    from sink_job.cli.compare import output

    found = _compare(sink, secrets, args)
    if args.output == "json":
        print(output.as_json(found))
    else:
        output.show(found)
    return output.exit_code_of(found)


def _compare(sink: Sink, secrets: Mapping[str, Path], args: argparse.Namespace) -> ComparisonReport:
    from sink_job.api.sections.format_section import BytesSpec
    from sink_job.cli.compare.output import ComparisonReport
    from sink_job.cli.kafka_access import shown_progress
    from sink_job.compare.compared_objects import read_other_side, read_sink_side
    from sink_job.compare.comparison import ComparisonContext, compare_sides
    from sink_job.compare.group_comparison import RecordComparer
    from sink_job.compare.partition_keys import Window
    from sink_job.driver import logs
    from sink_job.engine.thread_pools import pool
    from sink_job.s3 import S3Settings, connect

    logs.set_up("text")
    location: Location = args.location
    names = sink.spec.s3
    of_other = sink.spec.model_copy(update={"s3": names.model_copy(update={"bucket": location.bucket})})
    s3, other_s3 = (connect(S3Settings.of(spec, secrets, reads_only=True)) for spec in (sink.spec, of_other))
    s3.check_access()
    other_s3.check_access()
    own = f"{names.topics_dir}{names.directory_delimiter}"
    separator = (sink.spec.format.bytes or BytesSpec()).separator.encode()
    with shown_progress() as progress, pool(THREADS, "s3sink-compare") as threads:
        side = read_sink_side(sink, s3, progress)
        is_same = location.bucket == names.bucket and bool(names.topics_dir)
        other = read_other_side(location, other_s3, side, progress, own=own if is_same else "")
        context = ComparisonContext(
            sink=side,
            other=other,
            other_url=str(location),
            window=Window(args.partition, args.start, args.end),
            records=RecordComparer(s3, other_s3, separator) if args.deep else None,
            pool=threads,
            report=progress,
        )
        partitions = compare_sides(context)
    return ComparisonReport(
        sink_id=sink.sink_id,
        bucket=names.bucket,
        other=str(location),
        other_bucket=location.bucket,
        deep=args.deep,
        ignored=other.ignored,
        partitions=tuple(partitions),
    )
