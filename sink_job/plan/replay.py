"""Runs a sink's driver over a sample: its rounds, rotation, ledger and requests, with a bucket in memory.

The clock advances second by second. What stops a run is counted here instead: rejected records, whatever
`errors.tolerance` is.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from sink_job.api import memory_budget
from sink_job.api.enums import ExecutorMode, Tolerance
from sink_job.api.required_memory import SizingInputs, required
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import Committer
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.ledger.ownership import Owner
from sink_job.plan.planned_object import PlannedObject
from sink_job.plan.replay_log import ReplayClock, ReplayLog
from sink_job.plan.sample import Sample
from sink_job.records.batch import DEAD_LETTERS
from sink_job.registry.base import SchemaRegistry
from sink_job.s3 import S3Settings
from sink_job.s3.client import connected_by
from sink_job.s3.memory_bucket import MemoryBucket
from sink_job.tasks.write import RejectedRecord, TaskResult

TICK_MS = 1_000
"""How often a driver polls the log ends."""

MAX_TICKS = 20_000
"""Maximum number of polls of a replay: longer samples have fewer of them."""


@dataclass
class Replay:
    """What a run over the sample does. `requests` are those after the start, by S3's operation. `rejected` has the
    first rejected records of each topic-partition. `peak_open` is the most open objects of each topic at a time.
    `required` is the most memory that the operator's formula required, in bytes; `active` are the active
    topic-partitions then. `seconds` is the time between the first and the last round."""

    closed: list[PlannedObject] = field(default_factory=list)
    open: list[PlannedObject] = field(default_factory=list)
    records: Counter[TopicPartition] = field(default_factory=Counter)
    bytes: Counter[TopicPartition] = field(default_factory=Counter)
    ignored: Counter[TopicPartition] = field(default_factory=Counter)
    filtered: Counter[TopicPartition] = field(default_factory=Counter)
    rejected_count: Counter[TopicPartition] = field(default_factory=Counter)
    rejected: dict[TopicPartition, RejectedRecord] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    peak_open: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    tick: int = TICK_MS
    required: int = 0
    active: int = 0


def replay(sink: Sink, sample: Sample, *, registry: SchemaRegistry | None, cores: int, executors: int = 1) -> Replay:
    """Runs the sink over the sample. Raises ConfigurationError, and what the registry raises."""
    planned = planned_sink(sink)
    clock = ReplayClock(sample.start)
    settings = S3Settings(bucket="plan", region="plan", offset_tags=sink.spec.s3.offset_tags)
    found = Replay(tick=max(TICK_MS, (sample.end - sample.start) // MAX_TICKS))
    progress = _PlanProgress(planned, clock, sample, found, _Slots(planned, cores, executors))
    log = ReplayLog(sample, clock)
    bucket, memory = MemoryBucket(settings, clock), _memory(planned, cores)
    context = CoordinatorContext(
        s3=settings,
        admin=log,
        engine=log,
        clock=clock,
        steady_clock=clock,
        owner=Owner("plan", sink.namespace, sink.name, sink.sink_id),
        attempt="plan",
        stop=_NoPause(),
        registry=registry,
        budget=memory.budget,
        threads=1,
        part_buffers=memory.part_buffers,
    )
    with connected_by(bucket), _without_log():
        loop = Coordinator(planned, context, StopCondition(), progress).start()
        try:
            _run(loop, clock, sample, found, bucket)
        finally:
            loop.close()
    found.open = list(_open(loop, sample))
    return found


def _run(loop: RoundLoop, clock: ReplayClock, sample: Sample, found: Replay, bucket: MemoryBucket) -> None:
    loop.recover()
    before = Counter(bucket.meter.snapshot().requests)
    end = sample.end + loop.sink.spec.rounds.max_delay + found.tick
    while clock.now <= end:
        while loop.run_once():
            found.rounds += 1
        clock.now += found.tick
    found.requests = Counter(bucket.meter.snapshot().requests) - before


def planned_sink(sink: Sink) -> Sink:
    """The sink without what needs a real bucket or producer, or would end a replay at a rejected record."""
    spec = sink.spec
    dead_letters = spec.errors.dead_letters.model_copy(update={"topic": None, "max_share": 1.0})
    errors = spec.errors.model_copy(update={"tolerance": Tolerance.ALL, "dead_letters": dead_letters})
    none = ("encryption", "object_lock", "assume_role", "credentials", "proxy", "ca_secret")
    s3 = spec.s3.model_copy(update=dict.fromkeys(none))
    return sink.model_copy(update={"spec": spec.model_copy(update={"errors": errors, "s3": s3})})


def _registration(sink: Sink) -> int:
    """The bytes of registrations, if the driver runs the tasks."""
    is_local = sink.spec.executor.mode is ExecutorMode.LOCAL
    return memory_budget.registration_memory(sink.spec.tables) if is_local else 0


def _memory(sink: Sink, cores: int) -> memory_budget.MemoryBudget:
    """The memory of a run without `--memory`."""
    part_size, encoding = sink.spec.s3.part_size, memory_budget.encoding_memory(sink.spec.format)
    bounds = sink.spec.executor.memory
    total = memory_budget.default_total(
        cores=cores, part_size=part_size, encoding=encoding, least=bounds.min, most=1 << 60
    )
    return memory_budget.divide(total, cores=cores, part_size=part_size, encoding=encoding)


def _open(loop: RoundLoop, sample: Sample) -> Iterator[PlannedObject]:
    for name, state in loop.state.partitions.items():
        tp = TopicPartition.parse(name)
        if tp in sample.partitions:
            for each in state.open:
                encoded = sum(part.size for part in each.parts) + sum(extent.length for extent in each.staged)
                yield _planned(tp, sample, each.path, each.first, each.last, each.count, encoded)


def _planned(
    tp: TopicPartition, sample: Sample, path: str, first: int, last: int, records: int, size: int
) -> PlannedObject:
    found = sample.partitions[tp]
    return PlannedObject(tp, path, first, last, records, size, found.arrival(first), found.arrival(last))


@contextmanager
def _without_log() -> Iterator[None]:
    """What the driver would log is in the result: rejected records, and what it does."""
    logger = logging.getLogger("sink_job")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


class _NoPause(threading.Event):
    """The clock of a replay does not need to wait."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


class _Slots(NamedTuple):
    sink: Sink
    cores: int
    executors: int


class _PlanProgress(Progress):
    """Collects what the rounds of a replay do."""

    def __init__(self, sink: Sink, clock: ReplayClock, sample: Sample, found: Replay, slots: _Slots) -> None:
        super().__init__(sink, clock, slots=slots.cores)
        self._sample, self._found, self._of, self._now = sample, found, slots, clock

    def round_completed(
        self,
        results: Mapping[TopicPartition, TaskResult],
        commits: Committer,
        *,
        started: int,
        recorded: int,
        ended: int,
    ) -> None:
        super().round_completed(results, commits, started=started, recorded=recorded, ended=ended)
        for tp, result in results.items():
            self._add(tp, result)
        opened: Counter[str] = Counter()
        for name, state in commits.state.partitions.items():
            opened[TopicPartition.parse(name).topic] += len(state.open)
        self._found.peak_open |= opened
        self._size()

    def _add(self, tp: TopicPartition, result: TaskResult) -> None:
        found, counts = self._found, result.counts
        found.records[tp] += counts.records
        found.bytes[tp] += counts.bytes
        found.ignored[tp] += counts.ignored + counts.kept_nulls
        found.filtered[tp] += counts.filtered
        found.rejected_count[tp] += counts.rejected - counts.kept_nulls
        if result.rejected:
            found.rejected.setdefault(tp, result.rejected[0])
        for each, reason in zip(result.closed, result.reasons, strict=True):
            if each.path != DEAD_LETTERS:
                made = _planned(tp, self._sample, each.path, each.first, each.last, each.offsets.count, each.bytes)
                found.closed.append(made._replace(visible=self._now.now, reason=reason))

    def _size(self) -> None:
        memory = self.report().memory
        sink, cores, executors = self._of
        needed = required(
            SizingInputs(
                slots=cores,
                part_size=sink.spec.s3.part_size,
                encoding=memory_budget.encoding_memory(sink.spec.format),
                registration=_registration(sink),
                executors=executors,
                open_objects=memory.max_open_objects,
                held_bytes=memory.buffered_bytes + memory.spilled_bytes,
                active_partitions=memory.active_partitions,
                remainder_bytes=memory.remainder_bytes,
            )
        )
        self._found.required = max(self._found.required, needed)
        self._found.active = max(self._found.active, memory.active_partitions)
