"""The driver: claims the ledger, then runs rounds until it is told to stop, is done, or may not go on.

Each round is plan → intent → tasks → record → publish → commit, and only a step whose predecessor is durable is begun.
The outside world comes in as values (`World`), clocks included, so that tests run the very same loop without Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sink_job.api.errors import DataError, DataLoss, TopicNotFound, TransientError
from sink_job.api.spec import IsolationLevel, OnDataLoss, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS, Committer
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.hanging_transactions import HangingTransactionDetector
from sink_job.coordinator.log_truncation import TruncationDetector
from sink_job.coordinator.planner import PartitionView, RoundPlan, is_close_due, plan
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.rebuild import Rebuilder
from sink_job.coordinator.retention import RetentionChecker
from sink_job.coordinator.task_dispatcher import TaskDispatcher
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.kafka_admin import TopicInfo
from sink_job.engine.types import Cancelled
from sink_job.ledger import data_loss, ownership
from sink_job.ledger.clocks import HostClock, report_set_back, without_clock
from sink_job.ledger.fencing import ownership_checked_first
from sink_job.ledger.generations import shaping_below
from sink_job.ledger.orphan_cleanup import OrphanCleaner
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, PartitionState, Record
from sink_job.ledger.store import Ledger
from sink_job.ledger.takeover import take_over
from sink_job.ledger.transitions import diff
from sink_job.s3 import S3Client, connect, lifecycle_warning, probe
from sink_job.writer.partition_writer import TaskResult
from sink_job.writer.record_pipeline import RecordPipeline

IDLE_WAIT_MS = 1_000
"""Longest pause between two looks at the log ends."""

MAX_TRUNCATION_CHECKS = 10
"""How often a log is looked at that ends before what was read of it, before that is believed."""

MAX_REPORTED_REJECTIONS = 3
"""Refused records of a topic-partition that a round tells one by one."""

_log = logging.getLogger(__name__)


class Coordinator:
    """One sink's driver. `run` does it all; `stop` may come from another thread or a signal handler."""

    short_wait_ms = 1_000
    """Pause between those looks."""

    def __init__(self, sink: Sink, world: CoordinatorContext, goal: StopCondition, tracker: Progress) -> None:
        self.sink = sink
        self.context = world
        self.stop_condition = goal
        self.progress = tracker
        self._shaping = sink.shaping()
        self._s3: S3Client = connect(world.s3)
        self._root = ownership.ledger_root(self._shaping.s3.topics_dir, sink.sink_id)
        self._ledger = Ledger(self._s3, self._root, world.attempt)
        self._pipeline = RecordPipeline.of(self._shaping, sink.spec.errors)
        self._discovery = TopicDiscovery(sink, world.admin)
        held = RetentionChecker(self._discovery, lambda: self._stop.wait(self.short_wait_ms / 1000))
        self._dispatcher = TaskDispatcher(sink, world, self._ledger, held)
        self._rebuilder = Rebuilder(self._dispatcher)
        committed = sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED
        every, after = world.discovery_interval_ms, world.hanging_after_ms
        self._hanging = (
            HangingTransactionDetector(world.admin, world.clock, every=every, after=after) if committed else None
        )
        self._clock = HostClock(world.clock, world.store_clock, self._s3, world.steady_clock)
        self._stop = world.stop
        self._committer: Committer
        self._now = 0
        self._topics_checked_ms = 0
        self._head_checked_ms = 0
        self._group_checked_ms = 0
        self._record_bytes: dict[TopicPartition, float] = {}
        self._last_read_ms: dict[TopicPartition, int] = {}
        self._truncation = TruncationDetector(sink.spec.on_data_loss, lambda tp: self._state_of(tp).next)
        self._targets: dict[TopicPartition, int] = {}

    # -- from outside ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the run within seconds, in the middle of a round if need be: what is not recorded never happened."""
        self._stop.set()
        self.context.engine.cancel()

    def run(self) -> None:
        """Runs until the goal is reached or `stop` is called.

        Raises the SinkError that ends it: LedgerFenced, DataError, DataLoss, ObjectConflict, ConfigurationError,
        TransientError.
        """
        if not self.stop_condition.until_caught_up and self.stop_condition.publish_open and not self._ledger.exists():
            _log.info("there is no ledger at s3://%s/%s: nothing was ever opened", self._s3.bucket, self._root)
            return
        topics = self._claim()
        try:
            with ownership_checked_first(self._ledger, lambda: self._committer.state):
                self._acquire_generation(topics)
                self._rounds()
        finally:
            self._committer.close()

    def _rounds(self) -> None:
        try:
            self._recover()
            while not self._stop.is_set():
                if not self._round() and self._is_caught_up():
                    break
        except Cancelled:
            _log.info("stopped in the middle of a round: it will be done anew")

    # -- start -------------------------------------------------------------------------------------------------------

    def _claim(self) -> Iterable[str]:
        """Takes the ledger over; returns the topics."""
        self._clock.now()
        if not self.stop_condition.start_new_ledger and not self._ledger.exists():
            marks = self._discovery.group_metadata(self._discovery.discover())
            ownership.check_no_other_ledger(self._ledger.url, self.sink.group_id, marks)
        probe(self._s3, self._root)
        advice = lifecycle_warning(self._s3, self._root)
        if advice:
            _log.warning("%s", advice)
        topics = self._discovery.refresh()
        self._acquire(topics)
        state = take_over(self._ledger, partial(self._claim_record, topics))
        self._now = state.clock
        self._committer = Committer(
            ledger=self._ledger,
            s3=self._s3,
            offsets=self.context.admin,
            group=self.sink.group_id,
            state=state,
            rebuild=self._rebuild_closed,
            clock=self.context.clock,
            snapshot_every=self.context.snapshot_every,
        )
        self._advance_clock()
        self._head_checked_ms = self._topics_checked_ms = self._group_checked_ms = self.context.clock()
        self.progress.claimed(state)
        return topics

    def _acquire(self, topics: Iterable[str]) -> None:
        ownership.claim_all(
            self._s3,
            self._shaping,
            self._pipeline.extension,
            self.sink.sink_id,
            self.context.owner,
            topics,
            take_over=self.stop_condition.take_over,
        )

    def _acquire_generation(self, topics: Iterable[str]) -> None:
        """Claims the topics also below the topicsDir that a reset has chosen for this generation, if it has."""
        topics_dir = self._committer.state.topics_dir
        if topics_dir not in (None, self._shaping.s3.topics_dir):
            shaping, take_over = shaping_below(self._shaping, topics_dir), self.stop_condition.take_over
            extension, owner = self._pipeline.extension, self.context.owner
            ownership.claim_topics(self._s3, shaping, extension, owner, topics, take_over=take_over)

    def _claim_record(self, topics: Mapping[str, TopicInfo], state: LedgerState) -> Record:
        """The record that claims the ledger; a new sink's holds where every partition starts. These offsets are
        committed to the group once the claim is the ledger's head: an earlier commit could follow a rival's claim."""
        kafka = ownership.check_topic_ids(state.kafka, self._discovery.topic_ids(topics))
        found = self._discovery.new_partitions(state, topics)
        if not state.partitions and found:
            found = self._discovery.initial_offsets(found)
            starts = {tp: p.next for tp, p in found.items()}
            if not self.stop_condition.start_new_ledger:
                ownership.check_no_objects(self._s3, self._shaping, starts)
            self._discovery.check_no_members()
        number = state.number + 1
        return Record(
            number=number,
            epoch=number,
            attempt=self.context.attempt,
            kind="claim",
            clock=max(state.clock, self._clock.now()),
            settings=shaping_below(self._shaping, state.topics_dir).model_dump_json(),
            kafka=kafka,
            partitions={str(tp): diff(None, p) for tp, p in found.items()},
        )

    def _recover(self) -> None:
        """Rolls the ledger forward: what is named becomes visible, litter goes, what older settings began is closed."""
        self._committer.publish(self._now)
        OrphanCleaner(self._s3, self._ledger, self._committer.epoch).run(self._committer.state, self._committer.epoch)
        self._close_superseded()
        self._set_clock_back()
        self._record_bytes = self._discovery.record_bytes(self._assigned())
        if self.stop_condition.until_caught_up:
            self._targets = dict(self._discovery.end_offsets(self._assigned()))
        elif self.stop_condition.publish_open:
            self._targets = {tp: self._state_of(tp).next for tp in self._assigned()}
        self.progress.recovered(self._committer)

    def _set_clock_back(self) -> None:
        """Sets back a ledger's clock that is ahead. What is open is closed under that clock first: members are found by
        offset ranges and clocks (P2)."""
        ahead_at = self._committer.state.clock
        host = self._clock.to_set_back(ahead_at)
        if host is None:
            return
        self._close(self._still_open)
        self._committer.record(clock=host, partitions=without_clock(self._partitions()), sets_clock_back=True)
        self._now = host
        report_set_back(ahead_at, host)

    def _close_superseded(self) -> None:
        """Closes objects begun under other settings than those in force, or of topics no longer read (P8)."""
        self._close(self._superseded)

    def _superseded(self) -> dict[int, list[TopicPartition]]:
        """By their settings, the partitions with such objects."""
        current, assigned = self._committer.state.current_settings(), {tp.topic for tp in self._assigned()}
        old: dict[int, list[TopicPartition]] = {}
        for tp, p in self._partitions().items():
            for number in {o.settings for o in p.open if o.settings != current or tp.topic not in assigned}:
                old.setdefault(number, []).append(tp)
        return old

    def _close(self, wanted: Callable[[], Mapping[int, list[TopicPartition]]]) -> None:
        """Closes what is open in these partitions, by settings. An object whose upload or leftovers are lost is made
        again first, which leaves it open; so until nothing is."""
        for _ in range(MAX_REBUILD_ATTEMPTS):
            todo = wanted()
            if not todo:
                return
            for number, partitions in sorted(todo.items()):
                _log.info("closing what is open under the settings of record %d", number)
                self._run_round(RoundPlan({}, partitions), close=True, settings=number)
        if wanted():
            raise TransientError(
                f"uploads to s3://{self._s3.bucket} disappear while objects are closed ({MAX_REBUILD_ATTEMPTS} "
                "times in a row)"
            )

    # -- rounds ------------------------------------------------------------------------------------------------------

    def _advance_clock(self) -> int:
        """The round clock: it goes back only where nothing is open (`_set_clock_back`), not even over restarts.

        Raises ClockSkew when the host's clock is too far from the store's.
        """
        self._now = max(self._now, self._clock.now())
        self.progress.clock_jumps(self._clock.jumps)
        return self._now

    def _round(self) -> bool:
        """Runs a round if there is reason for one; returns whether it did."""
        now = self._advance_clock()
        if self._is_time(self._topics_checked_ms):
            self._discover_topics(now)
        if self._is_time(self._group_checked_ms):
            self._group_checked_ms = self.context.clock()
            self._committer.refresh_offsets(self._assigned())
        try:
            return self._poll_and_run(now)
        except TopicNotFound:
            if not self._discover_topics(now):
                raise
            return True

    def _poll_and_run(self, now: int) -> bool:
        ends = self._discovery.end_offsets(self._assigned())
        self.progress.log_ends(ends)
        if self._hanging is not None:
            self.progress.hanging(self._hanging.check(ends))
        if self._truncation.truncated(ends):
            self._discover_topics(now)  # a log that ends before what was read of it may be another topic's
            ends = self._check_log_ends()
        host = self.context.clock()  # the round clock waits where the ledger's is ahead of it
        planned = plan(self._partition_views(ends, now), self.sink.spec.rounds, host, eager=self.stop_condition.ends)
        if planned.empty:
            self._idle()
            return False
        try:
            self._run_round(planned)
        except DataLoss:
            if self.sink.spec.on_data_loss is OnDataLoss.FAIL or not self._skip_lost(planned):
                raise
        return True

    def _check_log_ends(self) -> Mapping[TopicPartition, int]:
        """The ends, once no log is too short: a broker that has just become the leader may know less for a moment.

        One that stays so has lost its tail; with `onDataLoss: Continue` it is read on from where it was left.
        """
        for _ in range(MAX_TRUNCATION_CHECKS):
            ends = self._discovery.end_offsets(self._assigned())
            short = self._truncation.truncated(ends)
            if not short or self._stop.wait(self.short_wait_ms / 1000):
                return ends
        self._truncation.report(short)
        return ends

    def _partition_views(self, ends: Mapping[TopicPartition, int], now: int) -> dict[TopicPartition, PartitionView]:
        rotation = self.sink.spec.rotation
        sights = {}
        for tp, end in ends.items():
            state = self._state_of(tp)
            limit = min(end, self._targets.get(tp, 0)) if self.stop_condition.ends else end
            sights[tp] = PartitionView(
                next=state.next,
                end=limit,
                record_bytes=self._record_bytes.get(tp),
                last_read_ms=self._last_read_ms.get(tp),
                is_close_due=is_close_due(state, rotation, now),
            )
        return sights

    def _run_round(self, planned: RoundPlan, *, close: bool = False, settings: int | None = None) -> None:
        """One round: tasks, record, publish, commit."""
        commits = self._committer
        number = settings or commits.state.current_settings()
        started = self.context.clock()
        results = self._dispatcher.write(planned, commits.state, now=self._now, settings=number, close=close)
        if planned.ranges:
            self._check_same_topics()
        lost = {tp: r.lost for tp, r in results.items() if r.lost is not None}
        good = {tp: r for tp, r in results.items() if r.lost is None}
        for key, upload in (upload for r in results.values() if r.lost is not None for upload in r.started_uploads):
            self._s3.abort(key, upload)
        self._rebuilder.written(good)
        mended, given_up = self._rebuild_open(lost)
        replaced = self._rebuilder.uploads({tp: self._state_of(tp) for tp in mended}, commits.state)
        states = {tp: r.state for tp, r in good.items()} | mended
        commits.record(
            clock=self._now,
            partitions=states,
            closed=[o for r in good.values() for o in r.closed],
            rotations=[rotation for r in good.values() for rotation in r.rotations],
            lost=given_up,
            started_uploads=[upload for r in good.values() for upload in r.started_uploads]
            + self._rebuilder.uploads(mended, commits.state),
        )
        for key, upload in replaced:
            self._s3.abort(key, upload)
        recorded = self.context.clock()
        _log_rejected(good)
        commits.publish(self._now)
        self._update_record_sizes(good)
        self.progress.round_completed(good, commits, started=started, recorded=recorded, ended=self.context.clock())
        if commits.maybe_snapshot():
            OrphanCleaner(self._s3, self._ledger, commits.epoch).run(commits.state, commits.state.number)
        self._stop_at_errors(good)

    def _check_same_topics(self) -> None:
        """What was read is recorded only when it was read from the topics that the ledger knows: one that was made anew
        between two looks has records at the same offsets. A topic that is gone by now was the right one."""
        try:
            now = self._discovery.topic_ids(self._discovery.discover())
        except TopicNotFound:
            return
        ownership.check_topic_ids(self._committer.state.kafka, now)

    def _update_record_sizes(self, results: Mapping[TopicPartition, TaskResult]) -> None:
        for tp, result in results.items():
            self._last_read_ms[tp] = self.context.clock()
            if result.counts.records:
                self._record_bytes[tp] = result.counts.bytes / result.counts.records

    def _stop_at_errors(self, results: Mapping[TopicPartition, TaskResult]) -> None:
        for tp, result in sorted(results.items()):
            if result.error is not None:
                raise DataError(tp.topic, tp.partition, result.error.offset, result.error.message)

    # -- between rounds ----------------------------------------------------------------------------------------------

    def _is_time(self, last: int) -> bool:
        """Whether to look again: by this host's clock, as the round clock waits where the ledger's is ahead of it."""
        return abs(self.context.clock() - last) >= self.context.discovery_interval_ms

    def _idle(self) -> None:
        if self._is_time(self._head_checked_ms):
            self._ledger.check_head(self._committer.state)
            self._head_checked_ms = self.context.clock()
        if not self._is_caught_up():
            self._stop.wait(min(IDLE_WAIT_MS, max(1, self.sink.spec.rounds.max_delay)) / 1000)

    def _discover_topics(self, now: int) -> bool:
        """New partitions, and new topics of a pattern, start at their beginning: recorded when they are found. Topics
        that are gone are told, and what was read of them is published; returns whether there are any."""
        self._topics_checked_ms = self.context.clock()
        before = self._discovery.current
        topics = self._discovery.refresh()
        state = self._committer.state
        kafka = ownership.check_topic_ids(state.kafka, self._discovery.topic_ids(topics))
        found = self._discovery.new_partitions(state, topics)
        fresh = sorted({tp.topic for tp in found} - {tp.topic for tp in self._partitions()})
        if fresh:
            self._acquire(fresh)
            self._acquire_generation(fresh)
        if found:
            _log.info("found %d new partitions: %s", len(found), ", ".join(map(str, sorted(found)[:5])))
            self._committer.record(clock=now, partitions=found, kafka=kafka)
        gone = before - self._discovery.current
        if gone:
            _log.warning("deleted in Kafka: %s; what was read of it is published", ", ".join(sorted(gone)))
            self._close_superseded()
        return bool(gone)

    def _is_caught_up(self) -> bool:
        """Whether the goal is reached; closes what is open first, if it has to."""
        if not self.stop_condition.ends:
            return False
        partitions = self._partitions()
        if any(partitions[tp].next < self._targets.get(tp, 0) for tp in self._assigned()):
            return False
        if self.stop_condition.publish_open:
            self._close(self._still_open)
        return True

    def _still_open(self) -> dict[int, list[TopicPartition]]:
        partitions = [tp for tp, p in self._partitions().items() if p.open]
        return {self._committer.state.current_settings(): partitions} if partitions else {}

    # -- what is gone ------------------------------------------------------------------------------------------------

    def _skip_lost(self, planned: RoundPlan) -> bool:
        """Records that offsets which Kafka has dropped will never be in an object; returns whether there are any. What
        was planned may be recorded by now, where an object of it could not be rebuilt: that is not read again."""
        held = self.context.admin.beginning_offsets(list(planned.ranges))
        before = {tp: self._state_of(tp) for tp in planned.ranges}
        states = {tp: data_loss.skip_deleted(p, held[tp]) for tp, p in before.items() if held[tp] > p.next}
        for tp in states:
            _log.warning("%s: offsets %d to %d are lost: going on behind them", tp, before[tp].next, held[tp] - 1)
        if states:
            self._committer.record(clock=self._now, partitions=states)
            self.progress.add_lost(sum(p.next - before[tp].next for tp, p in states.items()))
        return bool(states)

    def _rebuild_closed(self, objects: Sequence[ClosedObject]) -> data_loss.RebuildOutcome:
        rebuilt = self._rebuilder.closed(objects, self._committer.state, self._now)
        self._count_rebuilt(len(rebuilt.closed), rebuilt.lost)
        return rebuilt

    def _rebuild_open(
        self, lost: Mapping[TopicPartition, str]
    ) -> tuple[dict[TopicPartition, PartitionState], Sequence[LostObject]]:
        states, given_up = self._rebuilder.open(lost, self._committer.state, self._now)
        self._count_rebuilt(sum(len(p.open) for p in states.values()), given_up)
        return states, given_up

    def _count_rebuilt(self, objects: int, lost: Sequence[LostObject]) -> None:
        if objects or lost:
            self._check_same_topics()
        self.progress.add_rebuilt(objects)
        self.progress.add_lost(data_loss.lost_records(lost))

    # -- small things ------------------------------------------------------------------------------------------------

    def _partitions(self) -> dict[TopicPartition, PartitionState]:
        return {TopicPartition.parse(name): p for name, p in self._committer.state.partitions.items()}

    def _assigned(self) -> list[TopicPartition]:
        """The partitions that are read: the ledger's, as far as the manifest still names their topics and Kafka still
        has them."""
        return [tp for tp in self._partitions() if tp.topic in self._discovery.current]

    def _state_of(self, tp: TopicPartition) -> PartitionState:
        return self._committer.state.partitions[str(tp)]


def _log_rejected(results: Mapping[TopicPartition, TaskResult]) -> None:
    """Records that are dropped because `errors.tolerance` says so are told: a line for each topic-partition."""
    for tp, result in sorted(results.items()):
        if count := result.counts.rejected:
            told = result.rejected[:MAX_REPORTED_REJECTIONS]
            first = "; ".join(f"offset {bad.offset}: {bad.message}" for bad in told)
            more = f"; and {count - len(told):,} more" if count > len(told) else ""
            records = "record is" if count == 1 else "records are"
            _log.warning(
                "%s: %s refused %s dropped (spec.errors.tolerance: All): %s%s", tp, f"{count:,}", records, first, more
            )
