"""`s3sink reset-offsets`: makes a sink start from other offsets, in a new generation of its ledger."""

from __future__ import annotations

import argparse
import uuid
from typing import TYPE_CHECKING, Any

from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.errors import InvalidSpec
from sink_job.api.units.timestamps import parse_timestamp
from sink_job.cli.common import (
    EXIT_CODES,
    add_config_maps,
    add_output,
    add_sink,
    add_take_over_from,
    open_ledger_access,
    read_sink,
    secret_dirs,
    with_schema,
)

if TYPE_CHECKING:
    from sink_job.api.report import ResetReport
    from sink_job.api.sections.operator_sections import OffsetResetSpec
    from sink_job.api.spec import Sink

DESCRIPTION = """\
Makes SINK.yaml start from other offsets: starts a new generation of its ledger
and sets the committed offsets of its consumer group. The command first claims
the ledger, which fences and stops a running driver. It publishes closed objects
and discards open objects. To keep open objects, publish them before:
s3sink run SINK.yaml --publish-open

If objects contain records at or above the new offsets, --on-existing decides.
Fail: change nothing and report the first such object. NewPrefix: keep the
objects and write new ones to <topicsDir>/generation=<n>/. A failed request
changes nothing.

Without --to, the request is spec.offsets.reset of the manifest.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "reset-offsets",
        help="start from other offsets, in a new generation of the ledger",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument("--to", choices=[each.value for each in ResetTo], help="the new start position")
    parser.add_argument(
        "--on-existing",
        choices=[each.value for each in OnExisting if each is not OnExisting.OVERWRITE],
        help="handling of existing objects with records at or above the new offsets (default: Fail)",
    )
    parser.add_argument(
        "--timestamp",
        metavar="TIME",
        type=_timestamp,
        help="with --to Timestamp: a time such as 2025-11-03T10:00:00Z, or milliseconds since 1970-01-01 UTC",
    )
    parser.add_argument(
        "--offset",
        metavar="TOPIC:PARTITION:OFFSET",
        action="append",
        type=_offset,
        dest="offsets",
        help="with --to Offsets: the first offset to copy from a topic-partition; repeatable",
    )
    parser.add_argument(
        "--nonce", metavar="TEXT", help="name of this request; the same name again completes the earlier request"
    )
    add_config_maps(parser)
    add_take_over_from(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the new start offsets; returns 0. Raises the SinkError that ended the command."""
    sink = read_sink(args.manifest)
    sink, request = _requested(sink, args)
    secrets = secret_dirs(args, sink)
    sink = with_schema(args, sink)

    from sink_job.driver import logs, termination_message
    from sink_job.driver.standalone_admin import admin
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.maintenance.offset_reset import OffsetResetter

    logs.set_up(args.log)
    access = open_ledger_access(sink, secrets, take_over_from=args.take_over_from)
    with admin(KafkaProperties.of(sink.spec.kafka, secrets)) as kafka:
        report = OffsetResetter(sink, access, kafka, request).run()
    termination_message.write(report.termination_message())
    print(report.model_dump_json(indent=2) if args.output == "json" else as_text(sink.sink_id, report))
    return 0


def _requested(sink: Sink, args: argparse.Namespace) -> tuple[Sink, OffsetResetSpec]:
    """The sink with the request of the command line, validated like a request of the manifest."""
    options = {"onExisting": args.on_existing, "timestamp": args.timestamp, "partitions": args.offsets}
    if args.to is None:
        flags = {
            "--on-existing": args.on_existing,
            "--timestamp": args.timestamp,
            "--offset": args.offsets,
            "--nonce": args.nonce,
        }
        unused = [flag for flag, value in flags.items() if value is not None]
        if unused:
            raise InvalidSpec([f"--to is missing: {', '.join(unused)} has no effect without it"])
        if sink.spec.offsets.reset is None:
            raise InvalidSpec(["--to is missing, and the manifest has no spec.offsets.reset: set one of them"])
        return sink, sink.spec.offsets.reset
    from sink_job.api.parser import parse_sink

    document = sink.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    reset: dict[str, Any] = {"nonce": args.nonce or uuid.uuid4().hex, "to": args.to}
    reset |= {name: value for name, value in options.items() if value is not None}
    document["spec"]["offsets"] = {"reset": reset}
    head = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink"}
    parsed = parse_sink({**document, **head})
    assert parsed.spec.offsets.reset is not None
    return parsed, parsed.spec.offsets.reset


def _timestamp(text: str) -> int:
    try:
        return int(text) if text.isascii() and text.removeprefix("-").isdigit() else parse_timestamp(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None


def _offset(text: str) -> dict[str, Any]:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:PARTITION:OFFSET")
    return {"topic": topic, "partition": int(partition), "offset": int(offset)}


def as_text(sink_id: str, report: ResetReport) -> str:
    """The result as text."""
    lines = [
        f"{sink_id}: generation {report.generation} starts with record {report.record}; new objects are written below "
        f"{report.topics_dir or 'the root of the bucket'}"
    ]
    if report.repeated:
        lines.append("this request was already completed")
    if report.copied_again:
        lines.append(f"{report.copied_again:,} offsets in existing objects will be copied again")
    if report.skipped:
        lines.append(f"{report.skipped:,} offsets in no object will not be copied")
    for each in report.partitions:
        was = "new" if each.previous is None else f"was {each.previous:,}"
        lines.append(f"{each.topic}-{each.partition}: starts at {each.start:,} ({was})")
    return "\n".join(lines)
