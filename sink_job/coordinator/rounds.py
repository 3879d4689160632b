"""Rounds: plan, intent, tasks, record, publish, commit. Each step starts only when the step before it is durable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sink_job.api.errors import TooManyRejected, TransientError
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS, Committer
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.dead_letters.producer import DeadLetterProducer
from sink_job.coordinator.planner import RoundPlan
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.rebuild import Rebuilder
from sink_job.coordinator.rejections import check_rejected_share, log_rejected, raise_data_errors
from sink_job.coordinator.retention import RetentionChecker
from sink_job.coordinator.round_clock import RoundClock
from sink_job.coordinator.schemas.round_schemas import RoundSchemas
from sink_job.coordinator.schemas.schema_changes import SchemaChangeWarnings
from sink_job.coordinator.task_dispatcher import TaskDispatcher
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.ledger import data_loss
from sink_job.ledger.open_uploads import open_uploads
from sink_job.ledger.orphan_cleanup import OrphanCleaner
from sink_job.ledger.schemas.schema_store import schemas_root
from sink_job.ledger.skips import log_skipped
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, PartitionState
from sink_job.ledger.store import Ledger
from sink_job.s3 import S3Client
from sink_job.tasks.write import TaskResult

_log = logging.getLogger(__name__)


@dataclass
class ReadHistory:
    """What the planner uses of the last rounds, by topic-partition: the average size of a record in bytes, and the time
    of the last read in ms, 0 if ids of schemas were unknown: then the next round does not wait."""

    record_bytes: dict[TopicPartition, float] = field(default_factory=dict)
    last_read_ms: dict[TopicPartition, int] = field(default_factory=dict)

    def add(self, results: Mapping[TopicPartition, TaskResult], clock: Callable[[], int]) -> None:
        """Adds the results of a round."""
        for tp, result in results.items():
            self.last_read_ms[tp] = clock() if not result.unresolved else 0
            if result.counts.records:
                self.record_bytes[tp] = result.counts.bytes / result.counts.records


class Rounds:
    """The rounds of one driver that has claimed the ledger. `state` is the ledger's state after the claim; `wait`
    pauses between two polls of a log that appears truncated and returns whether the driver has to stop."""

    def __init__(
        self,
        sink: Sink,
        context: CoordinatorContext,
        progress: Progress,
        *,
        s3: S3Client,
        ledger: Ledger,
        discovery: TopicDiscovery,
        clock: RoundClock,
        state: LedgerState,
        wait: Callable[[], bool],
    ) -> None:
        self.history = ReadHistory()
        self._context = context
        self._progress = progress
        self._s3 = s3
        self._ledger = ledger
        self._discovery = discovery
        self._clock = clock
        self._schemas = RoundSchemas(sink, context, s3, schemas_root(ledger.root, state.generation))
        self._schema_changes = SchemaChangeWarnings(sink.spec.schema_compatibility)
        retention = RetentionChecker(discovery, wait)
        self._dispatcher = TaskDispatcher(sink, context, ledger, retention, self._schemas.known)
        self._rebuilder = Rebuilder(self._dispatcher)
        self.committer = Committer(
            ledger=ledger,
            s3=s3,
            offsets=context.admin,
            group=sink.group_id,
            state=state,
            rebuild=self._rebuild_closed,
            dead_letters=DeadLetterProducer(sink, context, s3, ledger),
            clock=context.clock,
            snapshot_every=context.snapshot_every,
        )

    @property
    def state(self) -> LedgerState:
        """The ledger's state after the last record of this driver."""
        return self.committer.state

    @property
    def partitions(self) -> dict[TopicPartition, PartitionState]:
        """The topic-partitions of the ledger."""
        return {TopicPartition.parse(name): p for name, p in self.state.partitions.items()}

    def state_of(self, tp: TopicPartition) -> PartitionState:
        """The state of a topic-partition of the ledger."""
        return self.state.partitions[str(tp)]

    def leave_spark(self) -> None:
        """Runs the tasks of the next rounds in this process."""
        self._dispatcher.leave_spark()

    def publish(self) -> None:
        """Publishes and acknowledges the closed objects of the state. Raises as `Committer.publish`."""
        self.committer.publish(self._clock.ms)

    def remove_orphans(self, recorded: int) -> None:
        """Removes uploads and staging objects that the state does not refer to and that are older than the record with
        the number `recorded`."""
        OrphanCleaner(self._s3, self._ledger, self.committer.epoch).run(self.state, recorded)

    def run(self, planned: RoundPlan, *, close: bool = False, settings: int | None = None) -> None:
        """Runs one round. `settings`: the number of the record with the settings of its objects; None: the current
        ones. Raises DataLoss, DataError, TooManyRejected, LedgerFenced, ObjectConflict, TransientError and
        Cancelled."""
        committer = self.committer
        settings, started = settings or self.state.current_settings(), self._context.clock()
        results = self._dispatcher.write(planned, self.state, now=self._clock.ms, settings=settings, close=close)
        if planned.ranges:
            self._discovery.check_same_topics(self.state.kafka)
        lost = {tp: r.lost for tp, r in results.items() if r.lost is not None}
        written = {tp: r for tp, r in results.items() if r.lost is None}
        self._abort_uploads(r for r in results.values() if r.lost is not None)
        self._check_rejected(written)
        self._rebuilder.written(written)
        rebuilt, lost_objects = self._rebuild_open(lost)
        replaced = open_uploads({tp: self.state_of(tp) for tp in rebuilt}, self.state.settings)
        closed = [o for r in written.values() for o in r.closed]
        before = self.state
        committer.record(
            clock=self._clock.ms,
            partitions={tp: r.state for tp, r in written.items()} | rebuilt,
            closed=closed,
            rotations=[rotation for r in written.values() for rotation in r.rotations],
            lost=lost_objects,
            started_uploads=[upload for r in written.values() for upload in r.started_uploads]
            + open_uploads(rebuilt, self.state.settings),
        )
        for key, upload in replaced:
            self._s3.abort(key, upload)
        recorded = self._context.clock()
        log_rejected(written)
        log_skipped(before, {tp: r.state for tp, r in written.items()})
        self._schema_changes.round_recorded(closed)
        committer.publish(self._clock.ms)
        self.history.add(written, self._context.clock)
        ended = self._context.clock()
        self._progress.round_completed(written, committer, started=started, recorded=recorded, ended=ended)
        if committer.maybe_snapshot():
            self.remove_orphans(self.state.number)
        raise_data_errors(written, self._dispatcher.sink)
        self._schemas.resolve(written)

    def _check_rejected(self, written: Mapping[TopicPartition, TaskResult]) -> None:
        """Raises TooManyRejected, after the uploads of the round are aborted."""
        try:
            check_rejected_share(written, self._dispatcher.sink)
        except TooManyRejected:
            self._abort_uploads(written.values())
            raise

    def _abort_uploads(self, results: Iterable[TaskResult]) -> None:
        """Aborts the uploads that these tasks have started."""
        for key, upload in (upload for result in results for upload in result.started_uploads):
            self._s3.abort(key, upload)

    def close_until_none(self, select: Callable[[], Mapping[int, list[TopicPartition]]]) -> None:
        """Closes the open objects of the selected topic-partitions, by settings. Repeats until none is selected: an
        object whose upload or staged data is lost is rebuilt first, and stays open for one more round."""
        for _ in range(MAX_REBUILD_ATTEMPTS):
            selected = select()
            if not selected:
                return
            for number, partitions in sorted(selected.items()):
                _log.info("closing the open objects of the settings in record %d", number)
                self.run(RoundPlan({}, partitions), close=True, settings=number)
        if select():
            raise TransientError(
                f"uploads to s3://{self._s3.bucket} disappear while objects are closed ({MAX_REBUILD_ATTEMPTS} times "
                "in a row). Check whether a lifecycle rule or another program aborts multipart uploads of this sink."
            )

    def skip_lost(self, planned: RoundPlan) -> bool:
        """Records the offsets that Kafka has deleted as lost; returns whether there are any. The ledger may contain a
        part of the plan by now, where an object could not be rebuilt: that part is not read again."""
        beginnings = self._context.admin.beginning_offsets(list(planned.ranges))
        before = {tp: self.state_of(tp) for tp in planned.ranges}
        states = {tp: data_loss.skip_deleted(p, beginnings[tp]) for tp, p in before.items() if beginnings[tp] > p.next}
        for tp in states:
            first, last = before[tp].next, beginnings[tp] - 1
            _log.warning("%s: Kafka has deleted offsets %d to %d: they are lost; resuming after them", tp, first, last)
        if states:
            self.committer.record(clock=self._clock.ms, partitions=states)
            self._progress.add_lost(sum(p.next - before[tp].next for tp, p in states.items()))
        return bool(states)

    def _rebuild_closed(self, objects: Sequence[ClosedObject]) -> data_loss.RebuildOutcome:
        outcome = self._rebuilder.closed(objects, self.state, self._clock.ms)
        self._count_rebuilt(len(outcome.closed), outcome.lost)
        return outcome

    def _rebuild_open(
        self, lost: Mapping[TopicPartition, str]
    ) -> tuple[dict[TopicPartition, PartitionState], Sequence[LostObject]]:
        states, lost_objects = self._rebuilder.open(lost, self.state, self._clock.ms)
        self._count_rebuilt(sum(len(p.open) for p in states.values()), lost_objects)
        return states, lost_objects

    def _count_rebuilt(self, objects: int, lost: Sequence[LostObject]) -> None:
        if objects or lost:
            self._discovery.check_same_topics(self.state.kafka)
        self._progress.add_rebuilt(objects)
        self._progress.add_lost(data_loss.lost_records(lost))
