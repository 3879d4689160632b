"""`s3sink reset-offsets`: ends a generation of the ledger and begins the next, elsewhere (docs/adr/0005).

All is looked at first, and a request that cannot be carried out changes nothing. Then the ledger is taken, what was
named is made visible, and one record says everything at once: where the generation of before ended, where each
topic-partition starts, and below which topicsDir. What comes after it (bytes of open objects that go, the group's
offsets) is done by whoever comes next, should this be interrupted: this command again, or the next driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.errors import ConfigurationError, TopicNotFound, TransientError
from sink_job.api.operator_sections import OffsetResetSpec
from sink_job.api.report import ResetReport, StartReport
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.topic_discovery import TopicDiscovery, initial_state
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.ledger import ownership
from sink_job.ledger.generations import commit_metadata, end_of_generation, new_topics_dir, shaping_below
from sink_job.ledger.session import LedgerAccess, LedgerSession
from sink_job.ledger.state import (
    KafkaIdentity,
    LedgerState,
    OffsetResetRecord,
    Record,
    committable_offsets,
    diff,
)
from sink_job.maintenance.existing_objects import check_empty, check_existing_objects
from sink_job.maintenance.reset_targets import LogBounds, ResetContext, request_digest, resolve_targets
from sink_job.partitioning.object_keys import extension
from sink_job.verify.audit import GenerationAudit
from sink_job.verify.per_generation import per_generation


@dataclass(frozen=True)
class _Plan:
    """A reset as it would be done. `starts` are those of every topic-partition of the new generation."""

    generation: int
    shaping: ObjectSettings
    kafka: KafkaIdentity
    starts: Mapping[TopicPartition, int]


class OffsetResetter:
    """Carries out one request about the offsets of one sink."""

    def __init__(self, sink: Sink, hands: LedgerAccess, admin: KafkaAdmin, request: OffsetResetSpec) -> None:
        self._sink = sink
        self._hands = hands
        self._admin = admin
        self._request = request
        self._source = TopicDiscovery(sink, admin)
        self._shaping = sink.shaping()

    def run(self) -> ResetReport:
        """Raises ConfigurationError for what cannot be done, TopicNotFound, OwnershipConflict,
        LedgerFenced, and what Kafka and the store raise. Before the ledger is taken nothing is changed."""
        ledger = self._hands.ledger
        if not ledger.exists():
            raise ConfigurationError(
                f"there is no ledger at s3://{self._hands.s3.bucket}/{self._hands.root}: this sink has not run, and "
                "has no offsets to reset. It starts at its group's offsets, or where spec.kafka.startingOffsets says"
            )
        state = ledger.load()
        known = self._carried_out(state)
        if known is not None:
            return self._again(known, state)
        self._plan(state)
        taken = LedgerSession(self._hands)
        if taken.state.generation != state.generation:
            raise TransientError(
                "another reset of the offsets was carried out at the same time: look, and try this again"
            )
        with taken.kept():
            return self._reset(taken)

    def _reset(self, taken: LedgerSession) -> ResetReport:
        taken.publish()
        planned = self._plan(taken.state)
        if planned.shaping.s3.topics_dir != self._shaping.s3.topics_dir:
            topics = sorted({tp.topic for tp in planned.starts})
            ownership.claim_topics(
                self._hands.s3, planned.shaping, extension(planned.shaping), self._hands.owner, topics
            )
        reset = self._record(taken, planned)
        self._commit(taken.state)
        return _report(taken.state.number, reset, planned.starts)

    def _carried_out(self, state: LedgerState) -> Record | None:
        """The record of this request; None where it is new. Raises ConfigurationError when its nonce was another's."""
        claims = self._hands.ledger.claims(state) if state.generation > 1 else []
        for record in claims:
            reset = record.reset
            if reset is None or reset.nonce != self._request.nonce:
                continue
            if reset.request and reset.request != request_digest(self._request):
                raise ConfigurationError(
                    f"the nonce {reset.nonce} is that of another request, which was carried out: to {reset.to} with "
                    f"onExisting {reset.on_existing} it began generation {reset.generation} (record {record.number}). "
                    "Nothing was changed. Give this request a nonce of its own"
                )
            return record
        return None

    # -- looking -----------------------------------------------------------------------------------------------------

    def _plan(self, state: LedgerState) -> _Plan:
        """What the request means for this state. Raises where it cannot be done."""
        topics = self._source.refresh()
        if not topics:
            raise TopicNotFound("no topic matches spec.kafka.topicsPattern: there is nothing to reset")
        now = self._source.topic_ids(topics)
        starts = dict(self._starts(state, now, {name: info.partitions for name, info in topics.items()}))
        generation = state.generation + 1
        shaping = shaping_below(self._shaping, state.topics_dir)
        if self._request.on_existing is OnExisting.NEW_PREFIX:
            shaping = shaping_below(self._shaping, new_topics_dir(self._shaping, generation))
            check_empty(self._hands.s3, shaping, starts)
        else:
            check_existing_objects(self._hands.s3, shaping, self._generations(state), starts)
        known = state.kafka.topics if state.kafka and state.kafka.cluster == now.cluster else {}
        return _Plan(generation, shaping, KafkaIdentity(now.cluster, {**known, **now.topics}), starts)

    def _starts(
        self, state: LedgerState, now: KafkaIdentity, counts: Mapping[str, int]
    ) -> Mapping[TopicPartition, int]:
        """Where each topic-partition starts: those that are read as the request says, the others where they are."""
        read = [TopicPartition(topic, n) for topic, count in counts.items() for n in range(count)]
        logs = LogBounds(first=self._admin.beginning_offsets(read), end=self._source.end_offsets(read))
        at: Mapping[TopicPartition, int] = {}
        if self._request.to is ResetTo.TIMESTAMP:
            at = self._admin.offsets_for_times(read, self._request.timestamp or 0)
        is_same = state.kafka is not None and state.kafka.cluster == now.cluster
        same = {t for t in counts if is_same and state.kafka and state.kafka.topics.get(t) == now.topics[t]}
        reached = {tp: p for tp, p in committable_offsets(state).items() if tp.topic in same or tp.topic not in counts}
        places = ResetContext(logs=logs, at=at, reached=reached, now=self._hands.now())
        return resolve_targets(self._request, places)

    def _generations(self, state: LedgerState) -> list[GenerationAudit]:
        """What the ledger lists of each generation, the current one last."""
        ledger = self._hands.ledger
        published = [line.object for line in ledger.published(state) if line.object]
        return per_generation(state, published, [], ledger.claims(state))

    # -- acting ------------------------------------------------------------------------------------------------------

    def _record(self, taken: LedgerSession, planned: _Plan) -> OffsetResetRecord:
        request = self._request
        reset = OffsetResetRecord(
            generation=planned.generation,
            topics_dir=planned.shaping.s3.topics_dir,
            ended={name: end_of_generation(p) for name, p in taken.state.partitions.items()},
            nonce=request.nonce,
            to=request.to.value,
            on_existing=request.on_existing.value,
            request=request_digest(request),
        )
        taken.discard_open(
            kind="claim",
            settings=planned.shaping.model_dump_json(),
            kafka=planned.kafka,
            partitions={str(tp): diff(None, initial_state(start)) for tp, start in planned.starts.items()},
            reset=reset,
        )
        return reset

    def _commit(self, state: LedgerState) -> None:
        ledger = self._hands.ledger
        ledger.check_head(state)
        present = self._source.current
        starts = {tp: offset for tp, offset in committable_offsets(state).items() if tp.topic in present}
        self._admin.alter_group_offsets(
            self._sink.group_id, starts, metadata=commit_metadata(state.generation, ledger.url)
        )

    def _again(self, record: Record, state: LedgerState) -> ResetReport:
        """The request was carried out before: what may be left to do of it is done, and the same is told. Of one that
        others came after nothing is left: theirs began with it."""
        reset = record.reset
        assert reset is not None
        if reset.generation == state.generation:
            self._source.refresh()
            taken = LedgerSession(self._hands)
            with taken.kept():
                taken.clean_up()
                self._commit(taken.state)
        starts = {TopicPartition.parse(name): change.state.next for name, change in record.partitions.items()}
        return _report(record.number, reset, starts, repeated=True)


def _report(
    record: int, reset: OffsetResetRecord, starts: Mapping[TopicPartition, int], *, repeated: bool = False
) -> ResetReport:
    was = committable_offsets(LedgerState(partitions=reset.ended))
    partitions = [
        StartReport(topic=tp.topic, partition=tp.partition, previous=was.get(tp), start=starts[tp])
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
