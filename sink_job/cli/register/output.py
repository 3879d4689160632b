"""What `s3sink register` prints."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from sink_job.api.errors import SinkError
from sink_job.cli.common import failure_message, reason_of

_MAX_NAMES: Final = 10

if TYPE_CHECKING:
    from sink_job.tables.registrations.topic_table import RegistrationOutcome


def as_json(sink_id: str, results: Iterable[tuple[RegistrationOutcome, SinkError | None]]) -> str:
    """The outcomes of all tables, and their errors."""
    return json.dumps({"sinkId": sink_id, "tables": [_document(*each) for each in results]}, indent=2)


def as_text(outcome: RegistrationOutcome, *, dry_run: bool, accepts: bool = False) -> str:
    """A line for people. `accepts`: the command has accepted a change of a table."""
    if not outcome.objects and not outcome.commits:
        at = "it has no position yet" if outcome.position is None else f"its position is {outcome.position}"
        later = "; --accept takes effect with new objects: repeat the command then"
        repeats = accepts and outcome.position is None
        return f"{outcome.table}: nothing to add; {at}{_skipped(outcome)}{later if repeats else ''}"
    does = "would add" if dry_run else "added"
    new = " (new table)" if outcome.created else ""
    partitions = f"{outcome.partitions:,} partitions of " if outcome.partitions else ""
    text = (
        f"{outcome.table}{new}: {does} {partitions}{outcome.objects:,} objects of topic {outcome.topic} with "
        f"{outcome.records:,} records and {outcome.bytes:,} bytes"
    )
    if dry_run:
        last = "" if outcome.continued is None else f", the last one, and continue in {outcome.continued.table}"
        notes = f"{_columns(outcome)}{_skipped(outcome)}{_without_partition(outcome)}"
        return f"{text} in the first commit{last}{notes}"
    unit = "request" if outcome.partitions else "commit"
    commits = f"in {outcome.commits:,} {unit}{'' if outcome.commits == 1 else 's'}; its position is {outcome.position}"
    return f"{text} {commits}{_columns(outcome)}{_skipped(outcome)}{_without_partition(outcome)}"


def _columns(outcome: RegistrationOutcome) -> str:
    """The columns that a table gets which existed before."""
    if outcome.created or not outcome.columns:
        return ""
    more = f" and {len(outcome.columns) - _MAX_NAMES} others" if len(outcome.columns) > _MAX_NAMES else ""
    return f"; new columns: {', '.join(outcome.columns[:_MAX_NAMES])}{more}"


def _skipped(outcome: RegistrationOutcome) -> str:
    """What a table lacks, and what of it was found by this registration."""
    if not outcome.lacking:
        return ""
    return f"; {outcome.lacking:,} objects did not exist and are not in it, {outcome.skipped:,} of them in this run"


def _without_partition(outcome: RegistrationOutcome) -> str:
    found = ", ".join(f"{name} ({count:,})" for name, count in sorted(outcome.without_partition.items()))
    return f"; objects without a partition field: {found}" if found else ""


def _document(outcome: RegistrationOutcome, error: SinkError | None) -> dict[str, Any]:
    position = outcome.position
    return {
        "table": outcome.table,
        "topic": outcome.topic,
        "objects": outcome.objects,
        "records": outcome.records,
        "bytes": outcome.bytes,
        "commits": outcome.commits,
        "created": outcome.created,
        "newColumns": list(outcome.columns),
        "withoutPartition": dict(outcome.without_partition),
        "partitions": outcome.partitions,
        "skipped": outcome.skipped,
        "continuedIn": None if outcome.continued is None else outcome.continued.table,
        "position": None if position is None else {"generation": position.generation, "record": position.record},
        "error": None if error is None else {"reason": reason_of(error), "message": failure_message(error)},
    }
