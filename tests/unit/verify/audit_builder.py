"""Builds the input of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.offset_checksum import checksum, gap_checksum
from sink_job.ledger.state import (
    ClosedObject,
    LedgerState,
    LostObject,
    OffsetChecksum,
    OpenObject,
    PartitionState,
    RotationRange,
)
from sink_job.rotation.types import OpenObjectState, RotationState
from sink_job.verify.audit import audit
from sink_job.verify.audit_input import BucketState, GenerationAudit, KafkaOffsets
from sink_job.verify.results import PartitionResult

TP = TopicPartition("flights", 0)


def checksum_of(offsets: Iterable[int]) -> OffsetChecksum:
    return checksum(np.array(sorted(offsets), dtype=np.int64))


def closed(offsets: Sequence[int], path: str = "a") -> ClosedObject:
    return ClosedObject(
        key=f"topics/flights/{path}/flights+0+{offsets[0]:010d}.json",
        topic=TP.topic,
        partition=TP.partition,
        path=path,
        first=offsets[0],
        last=offsets[-1],
        bytes=10 * len(offsets),
        crc=1,
        upload="u",
        parts=(),
        sources=(),
        offsets=checksum_of(offsets),
        settings=1,
    )


def opened(offsets: Sequence[int], path: str = "a") -> OpenObject:
    return OpenObject(
        OpenObjectState(
            path=path, first=offsets[0], last=offsets[-1], count=checksum_of(offsets).count, size=1, opened_at=0
        ),
        settings=1,
        offsets=checksum_of(offsets),
    )


@dataclass
class AuditBuilder:
    """The ledger, bucket and Kafka offsets of a sink with one topic-partition; `next` is the next offset to read."""

    next: int = 0
    published: list[ClosedObject] = field(default_factory=list)
    pending: list[ClosedObject] = field(default_factory=list)
    rotations: list[RotationRange] = field(default_factory=list)
    lost: list[LostObject] = field(default_factory=list)
    open: list[OpenObject] = field(default_factory=list)
    rotation_start: int = -1
    accepted: set[int] = field(default_factory=set)
    bucket: BucketState = field(default_factory=BucketState)
    kafka: KafkaOffsets = field(default_factory=KafkaOffsets)
    start: int | None = None
    skipped: tuple[int, ...] = ()
    accepted_losses: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rotation_start = self.next
        self.start = self.next

    def rotation(self, *objects: ClosedObject, pending: bool = False) -> None:
        """Adds these objects and ends the rotation range after them."""
        (self.pending if pending else self.published).extend(objects)
        end = max(o.last for o in objects) + 1
        accepted = sum((o.offsets for o in objects), checksum_of(self.accepted))
        self.rotations.append(
            RotationRange(*TP, self.rotation_start, end, gap_checksum(self.rotation_start, end, accepted))
        )
        self.rotation_start, self.next, self.accepted = end, end, set()

    def add_open(self, *objects: OpenObject, accepted: Iterable[int]) -> None:
        """Sets the open objects, and the offsets accepted since the last rotation range."""
        self.open, self.accepted = list(objects), set(accepted)
        self.next = max(self.next, *(offset + 1 for offset in self.accepted))

    def generation(self) -> GenerationAudit:
        state = PartitionState(
            RotationState(next=self.next, committable=min((o.first for o in self.open), default=self.next)),
            rotation_start=self.rotation_start,
            accepted=checksum_of(self.accepted),
            accepted_end=max(self.accepted, default=self.rotation_start - 1) + 1,
            skipped=self.skipped,
            open=tuple(self.open),
        )
        return GenerationAudit(
            LedgerState(partitions={str(TP): state}, pending={o.key: o for o in self.pending}),
            self.published,
            self.rotations,
            {} if self.start is None else {TP: self.start},
            lost=self.lost,
            accepted=frozenset(self.accepted_losses),
        )

    def lose(self, o: ClosedObject | OpenObject, offsets: Iterable[int]) -> None:
        """Records these offsets of the object as lost; the remaining object is in the ledger."""
        self.lost.append(LostObject(*TP, "key", o.path, o.first, o.last, checksum_of(offsets)))

    def result(self) -> PartitionResult:
        (result,) = audit(self.generation(), self.bucket, self.kafka)
        return result

    def findings(self) -> list[tuple[str, int]]:
        return [(finding.type, finding.offset) for finding in self.result().findings]


def dense() -> AuditBuilder:
    """Offsets 5 to 34 in three published objects, each with a rotation range of its own."""
    sink = AuditBuilder(next=5)
    for first in (5, 15, 25):
        sink.rotation(closed(range(first, first + 10)))
    return sink


def interleaved() -> AuditBuilder:
    """Offsets 0 to 19 in two alternating paths, with the gaps 6 and 7; then 20 to 29 in one object."""
    sink = AuditBuilder()
    offsets = [offset for offset in range(20) if offset not in (6, 7)]
    sink.rotation(closed(offsets[::2], "a"), closed(offsets[1::2], "b"))
    sink.rotation(closed(range(20, 30)))
    return sink
