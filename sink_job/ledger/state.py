"""The data types of the ledger: the state of a sink, the records that change it, and their parts.

A `LedgerState` is what a driver needs to resume; a `Record` is one step. `sink_job.ledger.transitions` folds records
into a state.

Offsets: `first` and `last` are inclusive; `[start, end)` includes `start` and excludes `end`. Times are ms since the
epoch, sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final, Literal

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.formats.remainder import Remainder
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.rotation.types import ObjectId, OpenObjectState, RotationState

FORMAT = 11
"""Format of the ledger's files. Files of any other format are rejected (docs/compatibility.md)."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An uploaded part, as `CompleteMultipartUpload` lists it: part number, ETag, CRC64NVME and size in bytes."""

    number: int
    etag: str
    crc: int
    size: int


class Extent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A byte range of a staging object: `[offset, offset + length)` of the object with the key `name`, and its
    CRC64NVME."""

    name: str
    offset: int
    length: int
    crc: int


NOTHING_STAGED: Final[Remainder[tuple[Extent, ...]]] = Remainder((), (), ())


class SourceRange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An offset range `[start, end)` that contributed records to an object, and its path clock in ms
    (`PartitionState.path_clock`; 0 if no path depends on the clock).

    The source ranges, the path and the schema define the object's records: every accepted record of the ranges with
    this path and schema. A record that was rejected because the registry did not know its schema id is in no range,
    and neither is one that was skipped.
    """

    start: int
    end: int
    clock: int


class OffsetChecksum(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Checksum of a set of offsets: their count, and the sum of their hashes modulo 2**64. Checksums of disjoint sets
    add up."""

    count: int = 0
    hash: int = 0

    def __add__(self, other: OffsetChecksum) -> OffsetChecksum:
        return OffsetChecksum(self.count + other.count, (self.hash + other.hash) & 0xFFFF_FFFF_FFFF_FFFF)

    def __sub__(self, other: OffsetChecksum) -> OffsetChecksum:
        return OffsetChecksum(self.count - other.count, (self.hash - other.hash) & 0xFFFF_FFFF_FFFF_FFFF)


class OpenObject(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An object that is being written: its state for the rotation, its uploaded parts, and the location of its staged
    remainder.

    `settings` is the number of the claim with the object's settings. `blocks`, `partial_block` and `index` are the
    extents of the remainder (`Remainder`).
    """

    state: OpenObjectState
    settings: int
    offsets: OffsetChecksum
    upload: str | None = None
    parts: tuple[Part, ...] = ()
    sources: tuple[SourceRange, ...] = ()
    blocks: tuple[Extent, ...] = ()
    partial_block: tuple[Extent, ...] = ()
    index: tuple[Extent, ...] = ()

    @property
    def path(self) -> str:
        return self.state.path

    @property
    def schema(self) -> str | None:
        return self.state.schema

    @property
    def id(self) -> ObjectId:
        return self.state.id

    @property
    def first(self) -> int:
        return self.state.first

    @property
    def last(self) -> int:
        return self.state.last

    @property
    def count(self) -> int:
        return self.state.count

    @property
    def size(self) -> int:
        return self.state.size

    @property
    def remainder(self) -> Remainder[tuple[Extent, ...]]:
        """The staged extents of each kind of bytes."""
        return Remainder(self.blocks, self.partial_block, self.index)

    @property
    def staged(self) -> tuple[Extent, ...]:
        """The staged extents."""
        return self.blocks + self.partial_block + self.index


class ClosedObject(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An object that a record lists for publishing. Its records are final: a rebuild reads the same records (P2).

    `bytes` and `crc` (CRC64NVME) are those of the whole object. `record` is the number of the first record that lists
    it. `acknowledged` is the number of the record that acknowledges it: in the published log, 0 before. `schema` is the
    id of its schema (None: without a schema).
    """

    key: str
    topic: str
    partition: int
    path: str
    first: int
    last: int
    bytes: int
    crc: int
    upload: str
    parts: tuple[Part, ...]
    sources: tuple[SourceRange, ...]
    offsets: OffsetChecksum
    settings: int
    record: int = 0
    acknowledged: int = 0
    schema: str | None = None

    @property
    def id(self) -> ObjectId:
        return ObjectId(self.path, self.schema)

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class RotationRange(msgspec.Struct, frozen=True, gc=False):
    """An offset range `[start, end)` of a topic-partition. No object was open at its end.

    `gaps` are the offsets in the range that were never in an object: control records, aborted, compacted, rejected,
    ignored and skipped records, and records that Kafka deleted before they were read (`onDataLoss: Continue`). `record`
    is the number of the record that lists the range.
    """

    topic: str
    partition: int
    start: int
    end: int
    gaps: OffsetChecksum
    record: int = 0


class LostObject(msgspec.Struct, frozen=True, gc=False):
    """The lost records of an object: the object was not visible and had to be rebuilt, and Kafka had deleted some of
    its records (`onDataLoss: Continue`). No object contains them.

    `key`, `first` and `last` are those of the original object; `offsets` is the checksum of the lost offsets. The
    remaining records are in a closed or open object with the key of its first record. `record` is the number of the
    record that reports the loss.

    A loss that a user has accepted has the key and all offsets of an object that was published
    (`sink_job.ledger.data_loss.accepted_losses`).
    """

    topic: str
    partition: int
    key: str
    path: str
    first: int
    last: int
    offsets: OffsetChecksum
    record: int = 0


class PartitionState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One topic-partition: the rotation state (docs/semantics.md) and the open objects, ordered by first offset.

    `rotation_start` is the end of the last rotation range. `accepted` is the checksum of the records accepted since
    then: in open objects, in closed objects, or lost. `accepted_end` is the offset after the last of them. `settings`
    is the number of the claim with the settings of the last round. `path_clock` is a round clock in ms. All rounds
    since that clock, up to the last round, have the same time path (None: paths do not depend on the clock).
    `last_unknown` is the offset of the last record that was rejected because the registry did not know its schema id.
    `skipped` are the offsets of the records of this generation that were passed over (`errors.skip`), ascending. They
    are passed over again if they are read again. In a delta it has only the new ones.
    """

    rotation: RotationState
    rotation_start: int
    accepted: OffsetChecksum = OffsetChecksum()
    accepted_end: int = 0
    settings: int = 0
    path_clock: int | None = None
    last_unknown: int | None = None
    skipped: tuple[int, ...] = ()
    open: tuple[OpenObject, ...] = ()

    @classmethod
    def start(cls, offset: int) -> PartitionState:
        """The initial state: `offset` is the first offset to read."""
        return cls(RotationState.start(offset), rotation_start=offset, accepted_end=offset)

    @property
    def next(self) -> int:
        """The next offset to read."""
        return self.rotation.next

    @property
    def committable(self) -> int:
        """The first offset that is not in a closed object."""
        return self.rotation.committable

    def staged(self) -> set[str]:
        """Keys of the staging objects that the open objects refer to."""
        return {extent.name for o in self.open for extent in o.staged}

    def uploads(self) -> set[str]:
        """Upload ids of the open objects."""
        return {o.upload for o in self.open if o.upload}


class KeptParts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Number of leading elements that a delta keeps of each list of an open object; all 0 for a new object."""

    parts: int = 0
    sources: int = 0
    blocks: int = 0
    partial_block: int = 0
    index: int = 0

    @property
    def remainder(self) -> Remainder[int]:
        """The numbers of the lists of the remainder."""
        return Remainder(self.blocks, self.partial_block, self.index)


class PartitionDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes of a partition's state.

    `state.open` omits unchanged open objects. The lists of the others hold only their new elements; `kept` counts the
    recorded elements that each keeps. `removed` are the objects that are no longer open.
    """

    state: PartitionState
    kept: tuple[KeptParts, ...] = ()
    removed: tuple[ObjectId, ...] = ()


class KafkaIdentity(msgspec.Struct, frozen=True):
    """Ids of the Kafka cluster and its topics. They identify a re-created topic (P11)."""

    cluster: str
    topics: dict[str, str]


class OffsetResetRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An offset reset: the part of a claim that starts a new generation.

    `ended` are the final partition states of the previous generation, without open objects; the claim itself holds
    those of the new generation. `topics_dir` is the directory of the new generation's objects. `nonce` identifies the
    request, which is applied once. `request` is the digest of the whole request (`reset_targets.request_digest`; empty
    if none was recorded).
    """

    generation: int
    topics_dir: str
    ended: dict[str, PartitionState]
    nonce: str | None = None
    to: str = ""
    on_existing: str = ""
    request: str = ""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of the ledger.

    A *claim* starts an epoch (the claim's own number) and holds the complete settings (P4, P8). A *round* holds the
    results of one round: partition deltas, closed objects, acknowledged keys and lost records. A claim with a `reset`
    holds every partition of the new generation with its start offset. `sets_clock_back`: the ledger's clock is set to
    this record's clock, which is earlier; no topic-partition has an open object then. `previous`: the first claim
    continues another writer.
    """

    number: int
    epoch: int
    attempt: str
    kind: Literal["claim", "round"]
    clock: int
    format: int = msgspec.field(default_factory=lambda: FORMAT)  # a factory: every file contains the field
    settings: str | None = None
    kafka: KafkaIdentity | None = None
    partitions: dict[str, PartitionDelta] = {}
    closed: tuple[ClosedObject, ...] = ()
    rotations: tuple[RotationRange, ...] = ()
    acknowledged: tuple[str, ...] = ()
    lost: tuple[LostObject, ...] = ()
    reset: OffsetResetRecord | None = None
    sets_clock_back: bool = False
    previous: PreviousWriter | None = None


class LedgerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of all records up to `number`.

    `pending` are the closed objects without an acknowledgement. `settings` are the settings of open and pending
    objects, by the number of their claim, and the newest settings. `published`, `rotations` and `lost` are the audit
    log since the last snapshot; a snapshot moves them to the published log, which ends at record `audited_to`.
    `claims` are the numbers of the claims, which are never deleted.
    `generation` starts at 1; each offset reset adds 1. `topics_dir` is the directory of its objects (None: that of the
    manifest), `nonce` that of the last reset.
    """

    number: int = 0
    epoch: int = 0
    clock: int = 0
    format: int = msgspec.field(default_factory=lambda: FORMAT)  # a factory: every file contains the field
    claims: tuple[int, ...] = ()
    settings: dict[int, str] = {}
    kafka: KafkaIdentity | None = None
    partitions: dict[str, PartitionState] = {}
    pending: dict[str, ClosedObject] = {}
    published: tuple[ClosedObject, ...] = ()
    rotations: tuple[RotationRange, ...] = ()
    lost: tuple[LostObject, ...] = ()
    audited_to: int = 0
    generation: int = 1
    topics_dir: str | None = None
    nonce: str | None = None

    def partition(self, topic_partition: TopicPartition) -> PartitionState | None:
        """The state of a topic-partition; None if the ledger does not contain it."""
        return self.partitions.get(str(topic_partition))

    def current_settings(self) -> int:
        """Number of the claim with the current settings."""
        return max(self.settings)

    def uploads(self) -> set[str]:
        """Upload ids of open and pending objects. No clean-up may abort them."""
        pending = {o.upload for o in self.pending.values()}
        return pending.union(*(p.uploads() for p in self.partitions.values()))

    def staged(self) -> set[str]:
        """Keys of the staging objects of all open objects. No clean-up may delete them."""
        empty: set[str] = set()
        return empty.union(*(p.staged() for p in self.partitions.values()))


def without_audit(state: LedgerState) -> LedgerState:
    """The state as a snapshot stores it: its audit log is in the published log."""
    return msgspec.structs.replace(state, published=(), rotations=(), lost=(), audited_to=state.number)


def committable_offsets(state: LedgerState, visible: Set[str] = frozenset()) -> dict[TopicPartition, int]:
    """The offset to commit of each partition (P5): the first offset that is not in an acknowledged object.

    `visible` are the keys of pending objects that count as acknowledged. It is empty in a driver's commits.
    """
    offsets = {TopicPartition.parse(name): p.committable for name, p in state.partitions.items()}
    for o in state.pending.values():
        if o.key not in visible:
            offsets[o.topic_partition] = min(offsets[o.topic_partition], o.first)
    return offsets
