"""Dead letters: rejected records as JSON lines in an object of their own (`errors.deadLetters.prefix`).

The rejected records of a topic-partition are one more open object, with the path `DEAD_LETTERS`. Its source ranges have
the clock of their round, which is in each line: a rebuild selects the records that are rejected under this clock, and
writes the same lines. A record whose schema id the registry did not know may be accepted later; its source range has
the clock with a negative sign, and a rebuild takes all records of such a range (docs/adr/0046-dead-letter-objects.md).
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow.arrays import Indices, Integers
from sink_job.codecs.required_columns import task_columns
from sink_job.engine.types import ROW, payload
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.state import SourceRange
from sink_job.writer.record_pipeline import RejectedRow, RejectionReason
from sink_job.writer.row_slices import RowSlice

UNKNOWN_SCHEMA: Final = "the schema of the record was not known when it was read"
"""The message of a record whose schema id the registry did not know, or without an inferred schema. The reason, such as
the registry's answer, may differ at a rebuild."""

_NO_TIMESTAMP: Final = -1
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class DeadLetterLines:
    """Rejected records of `tp` as lines. `separator` is the number of bytes after each value, if batches have rows in
    place of values."""

    tp: TopicPartition
    separator: int = 0

    @classmethod
    def under(cls, object_settings: ObjectSettings, tp: TopicPartition) -> DeadLetterLines:
        """The lines of a sink with these settings."""
        return cls(tp, len(task_columns(object_settings).separator))

    def of(self, batch: pa.RecordBatch, rejected: Sequence[RejectedRow], clock: int) -> RowSlice:
        """The lines of records of a batch, which ascend and were rejected at the round clock `clock` (ms)."""
        chosen = pa.array([each.row for each in rejected], pa.int64())
        ends = -self.separator if ROW in batch.schema.names and self.separator else None
        columns = (payload(batch), *map(batch.column, ("key", "headers", "timestamp")))
        found = zip(rejected, *(column.take(chosen).to_pylist() for column in columns), strict=True)
        lines = [
            _encode(self._line(each, clock, value if value is None else value[:ends], key, headers, timestamp)) + b"\n"
            for each, value, key, headers, timestamp in found
        ]
        offsets = np.array([each.offset for each in rejected], np.int64)
        ends_of_lines: Integers = np.cumsum([len(line) for line in lines], dtype=np.int64)
        return RowSlice(memoryview(b"".join(lines)), ends_of_lines, offsets, checksum(offsets))

    def _line(
        self,
        rejected: RejectedRow,
        clock: int,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[Mapping[str, Any]] | None,
        timestamp: int,
    ) -> dict[str, Any]:
        unknown = rejected.reason is RejectionReason.UNKNOWN_SCHEMA
        return {
            "key": _base64(key),
            "headers": [{"name": each["key"], "value": _base64(each["value"])} for each in headers or ()],
            "timestamp": None if timestamp == _NO_TIMESTAMP else timestamp,
            "topic": self.tp.topic,
            "partition": self.tp.partition,
            "offset": rejected.offset,
            "value": _base64(value),
            "reason": rejected.reason,
            "message": UNKNOWN_SCHEMA if unknown else rejected.message,
            "rejectedAt": clock,
        }

    def of_object(
        self, batch: pa.RecordBatch, rejected: Sequence[RejectedRow], clock: int, sources: Sequence[SourceRange]
    ) -> tuple[Indices, RowSlice] | None:
        """The rows of a batch, prepared under `clock`, that belong to an object with these source ranges, and their
        lines; None if there are none. `rejected` are all rejected records of the batch."""
        offsets = batch.column("offset").to_numpy()
        reasons = {each.row: each for each in rejected}
        rows = np.array(sorted(reasons), np.intp)
        chosen: list[RejectedRow] = []
        for source in sources:
            low, high = np.searchsorted(offsets, (source.start, source.end)).tolist()
            if source.clock == clock:
                chosen += [reasons[row] for row in rows[(rows >= low) & (rows < high)].tolist()]
            elif source.clock == -clock:
                chosen += [_unknown(row, int(offsets[row])) for row in range(low, high)]
        if not chosen:
            return None
        return np.array([each.row for each in chosen], np.intp), self.of(batch, chosen, clock)


def _unknown(row: int, offset: int) -> RejectedRow:
    return RejectedRow(row, offset, UNKNOWN_SCHEMA, RejectionReason.UNKNOWN_SCHEMA)


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


class DeadLetterSources:
    """The offset ranges of the rejected records that a task adds to a dead-letter object, under the round clock
    `clock`: one for all of them, but for those with an unknown schema id, which are in ranges of their own. No range
    contains a skipped record."""

    def __init__(self, clock: int) -> None:
        self.first: int | None = None
        self.last = -1
        self._clock = clock
        self._ranges: list[SourceRange] = []

    def add(self, offsets: Integers, breaks: Sequence[int]) -> None:
        """`breaks` are the offsets with an unknown schema id, all of which are rejected, and the skipped ones, none of
        which is; they ascend."""
        if self.first is None:
            self.first = int(offsets[0])
        self.last = int(offsets[-1])
        for start, end, unknown in _runs(offsets, breaks):
            clock = -self._clock if unknown else self._clock
            self._ranges = _extended(self._ranges, SourceRange(start, end, clock), breaks)

    def extend(self, previous: tuple[SourceRange, ...], clock: int, breaks: Sequence[int]) -> tuple[SourceRange, ...]:
        """The source ranges `previous` and those of these rows."""
        ranges = list(previous)
        for each in self._ranges:
            ranges = _extended(ranges, each, breaks)
        return tuple(ranges)


def _extended(ranges: list[SourceRange], new: SourceRange, breaks: Sequence[int]) -> list[SourceRange]:
    """Adds `new`, which is after all of `ranges`. Records that were not rejected may be between two rejected ones, but
    not skipped ones, and none between two with an unknown schema id."""
    if ranges and ranges[-1].clock == new.clock and _may_join(ranges[-1].end, new, breaks):
        ranges[-1] = SourceRange(ranges[-1].start, new.end, new.clock)
    else:
        ranges.append(new)
    return ranges


def _may_join(end: int, new: SourceRange, breaks: Sequence[int]) -> bool:
    """Whether a range up to `end` and `new` can be one."""
    return end == new.start or (new.clock > 0 and not _has_any(breaks, end, new.start))


def _has_any(breaks: Sequence[int], start: int, end: int) -> bool:
    """Whether one of `breaks` is in `[start, end)`."""
    return bisect_left(breaks, start) != bisect_left(breaks, end)


def _runs(offsets: Integers, breaks: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """The ranges `[start, end)` of `offsets` with a known and with an unknown schema id, in order, without the skipped
    offsets. `breaks`: see `DeadLetterSources.add`."""
    low, high = bisect_left(breaks, int(offsets[0])), bisect_left(breaks, int(offsets[-1]) + 1)
    if low == high:
        yield int(offsets[0]), int(offsets[-1]) + 1, False
        return
    is_unknown = np.isin(offsets, np.array(breaks[low:high], np.int64))
    start = 0
    for at in range(1, len(offsets) + 1):
        ends = at == len(offsets) or is_unknown[at] != is_unknown[start]
        ends = ends or _has_any(breaks, int(offsets[at - 1]) + 1, int(offsets[at]))
        if ends or (is_unknown[start] and offsets[at] != offsets[at - 1] + 1):
            yield int(offsets[start]), int(offsets[at - 1]) + 1, bool(is_unknown[start])
            start = at
