"""Runs the comparison of objects with Kafka's records: stretch by stretch, all topic-partitions at a time.

A stretch ends where no object goes on, after about a gibibyte of them: a failure costs one stretch, people see it go
on, and what retention takes away meanwhile is noticed at the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from sink_job.api.errors import DataLoss
from sink_job.api.spec import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.types import Columns, Engine, Range, stateless
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Settings
from sink_job.verify.audit import ComparisonResult, PartitionResult
from sink_job.verify.compare_task import CompareInput, CompareSettings, ExpectedObject, compare_range
from sink_job.verify.evidence import Evidence, ReportProgress
from sink_job.writer.record_pipeline import RecordPipeline

CHUNK_BYTES = 1 << 30
"""Bytes of objects, as they are stored, in one stretch of a topic-partition."""
MAX_ATTEMPTS = 5
"""How often a stretch is begun anew because retention ate into it."""


@dataclass(frozen=True, kw_only=True)
class CompareContext:
    """What the comparison works with. `budget`: bytes of objects' bodies that a task may hold."""

    s3: S3Settings
    admin: KafkaAdmin
    engine: Engine
    budget: int = 64 << 20


def compare(
    evidence: Evidence,
    verdicts: Sequence[PartitionResult],
    world: CompareContext,
    errors: ErrorsSpec,
    tell: ReportProgress = lambda line: None,
) -> list[PartitionResult]:
    """The verdicts with what Kafka's records say to those of the current generation. Raises what reading raises."""
    current = [verdict for verdict in verdicts if verdict.generation == evidence.lists.state.generation]
    ways = {way.tp: way for way in (_way(evidence, verdict) for verdict in current) if way.tp in evidence.live}
    settings = CompareSettings(
        s3=world.s3,
        shapings={number: shaping.model_dump_json() for number, shaping in evidence.shapings.items()},
        errors=errors,
        budget=world.budget,
    )
    columns = _columns(evidence, errors)
    while _next_chunks(ways, world, settings, columns):
        done = [way.found for way in ways.values()]
        tell(f"compared {sum(d.objects for d in done):,} objects, {sum(d.records for d in done):,} records")
    before = [verdict for verdict in verdicts if verdict.generation != evidence.lists.state.generation]
    return [*(_with(verdict, ways.get(verdict.topic_partition)) for verdict in current), *before]


def _next_chunks(
    ways: Mapping[TopicPartition, _PartitionComparison],
    world: CompareContext,
    settings: CompareSettings,
    columns: Columns,
) -> bool:
    """Compares the next stretch of each topic-partition; returns whether there was one."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        held = world.admin.beginning_offsets([tp for tp, way in ways.items() if not way.done])
        stretches = {tp: stretch for tp in held if (stretch := ways[tp].stretch(held[tp])) is not None}
        try:
            results = world.engine.run(
                ranges={tp: Range(stretch.start, stretch.end) for tp, stretch in stretches.items()},
                idle=(),
                inputs={tp: msgspec.msgpack.encode(stretch.work) for tp, stretch in stretches.items()},
                columns=columns,
                factory=stateless(partial(compare_range, settings)),
            )
        except DataLoss:
            if attempt == MAX_ATTEMPTS:
                raise
            continue
        for tp, result in results.items():
            ways[tp].passed(stretches[tp], msgspec.msgpack.decode(result, type=ComparisonResult))
        return bool(stretches)
    return False


def _columns(evidence: Evidence, errors: ErrorsSpec) -> Columns:
    """Every column that any of the settings needs."""
    needed = [RecordPipeline.of(shaping, errors).columns for shaping in evidence.shapings.values()]
    return Columns(*(any(wanted) for wanted in zip(*needed, strict=True)))


@dataclass(frozen=True)
class _Chunk:
    start: int
    end: int
    work: CompareInput
    objects: int


class _PartitionComparison:
    """How far the comparison of one topic-partition has come."""

    def __init__(
        self, tp: TopicPartition, objects: Sequence[ClosedObject], read: Sequence[bool], settings: int
    ) -> None:
        self.tp = tp
        self.found = ComparisonResult()
        self.position = 0
        self.end = 0
        self.committed = 0
        self.settings = settings
        self._left = deque(zip(objects, read, strict=True))

    @property
    def done(self) -> bool:
        return self.position >= self.end

    def stretch(self, held: int) -> _Chunk | None:
        """The next one; `held` is the first offset that Kafka holds. None at the end."""
        self.position = max(self.position, held)
        self._pass_over()
        if self.done:
            return None
        chosen: list[ExpectedObject] = []
        size, reached = 0, self.position - 1
        for o, read in self._left:
            if size >= CHUNK_BYTES and o.first > reached:
                break
            chosen.append(_claimed(o, read=read and o.first >= self.position))
            size, reached = size + o.bytes, max(reached, o.last)
        end = self._left[len(chosen)][0].first if len(chosen) < len(self._left) else self.end
        work = CompareInput(tuple(chosen), self.committed, self.settings)
        return _Chunk(self.position, end, work, len(chosen))

    def _pass_over(self) -> None:
        """Objects of which Kafka holds nothing any more."""
        kept = deque((o, read) for o, read in self._left if o.last >= self.position)
        self.found.expired_objects += sum(read for o, read in self._left if o.last < self.position)
        self._left = kept

    def passed(self, stretch: _Chunk, result: ComparisonResult) -> None:
        for _ in range(stretch.objects):
            o, read = self._left.popleft()
            if read and o.first < stretch.start:
                self.found.expired_objects += 1
            self.settings = o.settings
        self.found.add(result)
        self.position = stretch.end

    def finish(self) -> ComparisonResult:
        """All that was found; objects behind the end of Kafka's log count as gone."""
        self.found.expired_objects += sum(read for _, read in self._left)
        self._left.clear()
        return self.found


def _way(evidence: Evidence, verdict: PartitionResult) -> _PartitionComparison:
    """All objects that the lists name claim their records; the bodies of those that are there are read."""
    tp, missing = verdict.topic_partition, evidence.bucket.missing
    named = sorted((o for o in evidence.objects.values() if o.topic_partition == tp), key=lambda o: o.first)
    settings = named[0].settings if named else evidence.lists.state.current_settings()
    way = _PartitionComparison(tp, named, [o.key not in missing for o in named], settings)
    way.position = verdict.start
    way.committed = verdict.committed
    way.end = max([verdict.committed, *(o.last + 1 for o in named if o.key not in missing)])
    if verdict.end is not None:
        way.end = min(way.end, verdict.end)
    return way


def _claimed(o: ClosedObject, *, read: bool) -> ExpectedObject:
    return ExpectedObject(
        key=o.key,
        path=o.path,
        first=o.first,
        last=o.last,
        offsets=o.offsets,
        sources=o.sources,
        settings=o.settings,
        read=read,
    )


def _with(verdict: PartitionResult, way: _PartitionComparison | None) -> PartitionResult:
    found = way.finish() if way else ComparisonResult(expired_objects=verdict.objects)
    wrong = sorted([*verdict.findings, *found.findings], key=lambda finding: finding.offset)
    found.findings = []
    return msgspec.structs.replace(verdict, compared=found, findings=tuple(wrong))
