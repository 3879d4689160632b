"""`s3sink reset-offsets`: ends a generation of the ledger and starts the next at other offsets (docs/adr/0005).

The request is checked first; an invalid request changes nothing. Then the command claims the ledger and publishes the
closed objects. One record contains the whole reset: the end of the previous generation, the start offset of each
topic-partition, and the topicsDir. The remaining steps are the removal of discarded data and the commit of the group's
offsets. After an interruption the same command or the next driver completes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.errors import ConfigurationError, TopicNotFound, TransientError
from sink_job.api.report import ResetReport, StartReport
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.formats import with_library
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.ledger import ownership
from sink_job.ledger.generations import commit_metadata, end_of_generation, new_topics_dir, settings_of_generation
from sink_job.ledger.session import LedgerAccess, LedgerSession
from sink_job.ledger.state import (
    KafkaIdentity,
    LedgerState,
    OffsetResetRecord,
    PartitionState,
    Record,
    committable_offsets,
)
from sink_job.ledger.transitions import diff
from sink_job.maintenance.existing_objects import check_empty, check_existing_objects
from sink_job.maintenance.reset_targets import LogBounds, ResetContext, request_digest, resolve_targets
from sink_job.s3.settings import with_customer_key
from sink_job.verify.audit_input import GenerationAudit
from sink_job.verify.per_generation import per_generation


@dataclass(frozen=True)
class _Plan:
    """The planned reset. `starts` are the start offsets of all topic-partitions of the new generation."""

    generation: int
    object_settings: ObjectSettings
    kafka: KafkaIdentity
    starts: Mapping[TopicPartition, int]


class OffsetResetter:
    """Applies one reset request to the offsets of one sink."""

    def __init__(self, sink: Sink, access: LedgerAccess, admin: KafkaAdmin, request: OffsetResetSpec) -> None:
        self._sink = sink
        self._access = access
        self._admin = admin
        self._request = request
        self._discovery = TopicDiscovery(sink, admin)
        self._object_settings = with_library(sink.object_settings())
        if sink.spec.s3.encryption is not None:
            self._object_settings = with_customer_key(self._object_settings, access.s3.settings)

    def run(self) -> ResetReport:
        """Applies the request. Changes nothing before it has claimed the ledger.

        Raises InvalidSpec and ConfigurationError for a request that cannot be applied, ExistingObjects, TopicNotFound,
        OwnershipConflict, LedgerFenced, TransientError after a concurrent reset, and the errors of Kafka and the store.
        """
        ledger = self._access.ledger
        if not ledger.exists():
            raise ConfigurationError(
                f"there is no ledger at {self._access.s3.url_of(self._access.root)}: this sink has not run, and "
                "has no offsets to reset. It will start at the offsets of its consumer group, or at "
                "spec.kafka.startingOffsets if there are none"
            )
        state = ledger.load()
        applied = self._applied_record(state)
        if applied is not None:
            return self._repeat(applied, state)
        self._plan(state)
        session = LedgerSession(self._access)
        if session.state.generation != state.generation:
            raise TransientError(
                f"another offset reset started generation {session.state.generation} at the same time; this request "
                "was not applied. Check the result of the other reset, then retry if this one is still required"
            )
        with session.ownership_checked():
            return self._reset(session)

    def _reset(self, session: LedgerSession) -> ResetReport:
        session.publish()
        planned = self._plan(session.state)
        if planned.object_settings.s3.topics_dir != self._object_settings.s3.topics_dir:
            topics = sorted({tp.topic for tp in planned.starts})
            ownership.claim_topics(
                self._access.s3,
                planned.object_settings,
                self._access.owner,
                topics,
                succession=self._access.succession,
                former=session.former,
                ledger=self._access.root,
            )
        reset = self._record(session, planned)
        self._commit(session.state)
        return _report(session.state.number, reset, planned.starts)

    def _applied_record(self, state: LedgerState) -> Record | None:
        """The record of this request; None if it was not applied yet. Raises ConfigurationError when another request
        has the same nonce."""
        claims = self._access.ledger.claims(state) if state.generation > 1 else []
        for record in claims:
            reset = record.reset
            if reset is None or reset.nonce != self._request.nonce:
                continue
            if reset.request and reset.request != request_digest(self._request):
                raise ConfigurationError(
                    f"another request with the nonce {reset.nonce} was applied before: to {reset.to} with onExisting "
                    f"{reset.on_existing}, which started generation {reset.generation} (record {record.number}). "
                    "Nothing was changed. Give this request a nonce of its own"
                )
            return record
        return None

    # -- planning ----------------------------------------------------------------------------------------------------

    def _plan(self, state: LedgerState) -> _Plan:
        """The plan of the request for this state. Raises the errors of an invalid request (see `run`)."""
        topics = self._discovery.refresh()
        if not topics:
            raise TopicNotFound(
                "no topic matches spec.kafka.topicsPattern, so there are no offsets to reset. Correct the pattern, or "
                "create the topic"
            )
        current = self._discovery.topic_ids(topics)
        starts = dict(self._starts(state, current, {name: info.partitions for name, info in topics.items()}))
        generation = state.generation + 1
        is_new = self._request.on_existing is OnExisting.NEW_PREFIX
        topics_dir = new_topics_dir(self._object_settings, generation) if is_new else state.topics_dir
        object_settings = settings_of_generation(self._object_settings, topics_dir, generation)
        if is_new:
            check_empty(self._access.s3, object_settings, starts)
        else:
            check_existing_objects(self._access.s3, object_settings, self._generations(state), starts)
        recorded = state.kafka.topics if state.kafka and state.kafka.cluster == current.cluster else {}
        return _Plan(
            generation, object_settings, KafkaIdentity(current.cluster, {**recorded, **current.topics}), starts
        )

    def _starts(
        self, state: LedgerState, current: KafkaIdentity, counts: Mapping[str, int]
    ) -> Mapping[TopicPartition, int]:
        """The start offset of each topic-partition: by the request, or unchanged for topics that the sink no longer
        reads."""
        read = [TopicPartition(topic, n) for topic, count in counts.items() for n in range(count)]
        logs = LogBounds(first=self._admin.beginning_offsets(read), end=self._discovery.end_offsets(read))
        at: Mapping[TopicPartition, int] = {}
        if self._request.to is ResetTo.TIMESTAMP:
            at = self._admin.offsets_for_times(read, self._request.timestamp or 0)
        is_same = state.kafka is not None and state.kafka.cluster == current.cluster
        same = {t for t in counts if is_same and state.kafka and state.kafka.topics.get(t) == current.topics[t]}
        reached = {tp: p for tp, p in committable_offsets(state).items() if tp.topic in same or tp.topic not in counts}
        context = ResetContext(logs=logs, at=at, reached=reached, now=self._access.now())
        return resolve_targets(self._request, context)

    def _generations(self, state: LedgerState) -> list[GenerationAudit]:
        """The ledger's content for each generation, the current one last."""
        ledger = self._access.ledger
        published = [line.object for line in ledger.published(state) if line.object]
        return per_generation(state, published, [], ledger.claims(state))

    # -- applying ----------------------------------------------------------------------------------------------------

    def _record(self, session: LedgerSession, planned: _Plan) -> OffsetResetRecord:
        request = self._request
        reset = OffsetResetRecord(
            generation=planned.generation,
            topics_dir=planned.object_settings.s3.topics_dir,
            ended={name: end_of_generation(p) for name, p in session.state.partitions.items()},
            nonce=request.nonce,
            to=request.to.value,
            on_existing=request.on_existing.value,
            request=request_digest(request),
        )
        session.discard_open(
            kind="claim",
            settings=planned.object_settings.model_dump_json(),
            kafka=planned.kafka,
            partitions={str(tp): diff(None, PartitionState.start(start)) for tp, start in planned.starts.items()},
            reset=reset,
        )
        return reset

    def _commit(self, state: LedgerState) -> None:
        ledger = self._access.ledger
        ledger.check_head(state)
        present = self._discovery.current
        starts = {tp: offset for tp, offset in committable_offsets(state).items() if tp.topic in present}
        self._admin.alter_group_offsets(
            self._sink.group_id, starts, metadata=commit_metadata(state.generation, ledger.url)
        )

    def _repeat(self, record: Record, state: LedgerState) -> ResetReport:
        """Completes a request that was applied before, and reports the same result. After a later reset nothing is left
        to complete: that reset has completed it."""
        reset = record.reset
        assert reset is not None
        if reset.generation == state.generation:
            self._discovery.refresh()
            session = LedgerSession(self._access)
            with session.ownership_checked():
                session.clean_up()
                self._commit(session.state)
        starts = {TopicPartition.parse(name): delta.state.next for name, delta in record.partitions.items()}
        return _report(record.number, reset, starts, repeated=True)


def _report(
    record: int, reset: OffsetResetRecord, starts: Mapping[TopicPartition, int], *, repeated: bool = False
) -> ResetReport:
    previous = committable_offsets(LedgerState(partitions=reset.ended))
    partitions = [
        StartReport(topic=tp.topic, partition=tp.partition, previous=previous.get(tp), start=starts[tp])
        for tp in sorted(starts)
    ]
    moves = [each.start - each.previous for each in partitions if each.previous is not None]
    return ResetReport(
        generation=reset.generation,
        record=record,
        topics_dir=reset.topics_dir,
        copied_again=-sum(move for move in moves if move < 0),
        skipped=sum(move for move in moves if move > 0),
        repeated=repeated,
        partitions=partitions,
    )
