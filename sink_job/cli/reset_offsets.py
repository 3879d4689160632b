"""`s3sink reset-offsets`: starts a sink elsewhere, as a new generation of its ledger."""

from __future__ import annotations

import argparse
import uuid
from typing import TYPE_CHECKING, Any

from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.errors import InvalidSpec
from sink_job.cli.common import EXIT_CODES, add_output, add_sink, open_ledger_access, read_sink, secret_dirs

if TYPE_CHECKING:
    from sink_job.api.operator_sections import OffsetResetSpec
    from sink_job.api.report import ResetReport
    from sink_job.api.spec import Sink

DESCRIPTION = """\
Starts SINK.yaml elsewhere: a new generation of its ledger begins, and the
group's offsets are set to where it starts. Takes the ledger first, so a driver
that still runs is fenced and ends. What was named for publishing becomes
visible before; what is open is given up, so publish it first where it should
stay (s3sink run SINK.yaml --publish-open).

Where objects hold records at or above the new offsets, Fail changes nothing and
names the first of them; NewPrefix leaves them alone and copies to
<topicsDir>/generation=<n>/ from now on. A request that cannot be carried out
changes nothing.

Without --to the request is the manifest's spec.offsets.reset.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "reset-offsets",
        help="start elsewhere: a new generation of the ledger",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument("--to", choices=[each.value for each in ResetTo], help="where to start")
    parser.add_argument(
        "--on-existing",
        choices=[each.value for each in OnExisting if each is not OnExisting.OVERWRITE],
        help="what happens where objects hold records at or above the new offsets (default: Fail)",
    )
    parser.add_argument("--timestamp", metavar="MS", type=int, help="with --to Timestamp: milliseconds since 1970")
    parser.add_argument(
        "--offset",
        metavar="TOPIC:PARTITION:OFFSET",
        action="append",
        type=_offset,
        dest="offsets",
        help="with --to Offsets: the first offset to copy of a topic-partition; may be given again",
    )
    parser.add_argument(
        "--nonce", metavar="TEXT", help="a name for this request: the same one again only finishes what it began"
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Prints where the sink starts from now on; returns 0. Raises the SinkError that ended it."""
    sink = read_sink(args.manifest)
    sink, request = _requested(sink, args)
    secrets = secret_dirs(args, sink)

    from sink_job.driver import logs, termination_message
    from sink_job.driver.standalone_admin import admin
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.maintenance.offset_reset import OffsetResetter

    logs.set_up(args.log)
    hands = open_ledger_access(sink, secrets)
    with admin(KafkaProperties.of(sink.spec.kafka, secrets)) as kafka:
        report = OffsetResetter(sink, hands, kafka, request).run()
    termination_message.write(report.termination_message())
    print(report.model_dump_json(indent=2) if args.output == "json" else as_text(sink.sink_id, report))
    return 0


def _requested(sink: Sink, args: argparse.Namespace) -> tuple[Sink, OffsetResetSpec]:
    """The sink with the request of the command line, read and checked as a manifest's."""
    given = {"onExisting": args.on_existing, "timestamp": args.timestamp, "partitions": args.offsets}
    if args.to is None:
        alone = [name for name, value in given.items() if value is not None]
        if alone:
            raise InvalidSpec([f"--to is missing: {', '.join(alone)} says how, and not where to start"])
        if sink.spec.offsets.reset is None:
            raise InvalidSpec(["--to is missing, and the manifest has no spec.offsets.reset: say where to start"])
        return sink, sink.spec.offsets.reset
    from sink_job.api.spec import parse_sink

    document = sink.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    reset: dict[str, Any] = {"nonce": args.nonce or uuid.uuid4().hex, "to": args.to}
    reset |= {name: value for name, value in given.items() if value is not None}
    document["spec"]["offsets"] = {"reset": reset}
    head = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink"}
    read = parse_sink({**document, **head})
    assert read.spec.offsets.reset is not None
    return read, read.spec.offsets.reset


def _offset(text: str) -> dict[str, Any]:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:PARTITION:OFFSET")
    return {"topic": topic, "partition": int(partition), "offset": int(offset)}


def as_text(sink_id: str, report: ResetReport) -> str:
    """What came of it, for people."""
    lines = [
        f"{sink_id}: generation {report.generation} begins with record {report.record}; objects go below "
        f"{report.topics_dir or 'the bucket itself'}"
    ]
    if report.repeated:
        lines.append("this request was carried out before; nothing is left to do of it")
    if report.copied_again:
        lines.append(f"{report.copied_again:,} offsets that are in objects of before are copied again")
    if report.skipped:
        lines.append(f"{report.skipped:,} offsets that are in no object are not copied")
    for each in report.partitions:
        was = "new" if each.previous is None else f"was {each.previous:,}"
        lines.append(f"{each.topic}-{each.partition}: starts at {each.start:,} ({was})")
    return "\n".join(lines)
