"""`s3sink discard-open`: gives up what is open, so that nothing unfinished is left in the bucket."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sink_job.cli.common import EXIT_CODES, add_output, add_sink, open_ledger_access, read_sink, secret_dirs

if TYPE_CHECKING:
    from sink_job.maintenance.discard_open import DiscardReport

DESCRIPTION = """\
Gives up the open objects of SINK.yaml: aborts their uploads and deletes what is
staged of them. Takes the ledger first, so a driver that still runs is fenced
and ends. Visible objects are left alone, and what was named for publishing
becomes visible before. The records in open objects are in no object then; a
later run of the sink copies them from Kafka, as long as Kafka holds them. May
be run again at any time.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "discard-open",
        help="give up what is open, so that nothing unfinished is left in the bucket",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Prints what was given up; returns 0. Raises the SinkError that ended it."""
    sink = read_sink(args.manifest)
    secrets = secret_dirs(args, sink)

    import msgspec

    from sink_job.driver import logs, termination_message
    from sink_job.maintenance.discard_open import discard_open

    logs.set_up(args.log)
    found = discard_open(open_ledger_access(sink, secrets))
    text = as_text(sink.sink_id, found)
    termination_message.write(text.splitlines()[0])
    print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() if args.output == "json" else text)
    return 0


def as_text(sink_id: str, found: DiscardReport) -> str:
    """What was given up, for people: the sum, then a line for each topic-partition."""
    if found.record is None:
        return f"{sink_id}: there is no ledger, so nothing is open"
    published = f"; {found.published:,} objects that were promised are visible now" if found.published else ""
    if not found.objects:
        return f"{sink_id}: nothing was open{published}"
    lines = [f"{sink_id}: gave up {found.objects:,} open objects with {found.records:,} records{published}"]
    lines += [
        f"{p.topic}-{p.partition}: {p.records:,} records in {p.objects:,} objects; a later run goes on at "
        f"{p.committed:,}"
        for p in found.partitions
    ]
    return "\n".join(lines)
