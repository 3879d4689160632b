"""Worker side of `verify --deep`: compares the content of objects with Kafka's records.

A task reads a chunk of one topic-partition: an offset range and its objects. It selects the records of each object as a
rebuild does (`row_selection`), encodes them, and compares them byte by byte with the decompressed object. Objects are
read in small steps, so memory is bounded by the task's budget for objects of any size. The task also counts the objects
of each record. A record without an object must be a rejected or ignored one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow.arrays import Integers, Mask, Offsets
from sink_job.formats.compression import Uncompressed
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.ledger.schemas.schema_store import schemas_root
from sink_job.ledger.schemas.schema_table import LedgerSchemas
from sink_job.ledger.state import OffsetChecksum, SourceRange
from sink_job.records.batch import DEAD_LETTERS
from sink_job.rotation.types import ObjectId
from sink_job.s3 import S3Client, S3Settings, connect
from sink_job.verify.container_content import container_content
from sink_job.verify.object_content import ObjectContent, RowContent
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable
from sink_job.verify.results import MAX_FINDINGS, ComparisonResult, Finding, FindingType
from sink_job.writer.dead_letters import DeadLetterLines
from sink_job.writer.large_batches import prepared_parts
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline
from sink_job.writer.row_selection import object_rows
from sink_job.writer.row_slices import RowSlice
from sink_job.writer.schema_stores import SchemaStores

CHECKSUM_BATCH = 1 << 15
"""Number of offsets of an object per checksum calculation."""
STEPS = (64 << 10, 8 << 20)
"""Minimum and maximum number of bytes per fetch of an object."""


@dataclass(frozen=True)
class CompareSettings:
    """Settings of all tasks; picklable, without secrets. `settings_of_claims` are the settings (JSON) by the number of
    their claim, `root` is the prefix of the ledger, `budget` is the number of bytes of object content that a task may
    hold in memory. The objects are those of `generation`."""

    s3: S3Settings
    root: str
    settings_of_claims: Mapping[int, str]
    errors: ErrorsSpec
    budget: int
    generation: int = 1


class ExpectedObject(msgspec.Struct, frozen=True):
    """An object of the ledger. It accounts for its records also if its content is not `read`."""

    key: str
    path: str
    first: int
    last: int
    offsets: OffsetChecksum
    sources: tuple[SourceRange, ...]
    settings: int
    read: bool = True
    schema: str | None = None

    @property
    def id(self) -> ObjectId:
        return ObjectId(self.path, self.schema)


class CompareInput(msgspec.Struct, frozen=True):
    """The objects of a chunk. Each record of the chunk below `committed` must be in one of them, or be rejected or
    ignored by the settings of the last object that begins before it (`settings` if there is none), or have been
    `skipped`: these are the offsets in the chunk."""

    objects: tuple[ExpectedObject, ...]
    committed: int
    settings: int
    skipped: tuple[int, ...] = ()


def compare_range(
    settings: CompareSettings, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]
) -> bytes:
    """Compares one chunk. `task_input` is a `CompareInput`, the return value a `ComparisonResult` (both msgpack)."""
    chunk = msgspec.msgpack.decode(task_input, type=CompareInput)
    return msgspec.msgpack.encode(_Comparer(settings, tp, chunk).run(batches))


class _Comparer:
    """Compares Kafka's records of a chunk with the objects that span the current offset."""

    def __init__(self, settings: CompareSettings, tp: TopicPartition, chunk: CompareInput) -> None:
        self.tp = tp
        self.s3 = connect(settings.s3)
        copies = schemas_root(settings.root, settings.generation)
        stores = SchemaStores(
            LedgerSchemas(self.s3, copies),
            ObjectSchemas(self.s3, settings.root),
            LedgerFieldIds(self.s3, settings.root),
        )
        self._texts = settings.settings_of_claims
        self._pipeline = cache(
            lambda text: RecordPipeline.of(ObjectSettings.model_validate_json(text), settings.errors, stores)
        )
        for number in {chunk.settings, *(o.settings for o in chunk.objects)}:
            self._of_claim(number).prefetch_schemas(o.id for o in chunk.objects if o.read and o.settings == number)
        self.committed = chunk.committed
        self.ahead = sorted(chunk.objects, key=lambda o: o.first, reverse=True)
        self.current: list[_Object] = []
        self.result = ComparisonResult()
        self._rejecting = replace(stores, registered=LedgerSchemas(self.s3, copies, prefer_unknown=True))
        smallest, largest = STEPS
        self.step = max(smallest, min(largest, settings.budget // (2 * max(1, most_open(chunk.objects)))))
        self.settings = chunk.settings
        self.skipped = np.array(chunk.skipped, np.int64)

    def run(self, batches: Iterator[pa.RecordBatch]) -> ComparisonResult:
        for batch in batches:
            offsets = batch.column("offset").to_numpy()
            self._enter(int(offsets[-1]))
            self._leave(int(offsets[0]))
            self._batch(batch, offsets)
        self._enter(1 << 63)
        self._leave(1 << 63)
        self.result.findings.sort(key=lambda finding: finding.offset)
        return self.result

    def _of_claim(self, number: int) -> RecordPipeline:
        """The pipeline with the settings of a claim."""
        return self._pipeline(self._texts[number])

    def _enter(self, last: int) -> None:
        """Opens the objects that begin at or before `last`."""
        while self.ahead and self.ahead[-1].first <= last:
            o = self.ahead.pop()
            pipeline = self._of_claim(o.settings)
            self.current.append(
                _Object(o, open_content(self.s3, self.tp.topic, o, pipeline, self.step) if o.read else None)
            )

    def _leave(self, first: int) -> None:
        """Completes the objects that end before `first`."""
        done = [o for o in self.current if o.expected.last < first]
        self.current = [o for o in self.current if o.expected.last >= first]
        for o in done:
            self._complete(o)

    def _complete(self, o: _Object) -> None:
        finding = o.finish()
        if o.expected.read and o.offsets.count < o.expected.offsets.count:
            self.result.kafka_gone_objects += 1
        elif finding is not None:
            self._add(finding)
        elif o.expected.read:
            self.result.objects += 1
            self.result.records += o.offsets.count
            self.result.bytes += o.bytes

    def _batch(self, batch: pa.RecordBatch, offsets: Offsets) -> None:
        counts = np.zeros(len(offsets), dtype=np.int32)
        groups: dict[int, list[_Object]] = {}
        for o in self.current:
            groups.setdefault(o.expected.settings, []).append(o)
        for number, objects in groups.items():
            for o, rows, encoded in object_rows(objects, batch, partial(self._prepare, number), self._lines(number)):
                counts[rows] += 1
                o.compare(encoded)
        self._check_counts(batch, offsets, counts)

    def _lines(self, settings: int) -> DeadLetterLines:
        return DeadLetterLines.under(self._of_claim(settings).object_settings, self.tp)

    def _prepare(self, settings: int, batch: pa.RecordBatch, clock: int) -> PreparedBatch:
        return self._of_claim(settings).prepare(batch, clock, self.tp)

    def _check_counts(self, batch: pa.RecordBatch, offsets: Offsets, counts: npt.NDArray[np.int32]) -> None:
        """Each record below `committed` must be in one object, or be rejected, ignored or skipped."""
        below = int(np.searchsorted(offsets, self.committed))
        counts = counts[:below]
        duplicates = np.flatnonzero(counts > 1)
        if len(duplicates):
            first = int(offsets[duplicates[0]])
            self._add(Finding(FindingType.DUPLICATE_OFFSETS, first, f"the record at offset {first} is in two objects"))
        if len(self.skipped):
            skipped = np.isin(offsets[:below], self.skipped) & (counts == 0)
            self.result.skipped_records += int(skipped.sum())
            counts[skipped] = 1
        if not (counts == 0).any():
            return
        for low, high in _runs(counts == 0):
            self._check_skipped(batch.slice(low, high - low), offsets[low:high])

    def _check_skipped(self, batch: pa.RecordBatch, offsets: Offsets) -> None:
        """Records in no object must be rejected, ignored or filtered by the settings of the last object before them, or
        filtered by those of a later claim: a driver whose list filters them may have opened no object yet."""
        before = [o.expected for o in self.current if o.expected.first <= offsets[0]]
        if before:
            self.settings = max(before, key=lambda o: o.first).settings
        is_accepted = self._accepts(self._of_claim(self.settings), batch)
        for text in self._later_transforms() if is_accepted.any() else ():
            is_accepted &= self._accepts(self._pipeline(text), batch)
        accepted = np.flatnonzero(is_accepted)
        self.result.skipped_records += len(batch) - len(accepted)
        if len(accepted):
            self._add(_missing(int(offsets[accepted[0]])))

    def _accepts(self, pipeline: RecordPipeline, batch: pa.RecordBatch) -> Mask:
        """A mask of the records that belong to an object."""
        pipeline = pipeline.with_stores(self._rejecting)
        parts = prepared_parts(batch, 0, lambda part, clock: pipeline.prepare(part, clock, self.tp))
        return np.concatenate([prepared.rows.codes for _, _, prepared in parts]) >= 0

    def _later_transforms(self) -> list[str]:
        """The distinct settings with transforms of later claims, to that of the next object."""
        last = min((o.settings for o in self.ahead[-1:]), default=max(self._texts))
        later = (text for number, text in sorted(self._texts.items()) if self.settings < number <= last)
        return [text for text in dict.fromkeys(later) if '"transforms"' in text]

    def _add(self, finding: Finding) -> None:
        if len(self.result.findings) < MAX_FINDINGS:
            self.result.findings.append(finding)


def _missing(offset: int) -> Finding:
    return Finding(FindingType.OFFSETS_MISSING, offset, f"the record at offset {offset} is in Kafka, but in no object")


class _Object:
    """The comparison of one object with its records in Kafka. `offsets` and `bytes` (uncompressed) cover the records
    compared so far."""

    def __init__(self, expected: ExpectedObject, content: ObjectContent | None) -> None:
        self.expected = expected
        self.offsets = OffsetChecksum()
        self.bytes = 0
        self._content = content
        self._uncounted: list[Integers] = []
        self._count = 0
        self._finding: Finding | None = None

    @property
    def id(self) -> ObjectId:
        return self.expected.id

    @property
    def sources(self) -> tuple[SourceRange, ...]:
        return self.expected.sources

    def compare(self, rows: RowSlice) -> None:
        """Compares the object's next records with `rows`."""
        offsets = rows.offsets
        self._uncounted.append(offsets)
        self._count += len(offsets)
        if self._count >= CHECKSUM_BATCH:
            self._update_checksum()
        if self._content is None:
            return
        self.bytes += rows.size
        try:
            difference = self._content.compare(rows)
        except ObjectUnreadable as error:
            self._mismatch(int(offsets[0]), str(error))
            return
        if difference is not None:
            offset = int(offsets[difference.row])
            if difference.is_missing:
                self._mismatch(offset, f"the object ends before the record at offset {offset}")
            else:
                self._mismatch(offset, f"the record at offset {offset} in the object differs from the one in Kafka")

    def _update_checksum(self) -> None:
        """Adds the uncounted offsets to the checksum, in batches: a small batch costs as much as a large one."""
        if self._uncounted:
            self.offsets += checksum(np.concatenate(self._uncounted))
        self._uncounted, self._count = [], 0

    def finish(self) -> Finding | None:
        """The finding after all records of the object; None if the object is equal."""
        self._update_checksum()
        o = self.expected
        if self._content is not None:
            try:
                remaining = self._content.remaining()
                if remaining is not None:
                    self._mismatch(o.last, f"{remaining}, offset {o.last}")
            except ObjectUnreadable as error:
                self._mismatch(o.first, str(error))
            if self.offsets != o.offsets and self.offsets.count >= o.offsets.count:
                self._mismatch(
                    o.first,
                    f"the ledger counts {o.offsets.count} records in the object; Kafka holds {self.offsets.count} for "
                    "it",
                )
        self._content = None
        return self._finding

    def _mismatch(self, offset: int, message: str) -> None:
        """Keeps the first difference and ends the comparison: later differences follow from it."""
        if self._finding is None:
            self._finding = Finding(FindingType.RECORD_MISMATCH, offset, message, self.expected.key)
        self._content = None


def open_content(s3: S3Client, topic: str, o: ExpectedObject, pipeline: RecordPipeline, step: int) -> ObjectContent:
    """The content of an object of `topic`. `step`: bytes per fetch. Nothing is fetched before the first comparison, but
    the schema of a container and its field ids. Raises LedgerUnreadable and the errors of the store for that."""
    if o.path == DEAD_LETTERS:
        return RowContent(ObjectReader(s3, o.key, Uncompressed(), step=step))
    if pipeline.containers is None:
        return RowContent(ObjectReader(s3, o.key, pipeline.compression, step=step))
    assert o.schema is not None, "records without a schema are rejected"
    schema = pipeline.containers.schema(o.schema)
    ids = pipeline.containers.field_ids(topic, schema)
    return container_content(s3, o.key, pipeline.object_settings.format, schema, step, ids)


def most_open(objects: Sequence[ExpectedObject]) -> int:
    """The maximum number of objects that span one offset."""
    ends: list[int] = []
    most = 0
    for o in sorted(objects, key=lambda o: o.first):
        while ends and ends[0] < o.first:
            heapq.heappop(ends)
        heapq.heappush(ends, o.last)
        most = max(most, len(ends))
    return most


def _runs(mask: Mask) -> Iterator[tuple[int, int]]:
    """The ranges `[low, high)` in which `mask` is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
