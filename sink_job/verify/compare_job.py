"""Driver side of `verify --deep`: compares objects with Kafka's records, chunk by chunk, in all topic-partitions.

A chunk is an offset range of a topic-partition with about 1 GiB of objects. It ends at an offset that no object spans.
A failure repeats only one chunk, progress is reported after each chunk, and records that retention deletes meanwhile
are detected at the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from sink_job.api.errors import DataLoss
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import required_columns
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.types import Columns, Engine, Range, stateless
from sink_job.ledger.state import ClosedObject
from sink_job.partitioning.object_keys import is_temporary
from sink_job.s3 import S3Settings
from sink_job.verify.bucket_scanner import ReportProgress
from sink_job.verify.compare_task import CompareInput, CompareSettings, ExpectedObject, compare_range
from sink_job.verify.evidence import Evidence
from sink_job.verify.results import ComparisonResult, PartitionResult

CHUNK_BYTES = 1 << 30
"""Size of the objects of a chunk, in stored bytes. A chunk can be larger, since it ends only between objects."""

MAX_ATTEMPTS = 5
"""Maximum number of attempts of a chunk whose records retention deletes meanwhile."""


@dataclass(frozen=True, kw_only=True)
class CompareContext:
    """Dependencies of a comparison. `budget`: the bytes of object content that a task may hold in memory."""

    s3: S3Settings
    admin: KafkaAdmin
    engine: Engine
    budget: int = 64 << 20


def compare(
    evidence: Evidence,
    results: Sequence[PartitionResult],
    context: CompareContext,
    errors: ErrorsSpec,
    report: ReportProgress = lambda line: None,
) -> list[PartitionResult]:
    """The results with the comparison of the current generation's objects added.

    Raises DataLoss when retention interrupts each attempt of a chunk, and the errors of the engine.
    """
    generation = evidence.current.state.generation
    current = [result for result in results if result.generation == generation]
    comparisons = {
        comparison.tp: comparison
        for comparison in (_comparison(evidence, result) for result in current)
        if comparison.tp in evidence.live
    }
    settings = CompareSettings(
        s3=context.s3,
        root=evidence.root,
        settings_of_claims={
            number: object_settings.model_dump_json() for number, object_settings in evidence.settings_of_claims.items()
        },
        errors=errors,
        budget=context.budget,
        generation=generation,
    )
    columns = _columns(evidence)
    while _next_chunks(comparisons, context, settings, columns):
        done = [comparison.total for comparison in comparisons.values()]
        report(
            f"compared {sum(each.objects for each in done):,} objects, {sum(each.records for each in done):,} records"
        )
    previous = [result for result in results if result.generation != generation]
    return [*(_with_comparison(result, comparisons.get(result.topic_partition)) for result in current), *previous]


def _next_chunks(
    comparisons: Mapping[TopicPartition, _PartitionComparison],
    context: CompareContext,
    settings: CompareSettings,
    columns: Columns,
) -> bool:
    """Compares the next chunk of each topic-partition; returns False if there was none."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        held = context.admin.beginning_offsets([tp for tp, each in comparisons.items() if not each.done])
        chunks = {tp: chunk for tp in held if (chunk := comparisons[tp].next_chunk(held[tp])) is not None}
        try:
            results = context.engine.run(
                ranges={tp: Range(chunk.start, chunk.end) for tp, chunk in chunks.items()},
                idle=(),
                inputs={tp: msgspec.msgpack.encode(chunk.input) for tp, chunk in chunks.items()},
                columns=columns,
                factory=stateless(partial(compare_range, settings)),
            )
        except DataLoss:
            if attempt == MAX_ATTEMPTS:
                raise
            continue
        for tp, result in results.items():
            comparisons[tp].complete(chunks[tp], msgspec.msgpack.decode(result, type=ComparisonResult))
        return bool(chunks)
    return False


def _columns(evidence: Evidence) -> Columns:
    """All columns that any of the settings require."""
    required = [required_columns(object_settings) for object_settings in evidence.settings_of_claims.values()]
    return Columns(
        timestamp=any(each.timestamp for each in required),
        key=any(each.key for each in required),
        headers=any(each.headers for each in required),
        timestamp_type=any(each.timestamp_type for each in required),
    )


@dataclass(frozen=True)
class _Chunk:
    """An offset range `[start, end)` and the number of objects in it."""

    start: int
    end: int
    input: CompareInput
    objects: int


class _PartitionComparison:
    """The progress of the comparison of one topic-partition."""

    def __init__(
        self, tp: TopicPartition, objects: Sequence[ClosedObject], read: Sequence[bool], settings: int
    ) -> None:
        """`read`: whether the content of each object is read. `settings` is the number of the first object's claim."""
        self.tp = tp
        self.total = ComparisonResult()
        self.position = 0
        self.end = 0
        self.committed = 0
        self.settings = settings
        self.skipped: tuple[int, ...] = ()
        self._remaining = deque(zip(objects, read, strict=True))

    @property
    def done(self) -> bool:
        return self.position >= self.end

    def next_chunk(self, held: int) -> _Chunk | None:
        """The next chunk, None at the end; `held` is the first offset that Kafka holds."""
        self.position = max(self.position, held)
        self._skip_expired()
        if self.done:
            return None
        chosen: list[ExpectedObject] = []
        size, reached = 0, self.position - 1
        for o, read in self._remaining:
            if size >= CHUNK_BYTES and o.first > reached:
                break
            chosen.append(_expected(o, read=read and o.first >= self.position))
            size, reached = size + o.bytes, max(reached, o.last)
        end = self._remaining[len(chosen)][0].first if len(chosen) < len(self._remaining) else self.end
        skipped = tuple(each for each in self.skipped if self.position <= each < end)
        chunk = CompareInput(tuple(chosen), self.committed, self.settings, skipped)
        return _Chunk(self.position, end, chunk, len(chosen))

    def _skip_expired(self) -> None:
        """Skips the objects without any record in Kafka."""
        kept = deque((o, read) for o, read in self._remaining if o.last >= self.position)
        self.total.kafka_gone_objects += sum(read for o, read in self._remaining if o.last < self.position)
        self._remaining = kept

    def complete(self, chunk: _Chunk, result: ComparisonResult) -> None:
        """Adds the result of a chunk and moves to its end."""
        for _ in range(chunk.objects):
            o, read = self._remaining.popleft()
            if read and o.first < chunk.start:
                self.total.kafka_gone_objects += 1
            self.settings = o.settings
        self.total.add(result)
        self.position = chunk.end

    def finish(self) -> ComparisonResult:
        """The total result. Objects after the end of Kafka's log count as gone from Kafka."""
        self.total.kafka_gone_objects += sum(read for _, read in self._remaining)
        self._remaining.clear()
        return self.total


def _comparison(evidence: Evidence, result: PartitionResult) -> _PartitionComparison:
    """The comparison of a topic-partition with all listed objects. Missing objects, and damaged ones whose loss is
    accepted, still account for their records, but are not read."""
    tp, bucket = result.topic_partition, evidence.bucket
    missing = bucket.missing | (evidence.current.accepted & bucket.mismatched.keys())
    closed = sorted((o for o in evidence.objects.values() if o.topic_partition == tp), key=lambda o: o.first)
    settings = closed[0].settings if closed else evidence.current.state.current_settings()
    comparison = _PartitionComparison(tp, closed, [_is_read(o, missing) for o in closed], settings)
    comparison.position = result.start
    comparison.committed = result.committed
    p = evidence.current.state.partition(tp)
    comparison.skipped = () if p is None else p.skipped
    comparison.end = max([result.committed, *(o.last + 1 for o in closed if _is_read(o, missing))])
    if result.end is not None:
        comparison.end = min(comparison.end, result.end)
    return comparison


def _is_read(o: ClosedObject, missing: Collection[str]) -> bool:
    """Whether the object is in the bucket: one whose records are in a dead-letter topic need not be."""
    return o.key not in missing and not is_temporary(o.path, o.key)


def _expected(o: ClosedObject, *, read: bool) -> ExpectedObject:
    return ExpectedObject(
        key=o.key,
        path=o.path,
        first=o.first,
        last=o.last,
        offsets=o.offsets,
        sources=o.sources,
        settings=o.settings,
        read=read,
        schema=o.schema,
    )


def _with_comparison(result: PartitionResult, comparison: _PartitionComparison | None) -> PartitionResult:
    """The result with the findings and counts of the comparison; without one all objects count as gone from Kafka."""
    compared = comparison.finish() if comparison else ComparisonResult(kafka_gone_objects=result.objects)
    findings = sorted([*result.findings, *compared.findings], key=lambda finding: finding.offset)
    compared.findings = []
    return msgspec.structs.replace(result, compared=compared, findings=tuple(findings))
