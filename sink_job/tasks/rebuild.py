"""The input and the result of rebuilding one topic-partition's objects (`sink_job.writer.object_rebuilder`)."""

from __future__ import annotations

import msgspec

from sink_job.ledger.state import ClosedObject, OffsetChecksum, OpenObject


class RebuildInput(msgspec.Struct, frozen=True):
    """The objects of one topic-partition to rebuild, all started under the same settings. `partial`: also those of
    which Kafka holds only some records."""

    closed: tuple[ClosedObject, ...] = ()
    open: tuple[OpenObject, ...] = ()
    partial: bool = False

    def offset_range(self) -> tuple[int, int]:
        """The offsets `[start, end)` to read."""
        objects: tuple[ClosedObject | OpenObject, ...] = (*self.closed, *self.open)
        return min(o.first for o in objects), max(o.last for o in objects) + 1


class MissingRecords(msgspec.Struct, frozen=True):
    """An object that cannot be rebuilt completely: the selected records and the expected ones.

    `returned` is the number of offsets in its source ranges at which Kafka has returned a record, `absent` that of the
    others. `other_rules` are the libraries that select records, as recorded and as installed, if they differ.
    """

    path: str
    first: int
    last: int
    found: OffsetChecksum
    expected: OffsetChecksum
    returned: int = 0
    absent: int = 0
    other_rules: tuple[str, ...] = ()

    @property
    def is_incomplete(self) -> bool:
        """Whether fewer records are selected than expected; otherwise Kafka holds other records at these offsets."""
        return self.found.count < self.expected.count

    @property
    def is_loss(self) -> bool:
        """Whether the missing records are among those that Kafka did not return."""
        lacking = self.expected.count - self.found.count
        return 0 < lacking <= self.absent and (not self.other_rules or not self.returned)


class RebuildResult(msgspec.Struct, frozen=True):
    """The rebuilt objects under their new uploads, and the missing records. If records are missing, no object is
    rebuilt, or with `partial` each object that has any record left. `lost` describes a new upload that no longer
    exists; no object is rebuilt then.

    `started_uploads` are the uploads of this attempt, as (key, upload id).
    """

    closed: tuple[ClosedObject, ...] = ()
    open: tuple[OpenObject, ...] = ()
    missing: tuple[MissingRecords, ...] = ()
    started_uploads: tuple[tuple[str, str], ...] = ()
    lost: str | None = None


def all_missing(rebuild_input: RebuildInput) -> RebuildResult:
    """The result for objects of which Kafka no longer holds any record."""
    objects: tuple[ClosedObject | OpenObject, ...] = (*rebuild_input.closed, *rebuild_input.open)
    return RebuildResult(
        missing=tuple(
            MissingRecords(o.path, o.first, o.last, OffsetChecksum(), o.offsets, absent=o.offsets.count)
            for o in objects
        )
    )
