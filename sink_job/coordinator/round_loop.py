"""The round loop: it recovers the ledger's state, then runs rounds until the stop condition holds.

A round is plan, intent, tasks, record, publish, commit. Each step starts only when the step before it is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from sink_job.api.enums import IsolationLevel, OnDataLoss
from sink_job.api.errors import DataLoss, TopicNotFound, TransientError
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS, Committer
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.hanging_transactions import HangingTransactionDetector
from sink_job.coordinator.log_truncation import TruncationDetector
from sink_job.coordinator.planner import PartitionView, RoundPlan, is_close_due, plan, superseded
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.rebuild import Rebuilder
from sink_job.coordinator.rejections import log_rejected, raise_data_errors
from sink_job.coordinator.retention import RetentionChecker
from sink_job.coordinator.round_schemas import RoundSchemas
from sink_job.coordinator.schema_changes import SchemaChangeWarnings
from sink_job.coordinator.task_dispatcher import TaskDispatcher
from sink_job.coordinator.topic_claims import TopicClaims
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.types import Cancelled
from sink_job.ledger import data_loss, ownership
from sink_job.ledger.clocks import HostClock, report_set_back, without_clock
from sink_job.ledger.open_uploads import open_uploads
from sink_job.ledger.orphan_cleanup import OrphanCleaner
from sink_job.ledger.schemas import schemas_root
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, PartitionState
from sink_job.ledger.store import Ledger
from sink_job.s3 import S3Client
from sink_job.tasks.write import TaskResult

IDLE_WAIT_MS = 1_000
"""Longest pause between two polls of the log ends, in ms."""

MAX_TRUNCATION_CHECKS = 10
"""Polls of a log whose end is below the last offset that was read, before the log counts as truncated."""

_log = logging.getLogger(__name__)


class RoundLoop:
    """The rounds of one driver that has claimed the ledger. `state` is the ledger's state after the claim."""

    truncation_check_ms = 1_000
    """Delay between two checks of a log that appears truncated, in ms."""

    def __init__(
        self,
        sink: Sink,
        context: CoordinatorContext,
        stop_condition: StopCondition,
        progress: Progress,
        *,
        s3: S3Client,
        ledger: Ledger,
        discovery: TopicDiscovery,
        claims: TopicClaims,
        clock: HostClock,
        state: LedgerState,
    ) -> None:
        self.sink = sink
        self.context = context
        self.stop_condition = stop_condition
        self.progress = progress
        self._s3 = s3
        self._ledger = ledger
        self._discovery = discovery
        self._claims = claims
        self._clock = clock
        self._stop = context.stop
        retention = RetentionChecker(discovery, lambda: self._stop.wait(self.truncation_check_ms / 1000))
        self._schemas = RoundSchemas(sink, context, s3, schemas_root(ledger.root, state.generation))
        self._schema_changes = SchemaChangeWarnings(sink.spec.schema_compatibility)
        self._dispatcher = TaskDispatcher(sink, context, ledger, retention, self._schemas.known)
        self._rebuilder = Rebuilder(self._dispatcher)
        self._committer = Committer(
            ledger=ledger,
            s3=s3,
            offsets=context.admin,
            group=sink.group_id,
            state=state,
            rebuild=self._rebuild_closed,
            clock=context.clock,
            snapshot_every=context.snapshot_every,
        )
        self._hanging: HangingTransactionDetector | None = None
        if sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED:  # no effect on read_uncommitted
            self._hanging = HangingTransactionDetector(
                context.admin, context.clock, every=context.discovery_interval_ms, after=context.hanging_after_ms
            )
        self._truncation = TruncationDetector(sink.spec.on_data_loss, lambda tp: self._state_of(tp).next)
        self._now = state.clock
        self._advance_clock()
        self._head_checked_ms = self._topics_checked_ms = self._group_checked_ms = context.clock()
        self._record_bytes: dict[TopicPartition, float] = {}
        self._last_read_ms: dict[TopicPartition, int] = {}
        self._targets: dict[TopicPartition, int] = {}

    @property
    def state(self) -> LedgerState:
        """The ledger's state after the last record of this driver."""
        return self._committer.state

    def run(self) -> None:
        """Recovers, then runs rounds until the stop condition holds or the driver is to stop. Raises as
        `Coordinator.run`."""
        self._claims.acquire_generation(sorted(self._discovery.current), self.state.topics_dir)
        try:
            self.recover()
            while not self._stop.is_set():
                if not self.run_once() and self._is_caught_up():
                    break
        except Cancelled:
            _log.info("stopped during a round; the next start repeats it")
        except TransientError as error:
            if not self.context.publish_at_stop.is_set():
                raise
            _log.warning("a round failed while the driver was stopping: %s", error)
        if self.context.publish_at_stop.is_set():
            self._publish_at_stop()

    def _publish_at_stop(self) -> None:
        """Publishes the open objects of the ledger's state. Spark may have no executors any more, so the tasks run in
        this process: closing an object reads its staged remainder, not Kafka."""
        _log.info("publishing the open objects before the end of the driver")
        self._dispatcher.leave_spark()
        self._committer.publish(self._now)
        self._close_superseded()
        self._close_until_none(self._with_open_objects)
        OrphanCleaner(self._s3, self._ledger, self._committer.epoch).run(self.state, self.state.number)
        self.progress.all_published()

    def close(self) -> None:
        """Ends the threads of this loop."""
        self._committer.close()

    # -- recovery ----------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Publishes the closed objects, removes orphans and closes the open objects of earlier settings."""
        self._committer.publish(self._now)
        OrphanCleaner(self._s3, self._ledger, self._committer.epoch).run(self.state, self._committer.epoch)
        self._close_superseded()
        self._set_clock_back()
        self._record_bytes = self._discovery.record_bytes(self._assigned())
        if self.stop_condition.until_caught_up:
            self._targets = dict(self._discovery.end_offsets(self._assigned()))
        elif self.stop_condition.publish_open:
            self._targets = {tp: self._state_of(tp).next for tp in self._assigned()}
        self.progress.recovered(self._committer)

    def _set_clock_back(self) -> None:
        """Sets back a ledger's clock that is ahead. Open objects are closed under that clock first, because offset
        ranges and clocks identify their records (P2)."""
        ledger_clock = self.state.clock
        host = self._clock.to_set_back(ledger_clock)
        if host is None:
            return
        self._close_until_none(self._with_open_objects)
        self._committer.record(clock=host, partitions=without_clock(self._partitions()), sets_clock_back=True)
        self._now = host
        report_set_back(ledger_clock, host)

    def _close_superseded(self) -> None:
        """Closes objects that were started under other settings, or of topics that are no longer read (P8)."""
        self._close_until_none(self._superseded)

    def _superseded(self) -> dict[int, list[TopicPartition]]:
        return superseded(self._partitions(), self.state.current_settings(), {tp.topic for tp in self._assigned()})

    def _with_open_objects(self) -> dict[int, list[TopicPartition]]:
        partitions = [tp for tp, p in self._partitions().items() if p.open]
        return {self.state.current_settings(): partitions} if partitions else {}

    def _close_until_none(self, select: Callable[[], Mapping[int, list[TopicPartition]]]) -> None:
        """Closes the open objects of the selected topic-partitions, by settings. Repeats until none is selected: an
        object whose upload or staged data is lost is rebuilt first, and stays open for one more round."""
        for _ in range(MAX_REBUILD_ATTEMPTS):
            selected = select()
            if not selected:
                return
            for number, partitions in sorted(selected.items()):
                _log.info("closing the open objects of the settings in record %d", number)
                self._run_round(RoundPlan({}, partitions), close=True, settings=number)
        if select():
            raise TransientError(
                f"uploads to s3://{self._s3.bucket} disappear while objects are closed ({MAX_REBUILD_ATTEMPTS} times "
                "in a row). Check whether a lifecycle rule or another program aborts multipart uploads of this sink."
            )

    # -- rounds ------------------------------------------------------------------------------------------------------

    def _advance_clock(self) -> int:
        """The round clock in ms. It goes back only where no object is open (`_set_clock_back`), restarts included.

        Raises ClockSkew when the host's clock differs too much from the store's.
        """
        self._now = max(self._now, self._clock.now())
        self.progress.clock_jumps(self._clock.jumps)
        return self._now

    def run_once(self) -> bool:
        """Runs a round if one is due; returns whether it did."""
        now = self._advance_clock()
        self.context.between_rounds()
        if self._is_check_due(self._topics_checked_ms):
            self._discover_topics(now)
        if self._is_check_due(self._group_checked_ms):
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
            self._discover_topics(now)  # the log may belong to a re-created topic
            ends = self._check_log_ends()
        host = self.context.clock()  # the round clock does not advance while the ledger's is ahead of it
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
        """The log ends, polled again until no log appears truncated: a new leader may lag behind for a moment.

        A log that stays truncated has lost records; with `onDataLoss: Continue` reading resumes after them.
        """
        for _ in range(MAX_TRUNCATION_CHECKS):
            ends = self._discovery.end_offsets(self._assigned())
            truncated = self._truncation.truncated(ends)
            if not truncated or self._stop.wait(self.truncation_check_ms / 1000):
                return ends
        self._truncation.report(truncated)
        return ends

    def _partition_views(self, ends: Mapping[TopicPartition, int], now: int) -> dict[TopicPartition, PartitionView]:
        return {
            tp: PartitionView(
                next=(state := self._state_of(tp)).next,
                end=min(end, self._targets.get(tp, 0)) if self.stop_condition.ends else end,
                record_bytes=self._record_bytes.get(tp),
                last_read_ms=self._last_read_ms.get(tp),
                is_close_due=is_close_due(state, self.sink.spec.rotation, now),
            )
            for tp, end in ends.items()
        }

    def _run_round(self, planned: RoundPlan, *, close: bool = False, settings: int | None = None) -> None:
        """One round: tasks, record, publish, commit."""
        committer = self._committer
        settings, started = settings or self.state.current_settings(), self.context.clock()
        results = self._dispatcher.write(planned, self.state, now=self._now, settings=settings, close=close)
        if planned.ranges:
            self._discovery.check_same_topics(self.state.kafka)
        lost = {tp: r.lost for tp, r in results.items() if r.lost is not None}
        written = {tp: r for tp, r in results.items() if r.lost is None}
        for key, upload in (upload for r in results.values() if r.lost is not None for upload in r.started_uploads):
            self._s3.abort(key, upload)
        self._rebuilder.written(written)
        rebuilt, lost_objects = self._rebuild_open(lost)
        replaced = open_uploads({tp: self._state_of(tp) for tp in rebuilt}, self.state.settings)
        closed = [o for r in written.values() for o in r.closed]
        committer.record(
            clock=self._now,
            partitions={tp: r.state for tp, r in written.items()} | rebuilt,
            closed=closed,
            rotations=[rotation for r in written.values() for rotation in r.rotations],
            lost=lost_objects,
            started_uploads=[upload for r in written.values() for upload in r.started_uploads]
            + open_uploads(rebuilt, self.state.settings),
        )
        for key, upload in replaced:
            self._s3.abort(key, upload)
        recorded = self.context.clock()
        log_rejected(written)
        self._schema_changes.round_recorded(closed)
        committer.publish(self._now)
        self._update_record_sizes(written)
        ended = self.context.clock()
        self.progress.round_completed(written, committer, started=started, recorded=recorded, ended=ended)
        if committer.maybe_snapshot():
            OrphanCleaner(self._s3, self._ledger, committer.epoch).run(self.state, self.state.number)
        raise_data_errors(written)
        self._schemas.resolve(written)

    def _update_record_sizes(self, results: Mapping[TopicPartition, TaskResult]) -> None:
        for tp, result in results.items():
            self._last_read_ms[tp] = self.context.clock() if not result.unresolved else 0
            if result.counts.records:
                self._record_bytes[tp] = result.counts.bytes / result.counts.records

    # -- between rounds ----------------------------------------------------------------------------------------------

    def _is_check_due(self, last_ms: int) -> bool:
        """Whether a periodic check is due, by the host's clock: the round clock may not advance."""
        return abs(self.context.clock() - last_ms) >= self.context.discovery_interval_ms

    def _idle(self) -> None:
        if self._is_check_due(self._head_checked_ms):
            self._ledger.check_head(self.state)
            self._head_checked_ms = self.context.clock()
        if not self._is_caught_up():
            self._stop.wait(min(IDLE_WAIT_MS, max(1, self.sink.spec.rounds.max_delay)) / 1000)

    def _discover_topics(self, now: int) -> bool:
        """Records new partitions and new topics of a pattern, each from its first offset. Logs deleted topics and
        publishes what was read of them; returns whether there are any."""
        self._topics_checked_ms = self.context.clock()
        previous = self._discovery.current
        topics = self._discovery.refresh()
        kafka = ownership.check_topic_ids(self.state.kafka, self._discovery.topic_ids(topics))
        partitions = self._discovery.new_partitions(self.state, topics)
        new_topics = sorted({tp.topic for tp in partitions} - {tp.topic for tp in self._partitions()})
        if new_topics:
            self._claims.acquire_all(new_topics)
            self._claims.acquire_generation(new_topics, self.state.topics_dir)
            partitions = self._claims.continued(partitions)
        if partitions:
            examples = ", ".join(map(str, sorted(partitions)[:5]))
            _log.info("discovered %d new partitions: %s", len(partitions), examples)
            self._committer.record(clock=now, partitions=partitions, kafka=kafka)
        deleted = previous - self._discovery.current
        if deleted:
            _log.warning("topics deleted in Kafka: %s; publishing what was read of them", ", ".join(sorted(deleted)))
            self._close_superseded()
        return bool(deleted)

    def _is_caught_up(self) -> bool:
        """Whether the stop condition holds; closes the open objects first if it asks for that."""
        if not self.stop_condition.ends:
            return False
        partitions = self._partitions()
        if any(partitions[tp].next < self._targets.get(tp, 0) for tp in self._assigned()):
            return False
        if self.stop_condition.publish_open:
            self._close_until_none(self._with_open_objects)
        return True

    # -- lost records and objects ------------------------------------------------------------------------------------

    def _skip_lost(self, planned: RoundPlan) -> bool:
        """Records the offsets that Kafka has deleted as lost; returns whether there are any. The ledger may contain a
        part of the plan by now, where an object could not be rebuilt: that part is not read again."""
        beginnings = self.context.admin.beginning_offsets(list(planned.ranges))
        before = {tp: self._state_of(tp) for tp in planned.ranges}
        states = {tp: data_loss.skip_deleted(p, beginnings[tp]) for tp, p in before.items() if beginnings[tp] > p.next}
        for tp in states:
            first, last = before[tp].next, beginnings[tp] - 1
            _log.warning("%s: Kafka has deleted offsets %d to %d: they are lost; resuming after them", tp, first, last)
        if states:
            self._committer.record(clock=self._now, partitions=states)
            self.progress.add_lost(sum(p.next - before[tp].next for tp, p in states.items()))
        return bool(states)

    def _rebuild_closed(self, objects: Sequence[ClosedObject]) -> data_loss.RebuildOutcome:
        outcome = self._rebuilder.closed(objects, self.state, self._now)
        self._count_rebuilt(len(outcome.closed), outcome.lost)
        return outcome

    def _rebuild_open(
        self, lost: Mapping[TopicPartition, str]
    ) -> tuple[dict[TopicPartition, PartitionState], Sequence[LostObject]]:
        states, lost_objects = self._rebuilder.open(lost, self.state, self._now)
        self._count_rebuilt(sum(len(p.open) for p in states.values()), lost_objects)
        return states, lost_objects

    def _count_rebuilt(self, objects: int, lost: Sequence[LostObject]) -> None:
        if objects or lost:
            self._discovery.check_same_topics(self.state.kafka)
        self.progress.add_rebuilt(objects)
        self.progress.add_lost(data_loss.lost_records(lost))

    # -- the ledger's state ------------------------------------------------------------------------------------------

    def _partitions(self) -> dict[TopicPartition, PartitionState]:
        return {TopicPartition.parse(name): p for name, p in self.state.partitions.items()}

    def _assigned(self) -> list[TopicPartition]:
        """The topic-partitions that are read: those of the ledger whose topic the manifest names and Kafka has."""
        return [tp for tp in self._partitions() if tp.topic in self._discovery.current]

    def _state_of(self, tp: TopicPartition) -> PartitionState:
        return self.state.partitions[str(tp)]
