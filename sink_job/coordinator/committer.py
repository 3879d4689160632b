"""Recording and publishing: the effects of a round in the driver, in their order (P1, P2, P4, P5, P9).

`Committer` has the ledger's current state. Only its methods append records, make objects visible and change the group's
offsets, in this order: a record lists an object as closed, the object becomes visible, a record acknowledges it, and
only then the group's offset passes it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import msgspec

from sink_job.api.errors import LedgerFenced, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import SNAPSHOT_INTERVAL_RECORDS
from sink_job.coordinator.dead_letters.producer import DeadLetterProducer
from sink_job.coordinator.group_offsets import GroupOffsets
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.thread_pools import pool
from sink_job.ledger.data_loss import RebuildOutcome
from sink_job.ledger.dead_letters import objects_for_topics
from sink_job.ledger.publisher import PublishOutcome, publish_all
from sink_job.ledger.state import (
    ClosedObject,
    KafkaIdentity,
    LedgerState,
    LostObject,
    PartitionState,
    Record,
    RotationRange,
    committable_offsets,
)
from sink_job.ledger.store import Ledger
from sink_job.ledger.transitions import apply, diff, superseded_staging
from sink_job.partitioning.object_keys import is_temporary
from sink_job.records.batch import DEAD_LETTERS
from sink_job.s3 import S3Client

MAX_REBUILD_ATTEMPTS = 5

_log = logging.getLogger(__name__)


RebuildFunction = Callable[[Sequence[ClosedObject]], RebuildOutcome]
"""Rebuilds closed objects under new uploads and returns the lost ones; raises DataLoss when Kafka no longer holds their
records and `onDataLoss` is Fail."""


class Committer:
    """Appends records to the ledger, publishes closed objects and commits the group's offsets."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        s3: S3Client,
        offsets: KafkaAdmin,
        group: str,
        state: LedgerState,
        rebuild: RebuildFunction,
        clock: Callable[[], int],
        dead_letters: DeadLetterProducer | None = None,
        publishers: int = 16,
        snapshot_every: int = SNAPSHOT_INTERVAL_RECORDS,
    ) -> None:
        """`state` is the ledger's state after this driver's claim; `clock` returns the host's clock in ms since the
        epoch. `dead_letters`: None if no object of the ledger is for a dead-letter topic."""
        self.ledger = ledger
        self.s3 = s3
        self.state = state
        self.epoch = state.epoch
        self.published = 0
        self.published_of_topics: Counter[str] = Counter()
        """Published objects by topic, without dead-letter objects."""
        self._inherited = frozenset(state.pending)
        self._group_offsets = GroupOffsets(offsets, group, ledger, clock)
        self._rebuild = rebuild
        self._dead_letters = dead_letters
        self._snapshot_every = snapshot_every
        self._pool = pool(publishers, "s3sink-publish")

    def record(
        self,
        *,
        clock: int,
        partitions: Mapping[TopicPartition, PartitionState],
        closed: Sequence[ClosedObject] = (),
        rotations: Sequence[RotationRange] = (),
        acknowledged: Iterable[str] = (),
        lost: Sequence[LostObject] = (),
        started_uploads: Sequence[tuple[str, str]] = (),
        kafka: KafkaIdentity | None = None,
        sets_clock_back: bool = False,
    ) -> None:
        """Appends the next record. `acknowledged` are the keys of closed objects that are visible; `lost` are the lost
        records of rebuilt objects; `started_uploads` are the (key, upload id) that no earlier record references.
        `sets_clock_back`: no object is open.

        Raises LedgerFenced; a fenced driver first aborts the uploads that no record references.
        """
        number = self.state.number + 1
        record = Record(
            number=number,
            epoch=self.epoch,
            attempt=self.ledger.attempt,
            kind="round",
            clock=clock,
            kafka=kafka,
            partitions={str(tp): diff(self.state.partition(tp), new) for tp, new in partitions.items()},
            closed=tuple(msgspec.structs.replace(o, record=o.record or number) for o in closed),
            rotations=tuple(msgspec.structs.replace(r, record=number) for r in rotations),
            acknowledged=tuple(sorted(acknowledged)),
            lost=tuple(msgspec.structs.replace(each, record=number) for each in lost),
            sets_clock_back=sets_clock_back,
        )
        try:
            self.ledger.append(record)
        except LedgerFenced:
            for key, upload in started_uploads:
                self.s3.abort(key, upload)
            raise
        before, self.state = self.state, apply(self.state, record)
        self.s3.delete(superseded_staging(before, self.state, record.partitions))

    def publish(self, clock: int) -> None:
        """Makes all closed objects visible, produces the dead letters of those for a topic, acknowledges them in the
        ledger, then commits the group's offsets.

        Rebuilds lost objects and records them again first. Raises ObjectConflict, DataLoss, LedgerFenced and
        TransientError.
        """
        visible: set[str] = set()
        for _ in range(MAX_REBUILD_ATTEMPTS):
            todo = [o for o in self.state.pending.values() if o.key not in visible]
            outcomes = publish_all(self.s3, todo, self._pool, self._inherited)
            visible |= {key for key, outcome in outcomes.items() if outcome is PublishOutcome.VISIBLE}
            lost = [o for o in todo if o.key not in visible]
            if not lost:
                break
            for o in lost:
                _log.warning("the upload of s3://%s/%s is gone: rebuilding it from Kafka", self.s3.bucket, o.key)
            rebuilt = self._rebuild(lost)
            for_topics = {o.key for objects in objects_for_topics(self.state).values() for o in objects}
            self._acknowledge(clock, visible - for_topics, rebuilt)
            visible = set()
        else:
            raise TransientError(
                f"uploads to s3://{self.s3.bucket} disappear while they are written "
                f"({MAX_REBUILD_ATTEMPTS} times in a row), or the store rejects their parts: run s3sink check-store"
            )
        if visible:
            if self._dead_letters is not None:
                self._dead_letters.produce(self.state)
            self._acknowledge(clock, visible)
        self._group_offsets.commit(self.state)

    def _acknowledge(self, clock: int, visible: Set[str], rebuilt: RebuildOutcome | None = None) -> None:
        """Records that these objects are visible: the group's offset does not pass them before that (P5)."""
        closed, lost = (rebuilt.closed, rebuilt.lost) if rebuilt else ((), ())
        uploads = [(o.key, o.upload) for o in closed]
        produced = [o.key for o in self.state.pending.values() if o.key in visible and is_temporary(o.path, o.key)]
        topics = [o.topic for o in self.state.pending.values() if o.key in visible and o.path != DEAD_LETTERS]
        self.record(clock=clock, partitions={}, closed=closed, lost=lost, started_uploads=uploads, acknowledged=visible)
        self.published += len(visible) - len(produced)
        self.published_of_topics.update(topics)
        self.s3.delete(sorted(produced))

    def refresh_offsets(self, partitions: Iterable[TopicPartition]) -> None:
        """See `GroupOffsets.refresh`, and `DeadLetterProducer.refresh`."""
        self._group_offsets.refresh(self.state, partitions)
        if self._dead_letters is not None:
            self._dead_letters.refresh(self.state)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """The first offset of each partition that is not in an acknowledged object."""
        return committable_offsets(self.state)

    def maybe_snapshot(self) -> bool:
        """Takes a snapshot if one is due; returns whether it did."""
        if self.state.number - self.state.audited_to < self._snapshot_every:
            return False
        self.state = self.ledger.snapshot(self.state)
        return True

    def start(self) -> None:
        """Starts the producer of dead letters, if the sink has one."""
        if self._dead_letters is not None:
            self._dead_letters.start(self.state)

    def close(self) -> None:
        if self._dead_letters is not None:
            self._dead_letters.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
