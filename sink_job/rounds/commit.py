"""Recording and publishing: the driver's half of a round's effects, in their order (P1, P2, P4, P5, P9).

`Commits` holds the state that the ledger has decided and what was seen visible since. Its methods are the only places
where the ledger moves on, objects become visible and the group's offsets move.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import msgspec

from sink_job.api.errors import LedgerFenced, TopicMissing, TryAgainLater
from sink_job.api.types import TopicPartition
from sink_job.rounds.generations import mark
from sink_job.rounds.ledger import Ledger
from sink_job.rounds.publish import Outcome, publish_all
from sink_job.rounds.state import (
    Kafka,
    NamedObject,
    PartitionState,
    Record,
    Rotation,
    State,
    apply,
    committed,
    difference,
    superseded,
)
from sink_job.s3 import S3

SNAPSHOT_EVERY = 100
REBUILD_ATTEMPTS = 5

_log = logging.getLogger(__name__)


class Offsets(Protocol):
    """The consumer group, as an output."""

    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition], *, mark: str = ""
    ) -> Mapping[TopicPartition, int]: ...

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], *, mark: str = "") -> None: ...


Rebuild = Callable[[Sequence[NamedObject]], Sequence[NamedObject]]
"""Makes named objects again under new uploads; raises DataLoss when Kafka no longer holds their records."""


class Commits:
    """What is decided, and what has become of it."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        s3: S3,
        offsets: Offsets,
        group: str,
        state: State,
        rebuild: Rebuild,
        publishers: int = 16,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        """`state` is the one after this driver's claim."""
        self.ledger = ledger
        self.s3 = s3
        self.state = state
        self.epoch = state.epoch
        self.published = 0
        self._offsets = offsets
        self._group = group
        self._rebuild = rebuild
        self._visible: set[str] = set()
        self._committed: dict[TopicPartition, int] = {}
        self._snapshot_every = snapshot_every
        self._pool = ThreadPoolExecutor(publishers, thread_name_prefix="s3sink-publish")

    def record(
        self,
        *,
        clock: int,
        partitions: Mapping[TopicPartition, PartitionState],
        named: Sequence[NamedObject] = (),
        rotations: Sequence[Rotation] = (),
        begun: Sequence[tuple[str, str]] = (),
        kafka: Kafka | None = None,
    ) -> None:
        """Writes the next record: from here on it is decided. `begun` are the (key, upload id) that only it would name.

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
            partitions={str(tp): difference(self.state.partition(tp), new) for tp, new in partitions.items()},
            named=tuple(msgspec.structs.replace(o, record=o.record or number) for o in named),
            rotations=tuple(msgspec.structs.replace(r, record=number) for r in rotations),
            acknowledged=tuple(sorted(self._visible)),
        )
        try:
            self.ledger.append(record)
        except LedgerFenced:
            for key, upload in begun:
                self.s3.abort(key, upload)
            raise
        before, self.state = self.state, apply(self.state, record)
        self._visible = set()
        self.s3.delete(superseded(before, self.state, record.partitions))

    def unpublished(self) -> list[NamedObject]:
        """What is named and has not been seen visible yet, in the order of naming."""
        return [o for o in self.state.pending.values() if o.key not in self._visible]

    def publish(self, clock: int) -> None:
        """Makes everything that is named visible, then commits the group's offsets.

        Lost objects are rebuilt and named anew first. Raises ObjectConflict, DataLoss, LedgerFenced, TryAgainLater.
        """
        for _ in range(REBUILD_ATTEMPTS):
            todo = self.unpublished()
            outcomes = publish_all(self.s3, todo, self._pool, self._moved)
            visible = {key for key, outcome in outcomes.items() if outcome is Outcome.VISIBLE}
            self._visible |= visible
            self.published += len(visible)
            lost = [o for o in todo if o.key not in visible]
            if not lost:
                break
            for o in lost:
                _log.warning("the upload of s3://%s/%s is gone: rebuilding it from Kafka", self.s3.bucket, o.key)
            rebuilt = self._rebuild(lost)
            self.record(clock=clock, partitions={}, named=rebuilt, begun=[(o.key, o.upload) for o in rebuilt])
        else:
            raise TryAgainLater(
                f"uploads to s3://{self.s3.bucket} vanish while being written ({REBUILD_ATTEMPTS} times in a row)"
            )
        self._commit_offsets()

    def acknowledge(self, clock: int) -> None:
        """Records what was seen visible, if no record has: for a sink that ends, so that its ledger tells all."""
        if self._visible:
            self.record(clock=clock, partitions={})

    def _moved(self, o: NamedObject) -> bool:
        """Whether the group's offset says that `o` was visible once: then somebody has moved it away (P9)."""
        tp = o.topic_partition
        return self._offsets.group_offsets(self._group, [tp], mark=self._mark).get(tp, -1) > o.last

    @property
    def _mark(self) -> str:
        return mark(self.state.generation)

    def _commit_offsets(self) -> None:
        wanted = committed(self.state, self._visible)
        changed = {tp: offset for tp, offset in wanted.items() if self._committed.get(tp) != offset}
        if changed:
            self.ledger.check_head(self.state)
            try:
                self._offsets.commit(self._group, changed, mark=self._mark)
            except TopicMissing:
                self._commit_by_topic(changed)
            self._committed |= changed

    def _commit_by_topic(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits what can be: a topic that was deleted has no offsets any more, and no need of them."""
        for topic in sorted({tp.topic for tp in offsets}):
            try:
                mine = {tp: o for tp, o in offsets.items() if tp.topic == topic}
                self._offsets.commit(self._group, mine, mark=self._mark)
            except TopicMissing as missing:
                _log.warning("its offsets are not committed: %s", missing)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """The first offset of each partition that is not in a visible object."""
        return committed(self.state, self._visible)

    def maintain(self) -> bool:
        """Takes a snapshot when it is time; returns whether one was taken."""
        if self.state.number - self.state.audited_to < self._snapshot_every:
            return False
        self.state = self.ledger.snapshot(self.state)
        return True

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
