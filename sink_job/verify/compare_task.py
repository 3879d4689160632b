"""The deep half of an audit: what objects hold, record by record, against what Kafka still holds.

A task reads a stretch of one topic-partition, chooses each object's records as a rebuild would (`members`), frames them
and compares them byte by byte with the object's decompressed body, which comes in by small steps: memory is bounded by
the task's budget, however large objects are. It also counts in how many objects each record is; one that is in none
must be a refused or ignored one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.api.spec import ErrorsSpec, ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.state import OffsetChecksum, SourceRange
from sink_job.s3 import S3Settings, connect
from sink_job.verify.audit import MAX_FINDINGS, ComparisonResult, Finding, FindingType
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline
from sink_job.writer.row_selection import object_rows

COUNTED_AT_ONCE = 1 << 15
"""Offsets of an object that are tallied together."""
SMALL = 1 << 15
"""Bytes that are compared quicker by copying them."""
STEPS = (64 << 10, 8 << 20)
"""Least and most bytes of a body that are fetched at a time."""


@dataclass(frozen=True)
class CompareSettings:
    """What all tasks share; picklable, without a secret. `shapings` are the settings (JSON) by the number of their
    claim, `budget` the bytes that the bodies of a task may hold."""

    s3: S3Settings
    shapings: Mapping[int, str]
    errors: ErrorsSpec
    budget: int


class ExpectedObject(msgspec.Struct, frozen=True):
    """An object as the lists have it. One whose body is not `read` still claims its records."""

    key: str
    path: str
    first: int
    last: int
    offsets: OffsetChecksum
    sources: tuple[SourceRange, ...]
    settings: int
    read: bool = True


class CompareInput(msgspec.Struct, frozen=True):
    """The objects of a stretch. Every record of it below `committed` must be in one of them, or be one that the
    settings leave out: those of the object before it, `settings` where there is none."""

    objects: tuple[ExpectedObject, ...]
    committed: int
    settings: int


def compare_range(
    settings: CompareSettings, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]
) -> bytes:
    """Compares one stretch; `given` is a `CompareInput`, the return value a `Compared` (msgpack)."""
    work = msgspec.msgpack.decode(given, type=CompareInput)
    return msgspec.msgpack.encode(_Comparer(settings, tp, work).run(batches))


class _Comparer:
    """Goes through a stretch of Kafka's records with the objects that span where it is."""

    def __init__(self, settings: CompareSettings, tp: TopicPartition, work: CompareInput) -> None:
        self.tp = tp
        self.pipelines = {
            number: RecordPipeline.of(ObjectSettings.model_validate_json(settings.shapings[number]), settings.errors)
            for number in {work.settings, *(o.settings for o in work.objects)}
        }
        self.committed = work.committed
        self.ahead = sorted(work.objects, key=lambda o: o.first, reverse=True)
        self.within: list[_Object] = []
        self.found = ComparisonResult()
        self.s3 = connect(settings.s3)
        least, most = STEPS
        self.step = max(least, min(most, settings.budget // (2 * max(1, most_open(work.objects)))))
        self.settings = work.settings

    def run(self, batches: Iterator[pa.RecordBatch]) -> ComparisonResult:
        for batch in batches:
            offsets = batch.column("offset").to_numpy()
            self._enter(int(offsets[-1]))
            self._leave(int(offsets[0]))
            self._batch(batch, offsets)
        self._enter(1 << 63)
        self._leave(1 << 63)
        self.found.findings.sort(key=lambda finding: finding.offset)
        return self.found

    def _enter(self, last: int) -> None:
        """Objects that begin at or before `last` are looked at from here on."""
        while self.ahead and self.ahead[-1].first <= last:
            o = self.ahead.pop()
            body = (
                ObjectReader(self.s3, o.key, self.pipelines[o.settings].compression, step=self.step) if o.read else None
            )
            self.within.append(_Object(o, body))

    def _leave(self, first: int) -> None:
        """Objects that end before `first` are done."""
        done = [o for o in self.within if o.claimed.last < first]
        self.within = [o for o in self.within if o.claimed.last >= first]
        for o in done:
            self._settle(o)

    def _settle(self, o: _Object) -> None:
        wrong = o.end()
        if o.claimed.read and o.offsets.count < o.claimed.offsets.count:
            self.found.expired_objects += 1
        elif wrong is not None:
            self._wrong(wrong)
        elif o.claimed.read:
            self.found.objects += 1
            self.found.records += o.offsets.count
            self.found.bytes += o.bytes

    def _batch(self, batch: pa.RecordBatch, offsets: npt.NDArray[np.int64]) -> None:
        holders = np.zeros(len(offsets), dtype=np.int32)
        groups: dict[int, list[_Object]] = {}
        for o in self.within:
            groups.setdefault(o.claimed.settings, []).append(o)
        for number, objects in groups.items():
            for o, rows, encoded in object_rows(objects, batch, partial(self._prepare, number)):
                holders[rows] += 1
                o.take(encoded.data, encoded.ends, encoded.offsets)
        self._account(batch, offsets, holders)

    def _prepare(self, settings: int, batch: pa.RecordBatch, clock: int) -> PreparedBatch:
        return self.pipelines[settings].prepare(batch, clock, self.tp)

    def _account(self, batch: pa.RecordBatch, offsets: npt.NDArray[np.int64], holders: npt.NDArray[np.int32]) -> None:
        """Every record below `committed` is in one object, or is one that no object takes."""
        known = int(np.searchsorted(offsets, self.committed))
        holders = holders[:known]
        doubled = np.flatnonzero(holders > 1)
        if len(doubled):
            first = int(offsets[doubled[0]])
            self._wrong(
                Finding(FindingType.DUPLICATE_OFFSETS, first, f"the record at offset {first} is in two objects")
            )
        if not (holders == 0).any():
            return
        for low, high in _runs(holders == 0):
            self._left_out(batch.slice(low, high - low), offsets[low:high])

    def _left_out(self, batch: pa.RecordBatch, offsets: npt.NDArray[np.int64]) -> None:
        """Records that no object holds: the settings of the last object before them must refuse or ignore them."""
        before = [o.claimed for o in self.within if o.claimed.first <= offsets[0]]
        if before:
            self.settings = max(before, key=lambda o: o.first).settings
        codes = self.pipelines[self.settings].prepare(batch, 0, self.tp).rows.codes
        taken = np.flatnonzero(codes >= 0)
        self.found.skipped_records += len(codes) - len(taken)
        if len(taken):
            self._wrong(_missing(int(offsets[taken[0]])))

    def _wrong(self, finding: Finding) -> None:
        if len(self.found.findings) < MAX_FINDINGS:
            self.found.findings.append(finding)


def _missing(offset: int) -> Finding:
    return Finding(FindingType.OFFSETS_MISSING, offset, f"the record at offset {offset} is in Kafka and in no object")


class _Object:
    """An object under comparison: what Kafka gave for it so far, and what its body said to that."""

    def __init__(self, claimed: ExpectedObject, body: ObjectReader | None) -> None:
        self.claimed = claimed
        self.offsets = OffsetChecksum()
        self.bytes = 0
        self._body = body
        self._taken: list[npt.NDArray[np.int64]] = []
        self._count = 0
        self._wrong: Finding | None = None

    @property
    def path(self) -> str:
        return self.claimed.path

    @property
    def sources(self) -> tuple[SourceRange, ...]:
        return self.claimed.sources

    def take(self, rows: memoryview, ends: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> None:
        """The object's next records as they must stand in its body: the rows' bytes, where each ends, the offsets."""
        self._taken.append(offsets)
        self._count += len(offsets)
        if self._count >= COUNTED_AT_ONCE:
            self._sum()
        if self._body is None:
            return
        self.bytes += len(rows)
        try:
            stored = self._body.read(len(rows))
        except ObjectUnreadable as error:
            self._differs(int(offsets[0]), str(error))
            return
        at = first_difference(rows, stored)
        if at is not None:
            offset = int(offsets[min(int(np.searchsorted(ends, at, side="right")), len(ends) - 1)])
            self._differs(offset, self._words(offset, at >= len(stored)))

    def _sum(self) -> None:
        """Adds up what was taken: rarely, because a few offsets cost as much as many."""
        if self._taken:
            self.offsets += checksum(np.concatenate(self._taken))
        self._taken, self._count = [], 0

    def _words(self, offset: int, ended: bool) -> str:
        if ended:
            return f"the object ends before the record at offset {offset}"
        return f"the record at offset {offset} is another one in Kafka than in the object"

    def end(self) -> Finding | None:
        """What is wrong with the object, all of Kafka's records taken."""
        self._sum()
        o = self.claimed
        if self._body is not None:
            try:
                if self._body.read(1):
                    self._differs(o.last, f"the object goes on behind its last record, offset {o.last}")
            except ObjectUnreadable as error:
                self._differs(o.first, str(error))
            if self.offsets != o.offsets and self.offsets.count >= o.offsets.count:
                self._differs(
                    o.first, f"the list counts {o.offsets.count} records of it, Kafka holds {self.offsets.count}"
                )
        self._body = None
        return self._wrong

    def _differs(self, offset: int, message: str) -> None:
        """The first difference is the one to tell; what follows it says nothing."""
        if self._wrong is None:
            self._wrong = Finding(FindingType.RECORD_MISMATCH, offset, message, self.claimed.key)
        self._body = None


def first_difference(wanted: memoryview, stored: bytes) -> int | None:
    """The index of the first byte at which they differ, which may be the end of the shorter; None: they are equal."""
    if len(wanted) < SMALL and wanted.tobytes() == stored:
        return None
    size = min(len(wanted), len(stored))
    left, right = np.frombuffer(wanted, np.uint8, size), np.frombuffer(stored, np.uint8, size)
    if np.array_equal(left, right):
        return None if len(wanted) == len(stored) else size
    return int(np.argmax(left != right))


def most_open(objects: Sequence[ExpectedObject]) -> int:
    """How many of these objects span one offset, at most."""
    ends: list[int] = []
    most = 0
    for o in sorted(objects, key=lambda o: o.first):
        while ends and ends[0] < o.first:
            heapq.heappop(ends)
        heapq.heappush(ends, o.last)
        most = max(most, len(ends))
    return most


def _runs(mask: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The stretches `[low, high)` in which `mask` is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
