"""`s3sink discard-open`: aborts open uploads and deletes staged data."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sink_job.cli.common import (
    EXIT_CODES,
    add_output,
    add_sink,
    add_take_over_from,
    open_ledger_access,
    read_sink,
    secret_dirs,
)

if TYPE_CHECKING:
    from sink_job.maintenance.discard_open import DiscardReport

DESCRIPTION = """\
Discards the open objects of SINK.yaml: aborts their uploads and deletes their
staged data. The command first claims the ledger, which fences and stops a
running driver. It publishes closed objects and never changes visible objects.

Records in discarded objects are in no object. A later run copies them again if
Kafka still has them. The command can be repeated at any time.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "discard-open",
        help="abort open uploads and delete staged data",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    add_take_over_from(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the discarded objects; returns 0. Raises the SinkError that ended the command."""
    sink = read_sink(args.manifest)
    secrets = secret_dirs(args, sink)

    import msgspec

    from sink_job.driver import logs, termination_message
    from sink_job.maintenance.discard_open import discard_open

    logs.set_up(args.log)
    found = discard_open(open_ledger_access(sink, secrets, take_over_from=args.take_over_from))
    text = as_text(sink.sink_id, found)
    termination_message.write(text.splitlines()[0])
    print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() if args.output == "json" else text)
    return 0


def as_text(sink_id: str, found: DiscardReport) -> str:
    """The result as text: the totals, then one line for each topic-partition."""
    if found.record is None:
        return f"{sink_id}: no ledger and no open objects"
    published = f"; published {found.published:,} closed objects" if found.published else ""
    if not found.objects:
        return f"{sink_id}: no open objects{published}"
    lines = [f"{sink_id}: discarded {found.objects:,} open objects with {found.records:,} records{published}"]
    lines += [
        f"{p.topic}-{p.partition}: discarded {p.objects:,} objects with {p.records:,} records; the next run resumes "
        f"from offset {p.committed:,}"
        for p in found.partitions
    ]
    return "\n".join(lines)
