"""The report of `s3sink repair`."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sink_job.api.errors import DataLoss
from sink_job.ledger.state import ClosedObject
from sink_job.maintenance.repair.accepted_loss import AcceptedLosses
from sink_job.maintenance.repair.damage import Suspect


class RepairOutcome(StrEnum):
    """What became of an object."""

    RESTORED = "Restored"
    """It has the recorded bytes again."""
    RESTORABLE = "Restorable"
    """A dry run: there is a source for its bytes."""
    NOT_RESTORABLE = "NotRestorable"
    """No source has its bytes. Nothing was changed."""
    LOSS_ACCEPTED = "LossAccepted"
    """No source has its bytes, and the ledger records now that it is lost. What is at its key was not changed."""


class Source(StrEnum):
    """Where the bytes of an object are from."""

    VERSION = "Version"
    """An older version of the object in the bucket."""
    KAFKA = "Kafka"
    """The records of the object in Kafka."""
    ANOTHER_RUN = "AnotherRun"
    """Another command has restored the object meanwhile."""


class RepairedObject(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A missing or damaged object. Offsets are inclusive; `bytes` are those of the recorded object.

    `damage` is what was wrong with it. `source` is None if it is not restorable, and `message` says then what is left
    and what would be lost, or is lost now. `kept` is the key of the copy of its damaged bytes.
    """

    key: str
    topic: str
    partition: int
    first: int
    last: int
    records: int
    bytes: int
    damage: str
    outcome: RepairOutcome
    source: Source | None = None
    message: str = ""
    kept: str | None = None


class RepairResults:
    """What is known of the objects during a run: their damage, what became of them, and which are lost."""

    def __init__(self) -> None:
        self.done: dict[str, RepairedObject] = {}
        self.lost: list[Suspect] = []
        self.record: int | None = None
        self._damage: dict[str, tuple[str, str | None]] = {}

    def damaged(self, key: str, damage: str) -> None:
        """An object is damaged."""
        self._damage[key] = damage, None

    def kept(self, key: str, at: str | None) -> None:
        """The damaged bytes of an object were copied to the key `at`; None if nothing was copied this time."""
        damage, before = self._damage[key]
        self._damage[key] = damage, at or before

    def finish(self, o: ClosedObject, outcome: RepairOutcome, source: Source | None = None, message: str = "") -> None:
        """The outcome of an object."""
        damage, kept_at = self._damage[o.key]
        self.done[o.key] = RepairedObject(
            key=o.key,
            topic=o.topic,
            partition=o.partition,
            first=o.first,
            last=o.last,
            records=o.offsets.count,
            bytes=o.bytes,
            damage=damage,
            outcome=outcome,
            source=source,
            message=message,
            kept=kept_at,
        )

    def accept(self, accepted: AcceptedLosses) -> None:
        """The losses that the ledger records now."""
        self.record = accepted.record
        for suspect in self.lost:
            key = suspect.o.key
            if key in accepted.keys:
                self.finish(suspect.o, RepairOutcome.LOSS_ACCEPTED, message=self.done[key].message)
            elif key in accepted.restored:
                self.finish(suspect.o, RepairOutcome.RESTORED, Source.ANOTHER_RUN)


class RepairReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of `s3sink repair`. `removed` counts the missing objects that are left alone: a lifecycle rule has
    removed them. `pending` counts those that a driver has to publish first, `accepted` missing and damaged ones whose
    loss an earlier command has recorded. `record` is the number of the ledger record that accepts losses.
    `kept_bucket` is the bucket of the copies of damaged bytes, with `spec.s3.ledger`."""

    sink_id: str
    bucket: str
    dry_run: bool
    objects: tuple[RepairedObject, ...]
    removed: int = 0
    pending: int = 0
    notes: tuple[str, ...] = ()
    accepted: int = 0
    record: int | None = None
    kept_bucket: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def exit_code(self) -> int:
        """0, or the exit code of DataLoss if an object is not restorable."""
        return DataLoss.exit_code if any(o.outcome is RepairOutcome.NOT_RESTORABLE for o in self.objects) else 0
