"""The driver: claims the ledger, then runs rounds until it is told to stop, is done, or may not go on.

Each round is plan → intent → tasks → record → publish → commit, and only a step whose predecessor is durable is begun.
The outside world comes in as values (`World`), clocks included, so that tests run the very same loop without Spark.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from sink_job.api.errors import DataError, DataLoss, TopicMissing, TryAgainLater
from sink_job.api.spec import IsolationLevel, OnDataLoss, Shaping, Sink, StartingOffsets, Tolerance
from sink_job.api.types import TopicPartition
from sink_job.kafka.types import TopicInfo
from sink_job.rounds import own
from sink_job.rounds.commit import SNAPSHOT_EVERY, Commits
from sink_job.rounds.ledger import Intent, Ledger
from sink_job.rounds.pipeline import Pipeline
from sink_job.rounds.plan import Plan, Sight, due, plan
from sink_job.rounds.rebuild import RebuildInput, RebuildResult, rebuild_range
from sink_job.rounds.recover import CleanUp, take_over
from sink_job.rounds.state import Kafka, NamedObject, OpenObject, PartitionState, Record, State, difference
from sink_job.rounds.tracker import Tracker
from sink_job.rounds.write import RoundSettings, TaskInput, TaskResult, write_range
from sink_job.s3 import S3, S3Settings, connect, lifecycle_warning, probe
from sink_job.spark.types import Cancelled, Columns, Engine, Range

LOOK_EVERY_MS = 30_000
"""How often new partitions and topics are looked for, and an idle driver looks whether it has been fenced."""
IDLE_WAIT_MS = 1_000
"""Longest pause between two looks at the log ends."""

K = TypeVar("K")
V = TypeVar("V")

_log = logging.getLogger(__name__)


class Admin(Protocol):
    """What the driver asks Kafka; see `sink_job.kafka.Admin`."""

    def ends(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> Mapping[TopicPartition, int]: ...
    def starts(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]: ...
    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> Mapping[str, TopicInfo]: ...
    def cluster_id(self) -> str: ...
    def group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]: ...
    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None: ...
    def sizes(self, topics: Sequence[str]) -> Mapping[TopicPartition, int] | None: ...


@dataclass(frozen=True, kw_only=True)
class World:
    """What the driver works with. `clock` gives ms since the epoch; `attempt` is unique to this process. `budget`,
    `threads` and `bodies` are per task: bytes held back, uploaders, part bodies in memory. `snapshot_every` is in
    records of the ledger, `look_every` (ms) between two looks for new partitions, or at the ledger's head while idle.
    """

    s3: S3Settings
    admin: Admin
    engine: Engine
    clock: Callable[[], int]
    owner: own.Owner
    attempt: str
    budget: int = 128 << 20
    threads: int = 6
    bodies: int = 3
    snapshot_every: int = SNAPSHOT_EVERY
    look_every: int = LOOK_EVERY_MS


@dataclass(frozen=True, kw_only=True)
class Goal:
    """When to end: never, or when the log ends seen at the start are recorded; `publish_open` then closes what is open.

    `take_over` takes a place or ledger from its owner, `start_new_ledger` goes on where a ledger was lost.
    """

    until_caught_up: bool = False
    publish_open: bool = False
    take_over: bool = False
    start_new_ledger: bool = False


class Driver:
    """One sink's driver. `run` does it all; `stop` may come from another thread or a signal handler."""

    def __init__(self, sink: Sink, world: World, goal: Goal, tracker: Tracker) -> None:
        self.sink = sink
        self.world = world
        self.goal = goal
        self.tracker = tracker
        self._shaping = sink.shaping()
        self._s3: S3 = connect(world.s3)
        self._root = own.ledger_root(self._shaping.s3.topics_dir, self._shaping.s3.directory_delimiter, sink.sink_id)
        self._ledger = Ledger(self._s3, self._root, world.attempt)
        self._pipeline = self._pipeline_of(self._shaping)
        self._stop = threading.Event()
        self._commits: Commits
        self._now = 0
        self._topics_at = 0
        self._head_at = 0
        self._intent: dict[str, tuple[int, int]] = {}
        self._record_bytes: dict[TopicPartition, float] = {}
        self._looked_at: dict[TopicPartition, int] = {}
        self._targets: dict[TopicPartition, int] = {}
        self._present: frozenset[str] = frozenset()

    # -- from outside ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the run within seconds, in the middle of a round if need be: what is not recorded never happened."""
        self._stop.set()
        self.world.engine.cancel()

    def run(self) -> None:
        """Runs until the goal is reached or `stop` is called.

        Raises the SinkError that ends it: LedgerFenced, DataError, DataLoss, ObjectConflict, ConfigurationError,
        TryAgainLater.
        """
        self._claim()
        try:
            self._recover()
            while not self._stop.is_set():
                if not self._round() and self._is_done():
                    break
        except Cancelled:
            _log.info("stopped in the middle of a round: it will be done anew")
        finally:
            self._commits.close()

    # -- start -------------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        probe(self._s3, self._root)
        advice = lifecycle_warning(self._s3, self._root)
        if advice:
            _log.warning("%s", advice)
        topics = self._topics()
        own.claim_all(
            self._s3,
            self._shaping,
            self._pipeline.extension,
            self.sink.sink_id,
            self.world.owner,
            topics,
            take_over=self.goal.take_over,
        )
        state = take_over(self._ledger, partial(self._claim_record, topics))
        self._now = state.clock
        self._commits = Commits(
            ledger=self._ledger,
            s3=self._s3,
            offsets=self.world.admin,
            group=self.sink.group_id,
            state=state,
            rebuild=self._rebuild_named,
            snapshot_every=self.world.snapshot_every,
        )
        self._head_at = self._topics_at = self._tick()
        self.tracker.claimed(state)

    def _claim_record(self, topics: Mapping[str, TopicInfo], state: State) -> Record:
        """The record that claims the ledger; a new sink's holds where every partition starts."""
        kafka = own.expect_same_topics(state.kafka, self._kafka(topics))
        found = self._new_partitions(state, topics)
        if not state.partitions and found:
            found = self._first_offsets(found)
            if not self.goal.start_new_ledger:
                own.expect_no_objects(self._s3, self._shaping, {tp: p.next for tp, p in found.items()})
        number = state.number + 1
        return Record(
            number=number,
            epoch=number,
            attempt=self.world.attempt,
            kind="claim",
            clock=max(state.clock, self.world.clock()),
            settings=self._shaping.model_dump_json(),
            kafka=kafka,
            partitions={str(tp): difference(None, p) for tp, p in found.items()},
        )

    def _kafka(self, topics: Mapping[str, TopicInfo]) -> Kafka:
        return Kafka(self.world.admin.cluster_id(), {name: info.id for name, info in topics.items()})

    def _topics(self) -> Mapping[str, TopicInfo]:
        kafka = self.sink.spec.kafka
        found = self.world.admin.topics(kafka.topics, pattern=kafka.topics_pattern)
        topics = {name: info for name, info in found.items() if self.sink.spec.reads(name)}
        self._present = frozenset(topics)
        return topics

    def _new_partitions(self, state: State, topics: Mapping[str, TopicInfo]) -> dict[TopicPartition, PartitionState]:
        """Partitions that the state does not know yet, from their beginning (P5)."""
        every = [TopicPartition(name, n) for name, info in topics.items() for n in range(info.partitions)]
        new = [tp for tp in every if state.partition(tp) is None]
        return {tp: starting(offset) for tp, offset in self.world.admin.starts(new).items()} if new else {}

    def _first_offsets(self, found: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
        """Where a sink without a ledger starts: at the group's offsets, else as `startingOffsets` says (P5)."""
        latest = self.sink.spec.kafka.starting_offsets is StartingOffsets.LATEST
        begin = self._ends(list(found)) if latest else {tp: p.next for tp, p in found.items()}
        offsets = {**begin, **self.world.admin.group_offsets(self.sink.group_id, list(found))}
        return {tp: starting(offset) for tp, offset in offsets.items()}

    def _recover(self) -> None:
        """Rolls the ledger forward: what is named becomes visible, litter goes, what older settings began is closed."""
        self._commits.publish(self._now)
        CleanUp(self._s3, self._ledger, self._commits.epoch).run(self._commits.state, self._commits.epoch)
        self._finish_old()
        self._estimate_sizes()
        if self.goal.until_caught_up:
            self._targets = dict(self._ends(self._assigned()))
        self.tracker.recovered()

    def _estimate_sizes(self) -> None:
        """How large records are, from Kafka's own sizes, so that the first round need not feel its way."""
        tps = self._assigned()
        sizes = self.world.admin.sizes(sorted({tp.topic for tp in tps})) if tps else None
        if sizes:
            starts, ends = self.world.admin.starts(tps), self._ends(tps)
            for tp in tps:
                if sizes.get(tp) and ends[tp] > starts[tp]:
                    self._record_bytes[tp] = max(1.0, sizes[tp] / (ends[tp] - starts[tp]))

    def _finish_old(self) -> None:
        """Closes objects begun under other settings than those in force, or of topics no longer read (P8)."""
        state = self._commits.state
        current, assigned = state.current_settings(), {tp.topic for tp in self._assigned()}
        for number in sorted({o.settings for p in state.partitions.values() for o in p.open}):
            todo = [
                tp
                for tp, p in self._partitions().items()
                if any(o.settings == number for o in p.open) and (number != current or tp.topic not in assigned)
            ]
            if todo:
                _log.info("closing what was begun under the settings of record %d", number)
                self._cut(Plan({}, todo), close=True, settings=number)

    # -- rounds ------------------------------------------------------------------------------------------------------

    def _tick(self) -> int:
        """The round clock: never goes back, not even over restarts."""
        self._now = max(self._now, self.world.clock())
        return self._now

    def _round(self) -> bool:
        """Runs a round if there is reason for one; returns whether it did."""
        now = self._tick()
        if now - self._topics_at >= self.world.look_every:
            self._look_for_topics(now)
        try:
            return self._read_on(now)
        except TopicMissing:
            if not self._is_gone(now):
                raise
            return True

    def _read_on(self, now: int) -> bool:
        ends = self._ends(self._assigned())
        self.tracker.sees(ends)
        if any(end < self._state_of(tp).next for tp, end in ends.items()):
            self._look_for_topics(now)  # a log that ends before what was read of it may be another topic's
        planned = plan(self._sights(ends, now), self.sink.spec.rounds, now, eager=self.goal.until_caught_up)
        if planned.empty:
            self._idle(now)
            return False
        try:
            self._cut(planned)
        except DataLoss:
            if self.sink.spec.on_data_loss is OnDataLoss.FAIL or not self._skip_lost(planned):
                raise
        return True

    def _sights(self, ends: Mapping[TopicPartition, int], now: int) -> dict[TopicPartition, Sight]:
        rotation = self.sink.spec.rotation
        sights = {}
        for tp, end in ends.items():
            state = self._state_of(tp)
            limit = min(end, self._targets.get(tp, 0)) if self.goal.until_caught_up else end
            sights[tp] = Sight(
                next=state.next,
                end=limit,
                record_bytes=self._record_bytes.get(tp),
                looked_at=self._looked_at.get(tp),
                due=due(state, rotation, now),
            )
        return sights

    def _cut(self, planned: Plan, *, close: bool = False, settings: int | None = None) -> None:
        """One round: tasks, record, publish, commit."""
        commits = self._commits
        number = settings or commits.state.current_settings()
        self._intend(planned)
        started = self.world.clock()
        results = self._run_tasks(planned, number, close)
        lost = {tp: r.lost for tp, r in results.items() if r.lost is not None}
        good = {tp: r for tp, r in results.items() if r.lost is None}
        for key, upload in (upload for r in results.values() if r.lost is not None for upload in r.begun):
            self._s3.abort(key, upload)
        states = {tp: r.state for tp, r in good.items()} | (self._rebuild_open(lost) if lost else {})
        commits.record(
            clock=self._now,
            partitions=states,
            named=[o for r in good.values() for o in r.named],
            rotations=[rotation for r in good.values() for rotation in r.rotations],
            begun=[upload for r in good.values() for upload in r.begun],
        )
        recorded = self.world.clock()
        commits.publish(self._now)
        self._learn(good)
        self.tracker.round_done(good, commits, started=started, recorded=recorded, ended=self.world.clock())
        if commits.maintain():
            CleanUp(self._s3, self._ledger, commits.epoch).run(commits.state, commits.state.number)
        self._stop_at_errors(good)

    def _run_tasks(self, planned: Plan, settings: int, close: bool) -> dict[TopicPartition, TaskResult]:
        tps = [*planned.ranges, *planned.idle]
        states = {tp: self._state_of(tp) for tp in tps}
        inputs = {
            tp: msgspec.msgpack.encode(
                TaskInput(states[tp], planned.ranges[tp][1] if tp in planned.ranges else states[tp].next, close)
            )
            for tp in tps
        }
        text = self._commits.state.settings[settings]
        pipeline = self._pipeline_of(Shaping.model_validate_json(text))
        raw = self._engine_run(
            ranges={tp: Range(*r) for tp, r in planned.ranges.items()},
            idle=planned.idle,
            inputs=inputs,
            columns=pipeline.columns,
            fn=partial(write_range, self._round_settings(settings)),
        )
        return {tp: msgspec.msgpack.decode(result, type=TaskResult) for tp, result in raw.items()}

    def _engine_run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition] = (),
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        fn: Callable[..., bytes],
    ) -> dict[TopicPartition, bytes]:
        """Runs tasks. Raises DataLoss, with the offsets, where Kafka no longer holds a range."""
        try:
            return self.world.engine.run(ranges=ranges, idle=idle, inputs=inputs, columns=columns, fn=fn)
        except (DataLoss, TryAgainLater):
            self._expect_held({tp: r.start for tp, r in ranges.items()})
            raise

    def _round_settings(self, settings: int) -> RoundSettings:
        state = self._commits.state
        return RoundSettings(
            s3=self.world.s3,
            root=self._root,
            shaping=state.settings[settings],
            settings=settings,
            tolerant=self.sink.spec.errors.tolerance is Tolerance.ALL,
            on_null=self.sink.spec.errors.on_null_value,
            epoch=self._commits.epoch,
            round=state.number + 1,
            now=self._now,
            budget=self.world.budget,
            threads=self.world.threads,
            bodies=self.world.bodies,
        )

    def _pipeline_of(self, shaping: Shaping) -> Pipeline:
        return Pipeline.of(shaping, self.sink.spec.errors)

    def _intend(self, planned: Plan) -> None:
        """Writes down where this epoch's rounds may have opened objects, before any is opened (P10)."""
        state = self._commits.state
        for tp in planned.idle:
            self._intent.setdefault(str(tp), (self._oldest(tp), self._state_of(tp).next))
        for tp, (_, end) in planned.ranges.items():
            start = self._intent.get(str(tp), (self._oldest(tp), 0))[0]
            self._intent[str(tp)] = (start, end)
        self._ledger.intend(
            Intent(epoch=self._commits.epoch, round=state.number + 1, clock=self._now, ranges=self._intent)
        )

    def _oldest(self, tp: TopicPartition) -> int:
        """The first offset at which this epoch may begin an upload: an inherited open object may not have one yet."""
        state = self._state_of(tp)
        return min([o.first for o in state.open] + [state.next])

    def _learn(self, results: Mapping[TopicPartition, TaskResult]) -> None:
        for tp, result in results.items():
            self._looked_at[tp] = self._now
            if result.counts.records:
                self._record_bytes[tp] = result.counts.bytes / result.counts.records

    def _stop_at_errors(self, results: Mapping[TopicPartition, TaskResult]) -> None:
        for tp, result in sorted(results.items()):
            if result.error is not None:
                raise DataError(tp.topic, tp.partition, result.error.offset, result.error.message)

    # -- between rounds ----------------------------------------------------------------------------------------------

    def _idle(self, now: int) -> None:
        if now - self._head_at >= self.world.look_every:
            self._ledger.check_head(self._commits.state)
            self._head_at = now
        if not self._is_done():
            self._stop.wait(min(IDLE_WAIT_MS, max(1, self.sink.spec.rounds.max_delay)) / 1000)

    def _look_for_topics(self, now: int) -> None:
        """New partitions, and new topics of a pattern, start at their beginning: recorded when they are found."""
        self._topics_at = now
        topics = self._topics()
        state = self._commits.state
        kafka = own.expect_same_topics(state.kafka, self._kafka(topics))
        found = self._new_partitions(state, topics)
        new_topics = {tp.topic for tp in found} - {tp.topic for tp in self._partitions()}
        own.claim_all(
            self._s3,
            self._shaping,
            self._pipeline.extension,
            self.sink.sink_id,
            self.world.owner,
            sorted(new_topics),
            take_over=self.goal.take_over,
        )
        if found:
            _log.info("found %d new partitions: %s", len(found), ", ".join(map(str, sorted(found)[:5])))
            self._commits.record(clock=now, partitions=found, kafka=kafka)

    def _is_gone(self, now: int) -> bool:
        """Whether a topic that the pattern matched was deleted since the last look: the others go on without it."""
        before = self._present
        self._look_for_topics(now)
        gone = before - self._present
        if gone:
            _log.warning("deleted in Kafka: %s; what was read of it is published", ", ".join(sorted(gone)))
            self._finish_old()
        return bool(gone)

    def _is_done(self) -> bool:
        """Whether the goal is reached; closes what is open first, if it has to."""
        if not self.goal.until_caught_up:
            return False
        partitions = self._partitions()
        if any(partitions[tp].next < self._targets.get(tp, 0) for tp in self._assigned()):
            return False
        still_open = [tp for tp, p in partitions.items() if p.open]
        if self.goal.publish_open and still_open:
            self._cut(Plan({}, still_open), close=True)
        return True

    # -- what is gone ------------------------------------------------------------------------------------------------

    def _expect_held(self, starts: Mapping[TopicPartition, int]) -> None:
        """Raises DataLoss when Kafka's logs begin behind these offsets."""
        held = self.world.admin.starts(list(starts))
        gone = {tp: held[tp] for tp, start in starts.items() if held.get(tp, start) > start}
        if not gone:
            return
        told = ", ".join(f"{tp}: {starts[tp]} to {first - 1}" for tp, first in sorted(gone.items()))
        raise DataLoss(
            f"Kafka no longer holds offsets that are not in S3 yet ({told}): retention has eaten them. Give the topic "
            "a longer retention; to go on without them, set spec.onDataLoss: Continue."
        )

    def _skip_lost(self, planned: Plan) -> bool:
        """Records that offsets which Kafka has dropped will never be in an object; returns whether there are any."""
        held = self.world.admin.starts(list(planned.ranges))
        states = {}
        for tp, (start, _) in planned.ranges.items():
            if held[tp] > start:
                _log.warning("%s: offsets %d to %d are lost: going on behind them", tp, start, held[tp] - 1)
                state = self._state_of(tp)
                committable = state.committable if state.open else held[tp]
                states[tp] = msgspec.structs.replace(state, next=held[tp], committable=committable)
        if states:
            self._commits.record(clock=self._now, partitions=states)
            self.tracker.lost(sum(states[tp].next - planned.ranges[tp][0] for tp in states))
        return bool(states)

    def _rebuild_named(self, objects: Sequence[NamedObject]) -> list[NamedObject]:
        rebuilt: list[NamedObject] = []
        for (tp, settings), group in _grouped(objects, lambda o: (o.topic_partition, o.settings)).items():
            rebuilt += self._rebuild(tp, settings, RebuildInput(named=tuple(group))).named
        self.tracker.rebuilt(len(rebuilt))
        return rebuilt

    def _rebuild_open(self, lost: Mapping[TopicPartition, str]) -> dict[TopicPartition, PartitionState]:
        """The states of these partitions, their open objects made again under new uploads."""
        states = {}
        for tp, why in lost.items():
            _log.warning("%s: %s: rebuilding its open objects from Kafka", tp, why)
            state = self._state_of(tp)
            fresh: dict[str, OpenObject] = {}
            for settings, group in _grouped(state.open, lambda o: o.settings).items():
                result = self._rebuild(tp, settings, RebuildInput(open=tuple(group)))
                fresh |= {o.path: o for o in result.open}
            self._abort_replaced(state, tp)
            states[tp] = msgspec.structs.replace(state, open=tuple(fresh[o.path] for o in state.open))
            self.tracker.rebuilt(len(fresh))
        return states

    def _abort_replaced(self, state: PartitionState, tp: TopicPartition) -> None:
        for o in state.open:
            if o.upload:
                shaping = Shaping.model_validate_json(self._commits.state.settings[o.settings])
                self._s3.abort(self._pipeline_of(shaping).key(tp, o.path, o.first), o.upload)

    def _rebuild(self, tp: TopicPartition, settings: int, wanted: RebuildInput) -> RebuildResult:
        start, end = wanted.stretch()
        shaping = Shaping.model_validate_json(self._commits.state.settings[settings])
        raw = self._engine_run(
            ranges={tp: Range(start, end)},
            inputs={tp: msgspec.msgpack.encode(wanted)},
            columns=self._pipeline_of(shaping).columns,
            fn=partial(rebuild_range, self._round_settings(settings)),
        )
        result = msgspec.msgpack.decode(raw[tp], type=RebuildResult)
        for missing in result.missing:
            raise DataLoss(
                f"an unpublished object of {tp} (path {missing.path}, offsets {missing.first}-{missing.last}) is gone, "
                f"and Kafka holds {missing.found.count} of its {missing.wanted.count} records: it can't be made again."
            )
        return result

    # -- small things ------------------------------------------------------------------------------------------------

    def _partitions(self) -> dict[TopicPartition, PartitionState]:
        return {TopicPartition.parse(name): p for name, p in self._commits.state.partitions.items()}

    def _ends(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The log ends, as the reader will see them: at read_committed the last stable offsets."""
        committed = self.sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED
        return self.world.admin.ends(partitions, committed=committed)

    def _assigned(self) -> list[TopicPartition]:
        """The partitions that are read: the ledger's, as far as the manifest still names their topics and Kafka still
        has them."""
        return [tp for tp in self._partitions() if tp.topic in self._present]

    def _state_of(self, tp: TopicPartition) -> PartitionState:
        return self._commits.state.partitions[str(tp)]


def starting(offset: int) -> PartitionState:
    """A partition of which nothing has been read: `offset` is the first to read."""
    return PartitionState(next=offset, committable=offset, rotation_start=offset, written_to=offset)


def _grouped(values: Sequence[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    groups: dict[K, list[V]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
