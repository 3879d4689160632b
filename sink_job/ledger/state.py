"""What the ledger says: the state of a sink, the records that change it, and how one becomes the other.

Pure. A `State` is what a driver must know to go on; a `Record` is one step; `apply` folds records into a state and
`difference` makes the step between two states of a partition, so that a record holds only what changed. Nothing here
looks at a clock, at S3 or at Kafka, so recovery is a function of what was listed and read (promises P2, P4, P5, P9).

Offsets: `first`/`last` are inclusive, `start`/`end` half open. Times are ms since the epoch, sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Literal

import msgspec

from sink_job.api.topic_partition import TopicPartition

FORMAT = 3
"""Format of the ledger's files. A file of any other format is refused (docs/compatibility.md)."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part on the server: what completion names."""

    number: int
    etag: str
    crc: int
    size: int


class Extent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes inside a staging object: `[offset, offset + length)` of `name`, with their CRC64NVME."""

    name: str
    offset: int
    length: int
    crc: int


class SourceRange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An offset range `[start, end)` that an object's records were chosen from, under the path clock `clock`
    (`PartitionState.path_clock`; 0 where no path depends on the clock).

    With the path these are the object's members: every accepted record of the range whose path is the object's.
    """

    start: int
    end: int
    clock: int


class OffsetChecksum(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many offsets, and the sum of their hashes modulo 2**64: tallies of disjoint sets add up."""

    count: int = 0
    hash: int = 0

    def __add__(self, other: OffsetChecksum) -> OffsetChecksum:
        return OffsetChecksum(self.count + other.count, (self.hash + other.hash) & 0xFFFF_FFFF_FFFF_FFFF)

    def __sub__(self, other: OffsetChecksum) -> OffsetChecksum:
        return OffsetChecksum(self.count - other.count, (self.hash - other.hash) & 0xFFFF_FFFF_FFFF_FFFF)


class OpenObject(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An object that is being written: its recorded parts, and where its leftovers are staged.

    `sealed` are complete blocks (rows, gzip members) that do not fill a part yet, `loose` the uncompressed rows of the
    block that is not complete. `settings` is the number of the claim whose settings shape it.
    """

    path: str
    first: int
    last: int
    size: int
    opened_at: int
    settings: int
    offsets: OffsetChecksum
    interval_start: int | None = None
    upload: str | None = None
    parts: tuple[Part, ...] = ()
    sources: tuple[SourceRange, ...] = ()
    blocks: tuple[Extent, ...] = ()
    partial_block: tuple[Extent, ...] = ()

    @property
    def count(self) -> int:
        return self.offsets.count

    @property
    def staged(self) -> tuple[Extent, ...]:
        return self.blocks + self.partial_block


class ClosedObject(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An object that a record has named for publishing; from here on it is never cut again, only rebuilt (P2).

    `bytes` and `crc` are of the whole body; `record` is the number of the record that named it first.
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

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class RotationRange(msgspec.Struct, frozen=True, gc=False):
    """A stretch `[start, end)` of a topic-partition after which nothing was open, and the offsets in it that are in no
    object: control records, aborted, compacted, refused or ignored ones, and what `onDataLoss: Continue` gave up.
    `record` is the number of the record that tells of it."""

    topic: str
    partition: int
    start: int
    end: int
    gaps: OffsetChecksum
    record: int = 0


class LostObject(msgspec.Struct, frozen=True, gc=False):
    """Records of an object that was not visible yet and had to be rebuilt, which Kafka no longer held: they are in no
    object (`onDataLoss: Continue`). `key`, `first` and `last` are those that the object had, `offsets` tallies what is
    lost of it; what is left of it is named, or open, under the key of its first record. `record` is the number of the
    record that gave them up."""

    topic: str
    partition: int
    key: str
    path: str
    first: int
    last: int
    offsets: OffsetChecksum
    record: int = 0


class PartitionState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One topic-partition: the cutter's state (SEMANTICS section 2) and the open objects behind it.

    `committable` is the first offset that is not in a closed object. `rotation_start` is where the last rotation ended,
    and `written` tallies the records written since, whether their objects are open or closed, or have lost them;
    `written_to` is the offset behind the last of them. `settings` is the number of the claim under whose settings it
    was last cut. `path_clock` is a round clock that gives the same time path as that of the last round, and of every
    round in between (None: paths do not depend on the clock).
    """

    next: int
    committable: int
    rotation_start: int
    accepted: OffsetChecksum = OffsetChecksum()
    accepted_end: int = 0
    settings: int = 0
    open_records: int = 0
    last_time: int | None = None
    interval_start: int | None = None
    current_path: str | None = None
    next_schedule: int | None = None
    path_clock: int | None = None
    open: tuple[OpenObject, ...] = ()

    def staged(self) -> set[str]:
        """Names of the staging objects that the open objects refer to."""
        return {extent.name for o in self.open for extents in (o.blocks, o.partial_block) for extent in extents}

    def uploads(self) -> set[str]:
        return {o.upload for o in self.open if o.upload}


class KeptParts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many leading elements of an open object's lists a change keeps; all 0 for a new object."""

    parts: int = 0
    sources: int = 0
    blocks: int = 0
    partial_block: int = 0


class PartitionDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """A partition's new state without what did not change: untouched open objects are left out, and of the others only
    the new elements of their lists are in `state.open`; `kept` counts the recorded elements that each keeps."""

    state: PartitionState
    kept: tuple[KeptParts, ...] = ()
    removed: tuple[str, ...] = ()


class KafkaIdentity(msgspec.Struct, frozen=True):
    """Who the records come from: Kafka's own ids, so that a re-created topic is noticed (P11)."""

    cluster: str
    topics: dict[str, str]


class OffsetResetRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a claim says that begins a new generation: where the one before ended, and where objects go from here on.

    `ended` are its partitions, nothing open in them; those of the new one stand in the claim. `topics_dir` holds the
    new generation's objects. `nonce` is the request's, so that it is carried out once; `request` is the digest of all
    of it (`starts.digest`; empty where it was not recorded).
    """

    generation: int
    topics_dir: str
    ended: dict[str, PartitionState]
    nonce: str | None = None
    to: str = ""
    on_existing: str = ""
    request: str = ""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of the ledger. A *claim* begins an epoch (its own number) and holds the settings in full (P4, P8); a
    *round* says what one round wrote, named, acknowledged and gave up. A claim with a `reset` holds all partitions
    that there are from here on, and where they start. `sets_clock_back`: the ledger's clock becomes this record's,
    which is earlier; nothing is open then in any topic-partition."""

    number: int
    epoch: int
    attempt: str
    kind: Literal["claim", "round"]
    clock: int
    format: int = msgspec.field(default_factory=lambda: FORMAT)  # a factory, so that every file contains it
    settings: str | None = None
    kafka: KafkaIdentity | None = None
    partitions: dict[str, PartitionDelta] = {}
    closed: tuple[ClosedObject, ...] = ()
    rotations: tuple[RotationRange, ...] = ()
    acknowledged: tuple[str, ...] = ()
    lost: tuple[LostObject, ...] = ()
    reset: OffsetResetRecord | None = None
    sets_clock_back: bool = False


class LedgerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything the ledger has decided up to record `number`.

    `pending` are the objects named and not acknowledged; `settings` the settings, by claim, that open or pending
    objects were begun under, and the newest. `published`, `rotations` and `lost` are the audit since the last snapshot:
    they leave the state when a snapshot is taken, into the published list. `claims` are the numbers that are never
    dropped.
    `generation` counts from 1, one more for each reset of the offsets; `topics_dir` is where its objects go (None: as
    the manifest says), `nonce` the last reset's.
    """

    number: int = 0
    epoch: int = 0
    clock: int = 0
    format: int = msgspec.field(default_factory=lambda: FORMAT)  # a factory, so that every file contains it
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
        return self.partitions.get(str(topic_partition))

    def current_settings(self) -> int:
        """Number of the claim whose settings are in force."""
        return max(self.settings)

    def uploads(self) -> set[str]:
        """Upload ids that this state names: nobody's clean-up may abort them."""
        named = {o.upload for o in self.pending.values()}
        return named.union(*(p.uploads() for p in self.partitions.values()))

    def staged(self) -> set[str]:
        empty: set[str] = set()
        return empty.union(*(p.staged() for p in self.partitions.values()))


def diff(old: PartitionState | None, new: PartitionState) -> PartitionDelta:
    """The change that makes `new` of `old`; `merge(old, difference(old, new)) == new`."""
    before = {o.path: o for o in old.open} if old else {}
    touched: list[OpenObject] = []
    kept: list[KeptParts] = []
    for o in new.open:
        was = before.get(o.path)
        if was == o:
            continue
        keep = _kept(was, o) if was is not None and was.first == o.first else KeptParts()
        touched.append(
            msgspec.structs.replace(
                o,
                parts=o.parts[keep.parts :],
                sources=o.sources[keep.sources :],
                blocks=o.blocks[keep.blocks :],
                partial_block=o.partial_block[keep.partial_block :],
            )
        )
        kept.append(keep)
    fresh = {o.path: o.first for o in new.open}
    gone = tuple(path for path, o in before.items() if fresh.get(path) != o.first)
    return PartitionDelta(msgspec.structs.replace(new, open=tuple(touched)), tuple(kept), gone)


def patch(old: PartitionState | None, change: PartitionDelta) -> PartitionState:
    """`old` after `change`, its open objects in the order of their first offsets: that in which they were opened."""
    objects = {o.path: o for o in old.open} if old else {}
    for path in change.removed:
        objects.pop(path, None)
    for o, keep in zip(change.state.open, change.kept, strict=True):
        if not any(msgspec.structs.astuple(keep)):
            objects[o.path] = o
            continue
        was = objects[o.path]
        objects[o.path] = msgspec.structs.replace(
            o,
            parts=was.parts[: keep.parts] + o.parts,
            sources=was.sources[: keep.sources] + o.sources,
            blocks=was.blocks[: keep.blocks] + o.blocks,
            partial_block=was.partial_block[: keep.partial_block] + o.partial_block,
        )
    return msgspec.structs.replace(change.state, open=tuple(sorted(objects.values(), key=lambda o: o.first)))


def _kept(was: OpenObject, now: OpenObject) -> KeptParts:
    """What the lists of an object have in common with what the ledger has of it. The parts of another upload are other
    parts."""
    return KeptParts(
        parts=_common(was.parts, now.parts) if was.upload == now.upload else 0,
        sources=_common(was.sources, now.sources),
        blocks=_common(was.blocks, now.blocks),
        partial_block=_common(was.partial_block, now.partial_block),
    )


def _common(was: Sequence[object], now: Sequence[object]) -> int:
    """How many leading elements are equal."""
    if now[: len(was)] == was:
        return len(was)
    return next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))


def apply(state: LedgerState, record: Record) -> LedgerState:
    """The state after `record`.

    Raises ValueError when the record is not the next one: a gap is never passed over.
    """
    if record.number != state.number + 1:
        raise ValueError(f"record {record.number} does not follow {state.number}")
    reset = record.reset
    partitions = dict(state.partitions) if reset is None else {}
    for name, change in record.partitions.items():
        partitions[name] = patch(partitions.get(name), change)
    pending = dict(state.pending)
    published = [pending.pop(key) for key in record.acknowledged if key in pending]
    for given_up in record.lost:
        pending.pop(given_up.key, None)
    pending.update({o.key: o for o in record.closed})
    settings = state.settings
    if record.settings is not None and record.settings not in (settings.get(max(settings)) if settings else None,):
        settings = {**settings, record.number: record.settings}
    return LedgerState(
        number=record.number,
        epoch=record.epoch,
        clock=record.clock if record.sets_clock_back else max(state.clock, record.clock),
        claims=state.claims + ((record.number,) if record.kind == "claim" else ()),
        settings=_referenced(settings, partitions.values(), pending.values()),
        kafka=record.kafka or state.kafka,
        partitions=partitions,
        pending=pending,
        published=state.published + tuple(published),
        rotations=state.rotations + record.rotations,
        lost=state.lost + record.lost,
        audited_to=state.audited_to,
        generation=state.generation if reset is None else reset.generation,
        topics_dir=state.topics_dir if reset is None else reset.topics_dir,
        nonce=state.nonce if reset is None else reset.nonce,
    )


def superseded_staging(before: LedgerState, after: LedgerState, changed: Iterable[str]) -> list[str]:
    """The staging objects that `before` named and `after` does not, where only the topic-partitions `changed` differ.

    One that holds leftovers of several stays until the last of them needs it no more.
    """
    named: set[str] = set()
    kept: set[str] = set()
    for name in changed:
        was = before.partitions.get(name)
        named |= was.staged() if was else set()
        kept |= after.partitions[name].staged()
    gone = named - kept
    return sorted(gone - after.staged()) if gone else []


def without_audit(state: LedgerState) -> LedgerState:
    """The state as its snapshot keeps it: the audit up to it stands in the published list."""
    return msgspec.structs.replace(state, published=(), rotations=(), lost=(), audited_to=state.number)


def committable_offsets(state: LedgerState, visible: Set[str] = frozenset()) -> dict[TopicPartition, int]:
    """The offset to commit of each partition (P5): the first one that is not in an acknowledged object.

    `visible` are the keys of pending objects that count as acknowledged; a driver that commits gives none.
    """
    offsets = {TopicPartition.parse(name): p.committable for name, p in state.partitions.items()}
    for o in state.pending.values():
        if o.key not in visible:
            offsets[o.topic_partition] = min(offsets[o.topic_partition], o.first)
    return offsets


def _referenced(
    settings: Mapping[int, str], partitions: Iterable[PartitionState], pending: Iterable[ClosedObject]
) -> dict[int, str]:
    used = {o.settings for p in partitions for o in p.open} | {o.settings for o in pending}
    newest = max(settings, default=0)
    return {number: text for number, text in settings.items() if number in used or number == newest}
