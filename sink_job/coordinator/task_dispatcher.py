"""Handing a round's work to the executors, and bringing back what they did.

Before any task may begin an upload, the intent that covers it is written (P10).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from sink_job.api.enums import OnDataLoss, Tolerance
from sink_job.api.errors import DataLoss, RebuildRejected, TopicNotFound, TransientError
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import task_columns
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.planner import RoundPlan
from sink_job.coordinator.retention import RetentionChecker
from sink_job.engine.in_process import InProcessEngine
from sink_job.engine.types import Engine, Range, TaskProcessor
from sink_job.ledger.schemas.schema_table import KnownSchemas
from sink_job.ledger.state import ClosedObject, LedgerState, OpenObject, PartitionState
from sink_job.ledger.store import Intent, Ledger
from sink_job.partitioning.object_keys import object_key
from sink_job.tasks.parameters import RoundParameters
from sink_job.tasks.rebuild import MissingRecords, RebuildInput, RebuildResult, all_missing
from sink_job.tasks.write import TaskInput, TaskResult
from sink_job.writer.object_rebuilder import RebuildTask
from sink_job.writer.partition_writer import WriteTask

_log = logging.getLogger(__name__)

MAX_REBUILD_ROUNDS = 5
"""Maximum number of attempts of a rebuild while retention deletes the records that it reads."""


IN_PROCESS_BUDGET = 16 << 20
"""Bytes that a task in the driver process buffers before it spills them."""

IN_PROCESS_PART_BUFFERS = 2
"""Part buffers of a task in the driver process."""


class TaskDispatcher:
    """Sends the tasks of one driver's rounds to the executors."""

    def __init__(
        self,
        sink: Sink,
        context: CoordinatorContext,
        ledger: Ledger,
        retention: RetentionChecker,
        schemas: Callable[[], KnownSchemas],
    ) -> None:
        """`schemas` returns the schema ids that this driver has resolved."""
        self._sink = sink
        self._schemas = schemas
        self._context = context
        self._ledger = ledger
        self._retention = retention
        self._engine: Engine = context.engine
        self._in_process = False
        self._intended: dict[str, tuple[int, int]] = {}
        self._intents = 0
        self._skips = sink.spec.errors.skipped_offsets()

    @property
    def sink(self) -> Sink:
        """The sink that the tasks are of."""
        return self._sink

    def leave_spark(self) -> None:
        """Later tasks run in the driver process, with little memory. They cannot read from Kafka."""
        self._engine = InProcessEngine()
        self._in_process = True

    def write(
        self, planned: RoundPlan, state: LedgerState, *, now: int, settings: int, close: bool
    ) -> dict[TopicPartition, TaskResult]:
        """Writes the planned ranges, from `state`, under the settings of claim `settings`.

        Raises DataLoss when Kafka no longer holds a range.
        """
        ends = {tp: end for tp, (_, end) in planned.ranges.items()}
        before = {tp: state.partitions[str(tp)] for tp in (*planned.ranges, *planned.idle)}
        self._write_intent(state, now, {tp: (_oldest(p), ends.get(tp, p.next)) for tp, p in before.items()})
        inputs = {
            tp: msgspec.msgpack.encode(TaskInput(p, ends.get(tp, p.next), close, tuple(self._skips.get(tp, ()))))
            for tp, p in before.items()
        }
        raw = self._run(
            WriteTask,
            state,
            now=now,
            settings=settings,
            ranges={tp: Range(start, end) for tp, (start, end) in planned.ranges.items()},
            idle=planned.idle,
            inputs=inputs,
            schemas=self._schemas(),
        )
        return {tp: msgspec.msgpack.decode(result, type=TaskResult) for tp, result in raw.items()}

    def rebuild(
        self, inputs: Mapping[TopicPartition, RebuildInput], state: LedgerState, *, now: int, settings: int
    ) -> dict[TopicPartition, RebuildResult]:
        """Rebuilds objects of many topic-partitions in one Spark job, because a shared staging object is lost for all
        of them. With `onDataLoss: Continue` rebuilds from the records that Kafka still holds; the results contain the
        missing ones. A topic-partition whose new upload disappears before it is recorded gets another attempt.

        Raises DataLoss when Kafka no longer holds the records, or holds other ones; TransientError when new uploads
        disappear repeatedly.
        """
        accepts_loss = self._sink.spec.on_data_loss is OnDataLoss.CONTINUE
        done: dict[TopicPartition, RebuildResult] = {}
        left = dict(inputs)
        for _ in range(MAX_REBUILD_ATTEMPTS):
            done |= self._rebuild_retained(left, state, now=now, settings=settings, accepts_loss=accepts_loss)
            missing = ((tp, each) for tp, result in sorted(done.items()) for each in result.missing)
            loss = next(((tp, each) for tp, each in missing if not (accepts_loss and each.is_loss)), None)
            if loss is not None:
                self._abort(done.values())
                raise _loss(*loss)
            lost = {tp: result for tp, result in done.items() if result.lost is not None}
            if not lost:
                return done
            self._abort(lost.values())
            left = {tp: inputs[tp] for tp in lost}
        self._abort(result for tp, result in done.items() if tp not in left)
        raise TransientError(
            f"uploads to s3://{self._ledger.s3.bucket} disappear during rebuilds, {MAX_REBUILD_ATTEMPTS} "
            f"times in a row: {done[min(left)].lost}. Check whether a lifecycle rule or another program aborts "
            "multipart uploads of this sink."
        )

    def _abort(self, results: Iterable[RebuildResult]) -> None:
        """Aborts the uploads of these results, which no record will reference. If the store does not respond, a later
        clean-up finds them by the intent."""
        with contextlib.suppress(TransientError):
            for key, upload in (upload for result in results for upload in result.started_uploads):
                self._ledger.s3.abort(key, upload)

    def _rebuild_retained(
        self,
        inputs: Mapping[TopicPartition, RebuildInput],
        state: LedgerState,
        *,
        now: int,
        settings: int,
        accepts_loss: bool,
    ) -> dict[TopicPartition, RebuildResult]:
        """One attempt; with `accepts_loss` from the records that Kafka still holds."""
        for attempt in range(1, MAX_REBUILD_ROUNDS + 1):
            deleted = self._retention.deleted(inputs, state.kafka)
            for tp in sorted(deleted) if not accepts_loss else ():
                raise self._deleted(tp, deleted[tp], inputs[tp], object_settings(state, settings))
            for why in sorted(set(deleted.values())):
                _log.warning("%s: its unpublished objects cannot be rebuilt and are lost", why)
            offset_ranges = {tp: one.offset_range() for tp, one in inputs.items() if tp not in deleted}
            try:
                retained = self._retention.retained(offset_ranges) if accepts_loss and offset_ranges else offset_ranges
                retained_inputs = {
                    tp: msgspec.structs.replace(inputs[tp], partial=accepts_loss)
                    for tp, (start, end) in retained.items()
                    if start < end
                }
                results = self._rebuild(retained_inputs, retained, state, now=now, settings=settings)
                break
            except TopicNotFound:
                if attempt == MAX_REBUILD_ROUNDS:
                    raise
            except DataLoss:
                if not accepts_loss or attempt == MAX_REBUILD_ROUNDS:
                    raise
        return {tp: results.get(tp) or all_missing(one) for tp, one in inputs.items()}

    def _deleted(self, tp: TopicPartition, why: str, inputs: RebuildInput, settings: ObjectSettings) -> DataLoss:
        """The error for the first object of a topic-partition that no longer exists in Kafka."""
        objects: tuple[ClosedObject | OpenObject, ...] = (*inputs.closed, *inputs.open)
        o = min(objects, key=lambda each: each.first)
        more = f", and {len(objects) - 1:,} more of this topic-partition" if len(objects) > 1 else ""
        key = f"{self._context.s3.url_of(object_key(settings, tp.topic, o.path, tp.partition, o.first))}"
        return DataLoss(
            f"the unpublished object {key} of {tp} (offsets {o.first} to {o.last}){more} has to be rebuilt, since its "
            f"upload or its staged remainder is lost, and {why}. Nothing was changed. To accept the loss and "
            "continue with the other topics, set spec.onDataLoss: Continue, for one run at least "
            "(s3sink run SINK.yaml --until-caught-up)."
        )

    def _rebuild(
        self,
        inputs: Mapping[TopicPartition, RebuildInput],
        ranges: Mapping[TopicPartition, tuple[int, int]],
        state: LedgerState,
        *,
        now: int,
        settings: int,
    ) -> dict[TopicPartition, RebuildResult]:
        if not inputs:
            return {}
        self._write_intent(state, now, {tp: ranges[tp] for tp in inputs})
        raw = self._run(
            RebuildTask,
            state,
            now=now,
            settings=settings,
            ranges={tp: Range(*ranges[tp]) for tp in inputs},
            idle=(),
            inputs={tp: msgspec.msgpack.encode(one) for tp, one in inputs.items()},
            schemas=None,
        )
        return {tp: msgspec.msgpack.decode(result, type=RebuildResult) for tp, result in raw.items()}

    def _run(
        self,
        task_type: Callable[[RoundParameters], TaskProcessor],
        state: LedgerState,
        *,
        now: int,
        settings: int,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        schemas: KnownSchemas | None,
    ) -> dict[TopicPartition, bytes]:
        columns = task_columns(object_settings(state, settings))
        create_task = partial(task_type, self._parameters(state, now, settings, schemas))
        self._check_retention({tp: r.start for tp, r in ranges.items()})
        try:
            return self._engine.run(ranges=ranges, idle=idle, inputs=inputs, columns=columns, factory=create_task)
        except (DataLoss, TransientError):
            self._check_retention({tp: r.start for tp, r in ranges.items()})
            raise

    def _parameters(self, state: LedgerState, now: int, settings: int, schemas: KnownSchemas | None) -> RoundParameters:
        context, errors = self._context, self._sink.spec.errors
        budget, part_buffers = context.current_task_memory() or (context.budget, context.part_buffers)
        memory, slots = context.container() or (0, None)
        threads = max(context.threads, part_buffers)
        if self._in_process:
            memory, slots = 0, None
            budget = min(budget, IN_PROCESS_BUDGET)
            threads = part_buffers = min(part_buffers, IN_PROCESS_PART_BUFFERS)
        return RoundParameters(
            s3=context.s3,
            root=self._ledger.root,
            settings_json=state.settings[settings],
            settings_record=settings,
            tolerant=errors.tolerance is Tolerance.ALL,
            on_null=errors.on_null_value,
            epoch=state.epoch,
            round=state.number + 1,
            now=now,
            budget=budget,
            threads=threads,
            part_buffers=part_buffers,
            memory=memory,
            slots=slots,
            schemas=schemas,
            generation=state.generation,
            equal_parts=self._sink.spec.s3.equal_parts,
        )

    def _check_retention(self, starts: Mapping[TopicPartition, int]) -> None:
        """Raises DataLoss when Kafka's logs start after these offsets."""
        beginnings = self._context.admin.beginning_offsets(list(starts)) if starts else {}
        deleted = {tp: beginnings[tp] for tp, start in starts.items() if beginnings.get(tp, start) > start}
        if not deleted:
            return
        ranges = ", ".join(f"{tp}: {starts[tp]} to {first - 1}" for tp, first in sorted(deleted.items()))
        raise DataLoss(
            f"Kafka no longer holds offsets that are not in S3 yet ({ranges}): retention has deleted them. Increase "
            "the topic's retention. To continue without these records, set spec.onDataLoss: Continue."
        )

    def _write_intent(self, state: LedgerState, now: int, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Writes an intent: the offset ranges in which this epoch's tasks may start uploads, `ranges` included."""
        for tp, (start, end) in ranges.items():
            first, last = self._intended.get(str(tp), (start, end))
            self._intended[str(tp)] = (min(first, start), max(last, end))
        self._intents += 1
        self._ledger.write_intent(
            Intent(
                epoch=state.epoch,
                sequence=self._intents,
                round=state.number + 1,
                clock=now,
                ranges=self._intended,
                settings=tuple(sorted(state.settings.values())),
            )
        )


def object_settings(state: LedgerState, settings: int) -> ObjectSettings:
    """The settings of the claim with the number `settings`."""
    return ObjectSettings.model_validate_json(state.settings[settings])


def _loss(tp: TopicPartition, missing: MissingRecords) -> DataLoss | RebuildRejected:
    what = f"the unpublished object of {tp} with offsets {missing.first} to {missing.last} (path {missing.path})"
    if not missing.is_loss and (missing.other_rules or missing.is_incomplete):
        return _rejected(what, missing)
    if not missing.is_loss:
        return DataLoss(
            f"{what} has to be rebuilt, but Kafka holds other records at its offsets than those that were read: "
            f"{missing.found.count} belong to it now, {missing.expected.count} did. Nothing was changed. Was the topic "
            "re-created, or its log replaced? Then reset the sink's offsets, or choose another sinkId and topicsDir."
        )
    return DataLoss(
        f"{what} has to be rebuilt, and Kafka holds {missing.found.count} of its {missing.expected.count} records. "
        "Nothing was changed. To keep these and accept the loss of the others, set spec.onDataLoss: Continue."
    )


def _rejected(what: str, missing: MissingRecords) -> RebuildRejected:
    returned = (
        f"{what} has to be rebuilt. Kafka returns {missing.returned} records at its offsets, and this version of the "
        f"sink selects {missing.found.count} of the {missing.expected.count} that the object has. No record is lost, "
        "and nothing was changed. spec.onDataLoss does not apply. "
    )
    if missing.other_rules:
        recorded, installed = missing.other_rules
        return RebuildRejected(
            f"{returned}The object was written with {recorded}; installed are {installed}. Run the image or the "
            "environment with the recorded versions once: `s3sink run SINK.yaml --until-caught-up --publish-open`"
        )
    return RebuildRejected(
        f"{returned}Was the topic re-created with other records, or is this another version of s3sink? Run the version "
        "that wrote the object once, with --until-caught-up --publish-open, or discard the object with `s3sink "
        "discard-open SINK.yaml`"
    )


def _oldest(state: PartitionState) -> int:
    """The first offset at which an upload may start: an inherited open object may have no upload yet."""
    return min([o.first for o in state.open] + [state.next])
