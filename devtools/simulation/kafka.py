"""A simulated Kafka: logs with gaps, a consumer group whose offsets any program can change, and an engine that runs
tasks, some of them twice with a delayed second attempt."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from devtools.simulation.scheduler import Scheduler
from sink_job.api.errors import DataLoss, SinkError, TopicNotFound, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import GroupMember, TopicInfo
from sink_job.engine.types import ROW, Cancelled, Columns, ProcessorFactory, Range

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""The type of the headers of a batch. No simulated record has headers or a key."""

Commit = Callable[[TopicPartition, int, str], None]


@dataclass
class SimulatedLog:
    """A topic-partition: values and timestamps by offset. Offsets without a value hold no record (control records,
    compaction). `stable` is the last stable offset (exclusive)."""

    values: dict[int, bytes | None] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    stable: int = 0


@dataclass
class SimulatedKafka:
    """A cluster and a consumer group. `group` holds the offset, its metadata, and whether the sink committed it."""

    logs: dict[TopicPartition, SimulatedLog] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    group: dict[TopicPartition, tuple[int, str, bool]] = field(default_factory=dict)
    on_commit: Commit = lambda tp, offset, mark: None

    def partitions(self, topic: str) -> int:
        return sum(1 for tp in self.logs if tp.topic == topic)


class SimulatedAdmin:
    """The calls of `sink_job.kafka.admin.JavaKafkaAdmin`; the running actor makes them."""

    def __init__(
        self, kafka: SimulatedKafka, scheduler: Scheduler, trace: Callable[[str], None], draw: Callable[[], bool]
    ):
        """`draw` returns whether Kafka times out."""
        self._kafka = kafka
        self._scheduler = scheduler
        self._trace = trace
        self._draw = draw

    def request(self, what: str) -> None:
        """A request of another client. Raises TransientError if Kafka does not reply in time."""
        self._step(what)

    def _step(self, what: str) -> None:
        actor = self._scheduler.current
        self._scheduler.step()
        if actor is not None and self._draw():
            self._trace(f"{actor.name}: kafka {what}: timeout")
            actor.faults.add("kafka")
            self._scheduler.sleep(50_000)
            raise TransientError(f"Kafka: {what}: timeout in 50 s")

    def _logs(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, SimulatedLog]:
        missing = [tp for tp in partitions if tp not in self._kafka.logs]
        if missing:
            raise TopicNotFound(f"Kafka: {missing[0]} does not exist")
        return {tp: self._kafka.logs[tp] for tp in partitions}

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        self._step("ends")
        if self._scheduler.current is not None:
            self._scheduler.current.unproven = True
        return {tp: log.stable if committed else log.end for tp, log in self._logs(partitions).items()}

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self._step("starts")
        return {tp: log.start for tp, log in self._logs(partitions).items()}

    def offsets_for_times(self, partitions: Sequence[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        self._step("offsets_at")
        found = {}
        for tp, log in self._logs(partitions).items():
            later = [o for o, t in log.times.items() if t >= ms and o >= log.start]
            found[tp] = min(later, default=log.end)
        return found

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        self._step("topics")
        known = self._kafka.topics
        requested = sorted(known) if pattern is not None else list(names or ())
        missing = [name for name in requested if name not in known]
        if missing:
            raise TopicNotFound(f"Kafka: topic {missing[0]} does not exist")
        return {name: TopicInfo(known[name], self._kafka.partitions(name)) for name in requested}

    def cluster_id(self) -> str:
        return "simulated"

    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
    ) -> dict[TopicPartition, int]:
        self._step("group_offsets")
        known = {tp: self._kafka.group[tp] for tp in partitions if tp in self._kafka.group}
        return {
            tp: offset
            for tp, (offset, marked, _) in known.items()
            if f"{marked},".startswith(f"{metadata}," if metadata else "")
        }

    def group_metadata(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        self._step("group_marks")
        return {tp: self._kafka.group[tp][1] for tp in partitions if tp in self._kafka.group}

    def group_members(self, group: str) -> int:
        self._step("group_members")
        return 0

    def active_groups(self, topics: Sequence[str]) -> Sequence[GroupMember]:
        return ()

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        self._step("commit")
        self._logs(list(offsets))
        actor = self._scheduler.current
        self._trace(f"{actor.name if actor else '-'}: commit {_describe(offsets)} {metadata}")
        for tp, offset in offsets.items():
            self._kafka.group[tp] = (offset, metadata, True)
            self._kafka.on_commit(tp, offset, metadata)
        self._scheduler.step()

    def log_sizes(self, topics: Sequence[str]) -> None:
        return None


class SimulatedEngine:
    """Runs a round's tasks one after another in the driver's turn; some of them again as separate actors, whose results
    are discarded."""

    def __init__(
        self, kafka: SimulatedKafka, scheduler: Scheduler, trace: Callable[[str], None], rng: random.Random, late: float
    ) -> None:
        """`late` is the probability that a round has a late attempt."""
        self._kafka = kafka
        self._scheduler = scheduler
        self._trace = trace
        self._rng = rng
        self._late = late
        self._cancelled = False

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        order = sorted(ranges) + sorted(idle)
        self._rng.shuffle(order)
        driver = self._scheduler.current
        results: dict[TopicPartition, bytes] = {}
        while order:
            size = self._rng.randint(1, 4)
            share, order = order[:size], order[size:]
            if driver is not None and self._rng.random() < self._late:
                self._attempt_late(driver.name, share, ranges, inputs, columns, factory)
            results |= self._attempt(share, ranges, inputs, columns, factory)
            if self._cancelled:
                raise Cancelled
        return results

    def _attempt(
        self,
        share: Sequence[TopicPartition],
        ranges: Mapping[TopicPartition, Range],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        work: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        done = work()
        results = {tp: done(tp, inputs.get(tp, b""), self._batches(tp, ranges.get(tp), columns)) for tp in share}
        done.close()
        return results

    def _attempt_late(
        self,
        name: str,
        share: Sequence[TopicPartition],
        ranges: Mapping[TopicPartition, Range],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        work: ProcessorFactory,
    ) -> None:
        def attempt() -> None:
            try:
                self._attempt(share, ranges, inputs, columns, work)
            except SinkError as error:
                self._trace(f"a late task of {name} fails: {type(error).__name__}: {error}")

        actor = self._scheduler.spawn(f"late-task-of-{name}", attempt)
        actor.wake = self._scheduler.now + self._rng.choice((0, 0, 1_000, 30_000, 600_000))
        self._trace(f"a late attempt for {', '.join(map(str, share))} of {name}")

    def _batches(self, tp: TopicPartition, given: Range | None, columns: Columns) -> Iterator[pa.RecordBatch]:
        if given is None:
            return
        self._scheduler.step()
        log = self._kafka.logs[tp]
        size = self._rng.randint(1, 8)
        at = given.start
        while at < given.end:
            if log.start > at:
                raise DataLoss(f"{tp}: offsets from {at} are gone")
            chosen = [offset for offset in range(at, given.end) if offset in log.values][:size]
            if not chosen:
                return
            yield _batch(log, chosen, columns)
            at = chosen[-1] + 1

    def cancel(self) -> None:
        self._cancelled = True


def _batch(log: SimulatedLog, offsets: Sequence[int], columns: Columns) -> pa.RecordBatch:
    data = {
        "offset": pa.array(offsets, pa.int64()),
        **_payload([log.values[offset] for offset in offsets], columns.separator),
    }
    if columns.timestamp:
        data["timestamp"] = pa.array([log.times[offset] for offset in offsets], pa.int64())
    if columns.key:
        data["key"] = pa.nulls(len(offsets), pa.binary())
    if columns.headers:
        data["headers"] = pa.nulls(len(offsets), HEADERS)
    if columns.timestamp_type:
        data["timestamp_type"] = pa.array([0] * len(offsets), pa.int8())
    return pa.RecordBatch.from_pydict(data)


def _payload(values: Sequence[bytes | None], separator: bytes) -> dict[str, pa.Array]:
    if not separator:
        return {"value": pa.array(values, pa.binary())}
    return {ROW: pa.array([None if value is None else value + separator for value in values], pa.binary())}


def _describe(offsets: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{tp}={offset}" for tp, offset in sorted(offsets.items()))
