"""Recording and publishing: the driver's half of a round's effects, in their order (P1, P2, P4, P5, P9).

`Commits` holds the state that the ledger has decided. Its methods are the only places where records are appended,
objects become visible and the group's offsets change, in this order: an object is named by a record, becomes visible,
is acknowledged by a record, and only then the group's offset passes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import msgspec

from sink_job.api.errors import LedgerFenced, TopicNotFound, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.thread_pools import pool
from sink_job.ledger.data_loss import RebuildOutcome
from sink_job.ledger.generations import commit_metadata
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
from sink_job.s3 import S3Client

SNAPSHOT_INTERVAL_RECORDS = 100
MAX_REBUILD_ATTEMPTS = 5

COMMIT_INTERVAL_MS = 3_600_000
"""How often all offsets are committed again, also while idle: well within the shortest usual retention of a group's
offsets (`offsets.retention.minutes`: one day before Kafka 2.0, seven days since)."""

_log = logging.getLogger(__name__)


RebuildFunction = Callable[[Sequence[ClosedObject]], RebuildOutcome]
"""Makes named objects again under new uploads, and says what of them is given up; raises DataLoss when Kafka no longer
holds their records and they may not be given up."""


class Committer:
    """What is decided, and what has become of it."""

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
        publishers: int = 16,
        snapshot_every: int = SNAPSHOT_INTERVAL_RECORDS,
    ) -> None:
        """`state` is the one after this driver's claim; `clock` gives ms since the epoch, by the host."""
        self.ledger = ledger
        self.s3 = s3
        self.state = state
        self.epoch = state.epoch
        self.published = 0
        self._inherited = frozenset(state.pending)
        self._offsets = offsets
        self._group = group
        self._rebuild = rebuild
        self._committed: dict[TopicPartition, int] = {}
        self._clock = clock
        self._committed_at = clock()
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
        """Writes the next record: from here on it is decided. `acknowledged` are the keys of named objects that are
        visible; `lost` is what is given up of rebuilt objects; `begun` are the (key, upload id) that only
        this record would name. `sets_clock_back`: nothing is open.

        Raises LedgerFenced, after it has aborted those: a fenced driver's last deed, since they are nobody's.
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
        """Makes all named objects visible, acknowledges them in the ledger, then commits the group's offsets.

        Lost objects are rebuilt and named again first. Raises ObjectConflict, DataLoss, LedgerFenced, TransientError.
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
            self._acknowledge(clock, visible, rebuilt)
            visible = set()
        else:
            raise TransientError(
                f"uploads to s3://{self.s3.bucket} disappear while they are written "
                f"({MAX_REBUILD_ATTEMPTS} times in a row)"
            )
        if visible:
            self._acknowledge(clock, visible)
        wanted = committable_offsets(self.state)
        self._commit({tp: offset for tp, offset in wanted.items() if self._committed.get(tp) != offset})

    def _acknowledge(self, clock: int, visible: Set[str], rebuilt: RebuildOutcome | None = None) -> None:
        """Records that these objects are visible: before this the group's offset does not pass them (P5)."""
        named, lost = (rebuilt.closed, rebuilt.lost) if rebuilt else ((), ())
        begun = [(o.key, o.upload) for o in named]
        self.record(clock=clock, partitions={}, closed=named, lost=lost, started_uploads=begun, acknowledged=visible)
        self.published += len(visible)

    def refresh_offsets(self, partitions: Iterable[TopicPartition]) -> None:
        """Commits the offsets of these topic-partitions again where the group's differ from what was committed, and all
        of them every `COMMIT_EVERY_MS`, so that Kafka does not expire them.

        Raises LedgerFenced when another driver has claimed the ledger.
        """
        wanted = committable_offsets(self.state)
        wanted = {tp: wanted[tp] for tp in partitions}
        now = self._clock()
        is_due = abs(now - self._committed_at) >= COMMIT_INTERVAL_MS
        known = {} if is_due else self._offsets.group_offsets(self._group, list(wanted), metadata=self._mark)
        differing = {tp: offset for tp, offset in wanted.items() if known.get(tp) != offset}
        if differing:
            self.ledger.check_head(self.state)
            self._commit(differing)
        if is_due:
            self._committed_at = now

    @property
    def _mark(self) -> str:
        return commit_metadata(self.state.generation, self.ledger.url)

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits these offsets. A record was appended or the head checked before, so a fenced driver rarely gets here;
        what it commits is true, only lower than the newer driver's (P4, P5)."""
        if not offsets:
            return
        try:
            self._offsets.alter_group_offsets(self._group, offsets, metadata=self._mark)
        except TopicNotFound:
            self._commit_by_topic(offsets)
        self._committed |= offsets

    def _commit_by_topic(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits what can be: a topic that was deleted has no offsets any more, and no need of them."""
        for topic in sorted({tp.topic for tp in offsets}):
            try:
                mine = {tp: o for tp, o in offsets.items() if tp.topic == topic}
                self._offsets.alter_group_offsets(self._group, mine, metadata=self._mark)
            except TopicNotFound as missing:
                _log.warning("its offsets are not committed: %s", missing)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """The first offset of each partition that is not in an acknowledged object."""
        return committable_offsets(self.state)

    def maybe_snapshot(self) -> bool:
        """Takes a snapshot when it is time; returns whether one was taken."""
        if self.state.number - self.state.audited_to < self._snapshot_every:
            return False
        self.state = self.ledger.snapshot(self.state)
        return True

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
