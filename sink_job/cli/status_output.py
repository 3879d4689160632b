"""How far a sink is, as `s3sink status` tells it: made from ledger and Kafka or from a report, shown as table or JSON.

Offsets are Kafka offsets, times ms since the epoch, sizes bytes. What is not known is absent, and `?` in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sink_job.api.report import Report
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.driver.console import duration, known, size
from sink_job.ledger.state import LedgerState, OpenObject, committable_offsets

SHOWN_PATHS = 3
MAX_CONSISTENT_READS = 5
"""How often ledger and group are looked at while a running sink is between its record and its commit."""


class Open(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The open objects of a topic-partition; `bytes` are encoded and uncompressed, `paths` the first few."""

    count: int
    bytes: int | None = None
    oldest: int | None = None
    paths: tuple[str, ...] = ()


class PartitionStatus(msgspec.Struct, frozen=True, rename="camel"):
    """`committed`: the first offset that is not in a visible object; `next`: the first not read; `end`: of the log;
    `group`: the consumer group's offset."""

    topic: str
    partition: int
    committed: int
    next: int
    end: int | None
    lag: int | None
    group: int | None
    open: Open


class SinkStatus(msgspec.Struct, frozen=True, rename="camel"):
    """All of it. `record` is the last one in the ledger (none: there is no ledger), `pending` the objects named but
    not known to be visible, `state` a running job's, `dropped` the refused records that it let go since its start,
    `unknown` why Kafka did not answer. `generation` counts the resets of the offsets, from 1; `topics_dir` is where a
    reset has put the objects since."""

    sink_id: str
    now: int
    record: int | None
    clock: int | None
    pending: int | None
    state: str | None
    unknown: str | None
    partitions: tuple[PartitionStatus, ...]
    dropped: int | None = None
    generation: int = 1
    topics_dir: str | None = None


def of_ledger(
    sink: Sink,
    state: LedgerState,
    *,
    ends: Mapping[TopicPartition, int],
    group: Mapping[TopicPartition, int],
    unknown: str | None,
    now: int,
) -> SinkStatus:
    """From the ledger's state and what Kafka said of log ends and group offsets, as far as it did."""
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
                lag=None if end is None else max(0, end - offsets[tp]),
                group=group.get(tp),
                open=_open(p.open),
            )
        )
    return SinkStatus(
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
    )


def of_report(report: Report) -> SinkStatus:
    """From a running job's report, which counts open objects and does not name them."""
    return SinkStatus(
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
    )


def settled(look: Callable[[], SinkStatus]) -> SinkStatus:
    """What `look` finds once ledger and group agree, or stay apart though no record came between two looks.

    The ledger is read before the group is asked, and a running sink goes on meanwhile.
    """
    found = look()
    for _ in range(MAX_CONSISTENT_READS - 1):
        before = found
        if not _apart(before) or (found := look()).record == before.record:
            break
    return found


def _apart(standing: SinkStatus) -> list[PartitionStatus]:
    return [p for p in standing.partitions if p.group is not None and p.group != p.committed]


def as_json(standing: SinkStatus) -> str:
    """The standing as one JSON document."""
    return msgspec.json.format(msgspec.json.encode(standing), indent=2).decode()


def as_table(standing: SinkStatus) -> str:
    """The standing for people."""
    lines = [_headline(standing)]
    if standing.partitions:
        lines += ["", *_table(standing)]
    lines += [
        f"{p.topic}-{p.partition}: the group's offset is {p.group:,}, not {p.committed:,}: the next run mends it"
        for p in _apart(standing)
    ]
    return "\n".join(lines)


def _headline(standing: SinkStatus) -> str:
    if standing.record is None and standing.state is None:
        return f"{standing.sink_id}: no ledger yet: this sink has not run"
    words = [standing.sink_id]
    if standing.state:
        words.append(standing.state)
    words.append(f"record {known(standing.record)}")
    if standing.generation > 1:
        words.append(f"generation {standing.generation} below {standing.topics_dir or 'the bucket itself'}")
    if standing.clock is not None:
        words.append(f"last round {duration(standing.now - standing.clock)} ago")
    if standing.pending:
        words.append(f"{standing.pending:,} objects being published")
    if standing.dropped:
        words.append(f"{standing.dropped:,} refused")
    lags = [p.lag for p in standing.partitions]
    words.append(f"lag {known(None if None in lags else sum(lag for lag in lags if lag is not None))}")
    return "  ".join(words)


def _table(standing: SinkStatus) -> list[str]:
    header = ("TOPIC-PARTITION", "COMMITTED", "NEXT", "END", "LAG", "OPEN", "BYTES", "AGE", "PATHS")
    rows = [_row(p, standing.now) for p in standing.partitions]
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
        ", ".join(p.open.paths) + (" …" if 0 < len(p.open.paths) < p.open.count else ""),
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Names to the left, numbers to the right, paths as they are."""
    middle = [cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:-1], strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *middle, cells[-1]]).rstrip()


def _open(objects: Sequence[OpenObject]) -> Open:
    if not objects:
        return Open(0)
    return Open(
        count=len(objects),
        bytes=sum(o.size for o in objects),
        oldest=min(o.opened_at for o in objects),
        paths=tuple(o.path for o in objects[:SHOWN_PATHS]),
    )
