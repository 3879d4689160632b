"""The report of `s3sink repair`."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sink_job.api.errors import DataLoss


class RepairOutcome(StrEnum):
    """What became of an object."""

    RESTORED = "Restored"
    """It has the recorded bytes again."""
    RESTORABLE = "Restorable"
    """A dry run: there is a source for its bytes."""
    NOT_RESTORABLE = "NotRestorable"
    """No source has its bytes. Nothing was changed."""


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
    and what would be lost. `kept` is the key of the copy of its damaged bytes.
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


class RepairReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of `s3sink repair`. `removed` counts the missing objects that are left alone: a lifecycle rule has
    removed them. `pending` counts those that a driver has to publish first."""

    sink_id: str
    bucket: str
    dry_run: bool
    objects: tuple[RepairedObject, ...]
    removed: int = 0
    pending: int = 0
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0, or the exit code of DataLoss if an object is not restorable."""
        return DataLoss.exit_code if any(o.outcome is RepairOutcome.NOT_RESTORABLE for o in self.objects) else 0
