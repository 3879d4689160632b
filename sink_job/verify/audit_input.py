"""The input of an audit: the ledger's records of one generation, the bucket's deviations, and Kafka's offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.previous_writer import AcceptedObject
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, RotationRange


@dataclass(frozen=True)
class UntrackedObject:
    """An object with records of this sink that the ledger does not list.

    `first` is its first offset: by its key, or that of the listed object `copy_of` with the same content.
    """

    key: str
    first: int
    bytes: int
    copy_of: str | None = None


@dataclass(frozen=True)
class BucketState:
    """The deviations of the bucket from the ledger.

    - `missing`: listed keys without an object.
    - `removed`: those of them that a lifecycle rule has removed on purpose.
    - `mismatched`: listed keys with a different object, and the difference as text.
    - `untracked`: objects that the ledger does not list.
    - `replaced`: missing keys of an ended generation whose records a later generation has copied again or will copy.
    - `recopied`: existing keys of an ended generation with records that a later generation has copied to the same
      directory, and the first such offset.
    - `lowest_starts`: the lowest start offset of all generations in the directory.
    """

    missing: frozenset[str] = frozenset()
    mismatched: Mapping[str, str] = field(default_factory=dict)
    untracked: Mapping[TopicPartition, Sequence[UntrackedObject]] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    recopied: Mapping[str, int] = field(default_factory=dict)
    lowest_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GenerationAudit:
    """The ledger's content for one generation.

    `published` are all acknowledged objects, `rotations` all rotation ranges, `lost` all lost records of objects that
    were not visible. `starts` are the start offsets of the partitions. `ended`: an offset reset has ended the
    generation, and `state` is its final state. `accepted` are the keys of published objects whose loss a user has
    accepted: they count as lost while they are missing or damaged.
    `previous` are the objects of the writer before this sink that its first claim has accepted.
    """

    state: LedgerState
    published: Sequence[ClosedObject]
    rotations: Sequence[RotationRange]
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    ended: bool = False
    lost: Sequence[LostObject] = ()
    accepted: frozenset[str] = frozenset()
    previous: Sequence[AcceptedObject] = ()

    @property
    def objects(self) -> list[ClosedObject]:
        """All closed objects: published and pending."""
        return [*self.published, *self.state.pending.values()]


@dataclass(frozen=True)
class KafkaOffsets:
    """Offsets in Kafka: those of the consumer group, read before everything else, and the log end offsets, read after
    everything else."""

    group: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
