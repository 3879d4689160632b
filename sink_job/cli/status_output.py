"""The output of `s3sink status`: from ledger and Kafka or from a report, as a table or JSON.

Offsets are Kafka offsets, times are in ms since 1970-01-01 UTC, sizes in bytes. Unknown values are absent in JSON and
`?` in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from sink_job.api.report import Report, TableReport
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.driver.console import duration, known, size
from sink_job.json.typed.field_list import FieldType, field_list_lines
from sink_job.ledger.state import LedgerState, OpenObject, committable_offsets
from sink_job.records.batch import DEAD_LETTERS

SHOWN_PATHS = 3
MAX_CONSISTENT_READS = 5
"""Maximum number of reads of ledger and group offsets until both are consistent."""


class Open(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The open objects of a topic-partition. `bytes` are encoded and uncompressed. `oldest`: time of the first opening.
    `paths`: the first SHOWN_PATHS paths."""

    count: int
    bytes: int | None = None
    oldest: int | None = None
    paths: tuple[str, ...] = ()


class PartitionStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a topic-partition.

    `committed`: the first offset that is not in a visible object. `next`: the first offset that has not been read.
    `end`: the log end offset. `group`: the committed offset of the consumer group.
    """

    topic: str
    partition: int
    committed: int
    next: int
    end: int | None
    lag: int | None
    group: int | None
    open: Open


class TableLine(msgspec.Struct, frozen=True, rename="camel"):
    """A table of a running job. `record`: the record of the ledger up to which it has all objects. `missing`: published
    objects that it lacks, `behind`: since when, in ms. `error`: why nothing is added. `skipped`: objects that did not
    exist and were left out."""

    table: str
    record: int | None
    missing: int
    behind: int
    error: str | None
    skipped: int = 0


class StatusSummary(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a sink.

    `record`: number of the last record in the ledger, None without a ledger. `clock`: time of the last round.
    `pending`: closed objects without a recorded publication. `state`: the state of a running job. `dropped`: invalid
    records dropped since its start; `dead_letters`: those in dead-letter objects. `unknown`: the reason why Kafka did
    not respond. `generation`: 1 plus the number of offset resets. `topics_dir`: the directory of objects after a reset.
    `schemas`: the inferred schema of each topic, as a field list. `recreated`: topics that were deleted and created
    again; the log end offset of such a topic cannot be compared with the offsets in the ledger. `tables`: those of a
    running job.
    """

    sink_id: str
    now: int
    record: int | None
    clock: int | None
    pending: int | None
    state: str | None
    unknown: str | None
    partitions: tuple[PartitionStatus, ...]
    dropped: int | None = None
    dead_letters: int | None = None
    generation: int = 1
    topics_dir: str | None = None
    schemas: Mapping[str, tuple[FieldType, ...]] | None = None
    recreated: tuple[str, ...] = ()
    tables: tuple[TableLine, ...] = ()


def of_ledger(
    sink: Sink,
    state: LedgerState,
    *,
    ends: Mapping[TopicPartition, int],
    group: Mapping[TopicPartition, int],
    unknown: str | None,
    now: int,
    schemas: Mapping[str, tuple[FieldType, ...]] | None = None,
    recreated: Collection[str] = (),
) -> StatusSummary:
    """The status from the ledger's state, the log end offsets and the group offsets. Missing offsets are unknown, as
    is the lag of `recreated` topics."""
    offsets = committable_offsets(state)
    partitions = []
    for tp in sorted(offsets):
        end = ends.get(tp)
        p = state.partitions[str(tp)]
        partitions.append(
            PartitionStatus(
                topic=tp.topic,
                partition=tp.partition,
                committed=offsets[tp],
                next=p.next,
                end=end,
                lag=None if end is None or tp.topic in recreated else max(0, end - offsets[tp]),
                group=group.get(tp),
                open=_open(p.open),
            )
        )
    return StatusSummary(
        sink_id=sink.sink_id,
        now=now,
        record=state.number or None,
        clock=state.clock or None,
        pending=sum(1 for o in state.pending.values() if o.first >= offsets[o.topic_partition]),
        state=None,
        unknown=unknown,
        partitions=tuple(partitions),
        generation=state.generation,
        topics_dir=state.topics_dir,
        schemas=schemas,
        recreated=tuple(sorted(recreated)),
    )


def of_report(report: Report) -> StatusSummary:
    """The status from the report of a running job. It has the number of open objects and no paths."""
    return StatusSummary(
        sink_id=report.sink_id,
        now=report.now,
        record=report.round,
        clock=None,
        pending=None,
        state=report.state.value,
        unknown=None,
        partitions=tuple(
            PartitionStatus(
                topic=p.topic,
                partition=p.partition,
                committed=p.committed,
                next=p.next,
                end=p.end,
                lag=p.lag,
                group=None,
                open=Open(p.open_objects),
            )
            for p in report.partitions
        ),
        dropped=report.totals.dropped,
        dead_letters=report.totals.dead_letters,
        tables=tuple(_table_line(each) for each in report.tables),
    )


def _table_line(report: TableReport) -> TableLine:
    error = None if report.reason is None else f"{report.reason}: {report.message}"
    return TableLine(report.table, report.record, report.lag_objects, report.lag_ms, error, report.skipped_objects)


def settled(read: Callable[[], StatusSummary]) -> StatusSummary:
    """A consistent status: calls `read` until ledger and group offsets agree, or differ without a new ledger record.

    `read` reads the ledger before the group offsets, and a running sink may commit between the two.
    """
    found = read()
    for _ in range(MAX_CONSISTENT_READS - 1):
        previous = found
        if not _inconsistent(previous) or (found := read()).record == previous.record:
            break
    return found


def _inconsistent(status: StatusSummary) -> list[PartitionStatus]:
    """The topic-partitions with a group offset other than the committed offset."""
    return [p for p in status.partitions if p.group is not None and p.group != p.committed]


def as_json(status: StatusSummary) -> str:
    """The status as one JSON document."""
    return msgspec.json.format(msgspec.json.encode(status), indent=2).decode()


def as_table(status: StatusSummary) -> str:
    """The status as a table."""
    lines = [_headline(status)]
    if status.partitions:
        lines += ["", *_table(status)]
    if status.tables:
        lines += ["", *(_table_text(each) for each in status.tables)]
    lines += [
        f"{p.topic}-{p.partition}: consumer group offset is {p.group:,} but should be {p.committed:,}; the next run "
        "will correct it"
        for p in _inconsistent(status)
    ]
    lines += [
        f"{topic}: deleted and created again, so its lag is unknown; the next run ends with TopicRecreated. Reset the "
        "sink's offsets: s3sink reset-offsets --to Earliest --on-existing NewPrefix"
        for topic in status.recreated
    ]
    for topic, fields in (status.schemas or {}).items():
        lines += [
            "",
            f"{topic}: inferred schema, as a field list for spec.format.schema.text:",
            *field_list_lines(fields),
        ]
    return "\n".join(lines)


def _table_text(table: TableLine) -> str:
    lag = f"lacks {table.missing:,} objects for {duration(table.behind)}" if table.missing else "has all objects"
    at = "" if table.record is None else f", up to record {table.record:,}"
    skipped = f", {table.skipped:,} objects did not exist and were left out" if table.skipped else ""
    return f"table {table.table}: {lag}{at}{skipped}{'' if table.error is None else f'; {table.error}'}"


def _headline(status: StatusSummary) -> str:
    if status.record is None and status.state is None:
        return f"{status.sink_id}: no ledger yet: this sink has not run"
    words = [status.sink_id]
    if status.state:
        words.append(status.state)
    words.append(f"record {known(status.record)}")
    if status.generation > 1:
        words.append(f"generation {status.generation} below {status.topics_dir or 'the root of the bucket'}")
    if status.clock is not None:
        words.append(f"last round {duration(status.now - status.clock)} ago")
    if status.pending:
        words.append(f"{status.pending:,} objects being published")
    if status.dropped:
        words.append(f"{status.dropped:,} dropped")
    if status.dead_letters:
        words.append(f"{status.dead_letters:,} dead letters")
    lags = [p.lag for p in status.partitions]
    words.append(f"lag {known(None if None in lags else sum(lag for lag in lags if lag is not None))}")
    return "  ".join(words)


def _table(status: StatusSummary) -> list[str]:
    header = ("TOPIC-PARTITION", "COMMITTED", "NEXT", "END", "LAG", "OPEN", "BYTES", "AGE", "PATHS")
    rows = [_row(p, status.now) for p in status.partitions]
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return [_line(row, widths) for row in (header, *rows)]


def _row(p: PartitionStatus, now: int) -> Sequence[str]:
    return (
        f"{p.topic}-{p.partition}",
        known(p.committed),
        known(p.next),
        known(p.end),
        known(p.lag),
        known(p.open.count),
        "" if p.open.bytes is None else size(p.open.bytes),
        "" if p.open.oldest is None else duration(now - p.open.oldest),
        ", ".join("(dead letters)" if path == DEAD_LETTERS else path for path in p.open.paths)
        + (" …" if 0 < len(p.open.paths) < p.open.count else ""),
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """One line: names aligned left, numbers aligned right, paths unaligned."""
    middle = [cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:-1], strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *middle, cells[-1]]).rstrip()


def _open(objects: Sequence[OpenObject]) -> Open:
    if not objects:
        return Open(0)
    return Open(
        count=len(objects),
        bytes=sum(o.size for o in objects),
        oldest=min(o.state.opened_at for o in objects),
        paths=tuple(o.path for o in objects[:SHOWN_PATHS]),
    )
