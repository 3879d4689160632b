"""Rotation state of a topic-partition, and the steps that the rotator returns.

Offsets are Kafka's; `first` and `last` are inclusive, times are ms since the epoch, sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import msgspec

from sink_job.arrow.arrays import Indices


class ObjectId(NamedTuple):
    """Identifies an object among the open objects of a topic-partition: its path and the id of its schema (None: its
    records have no schema)."""

    path: str
    schema: str | None = None


class OpenObjectState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An open object: first and last offset, number of records, size in bytes (encoded, uncompressed), the round clock
    at which it was opened, with scope Object the time of its first record (`interval_start`), and the id of its
    schema."""

    path: str
    first: int
    last: int
    count: int
    size: int
    opened_at: int
    interval_start: int | None = None
    schema: str | None = None

    @property
    def id(self) -> ObjectId:
        return ObjectId(self.path, self.schema)


class RotationState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A topic-partition between two rounds, without its open objects (docs/semantics.md, section 2).

    `next` is the next offset to read. `committable` is the first offset that is not in a closed object: with scope
    Partition a close moves it to the last accepted offset + 1, and the end of a round without open objects moves it to
    `next`. `open_records` is the number of records in the open objects. `last_schema` is the id of the schema of the
    last accepted record with a value, if records without one can follow it (`Rows.nulls`).
    """

    next: int
    committable: int
    last_time: int | None = None
    interval_start: int | None = None
    open_records: int = 0
    current_path: str | None = None
    next_schedule: int | None = None
    last_schema: str | None = None

    @classmethod
    def start(cls, offset: int) -> RotationState:
        """The initial state: `offset` is the first offset to read."""
        return cls(next=offset, committable=offset)


@dataclass(frozen=True, slots=True)
class Append:
    """Append these rows of the batch to the open object `target`; open it if it is not open."""

    target: ObjectId
    rows: slice | Indices


class CloseReason(StrEnum):
    """Why an object closes: the field of `spec.rotation`, or what else."""

    FLUSH_SIZE = "flushSize"
    INTERVAL = "interval"
    SCHEDULE_INTERVAL = "scheduleInterval"
    PATH_CHANGE = "onPathChange"
    MAX_OPEN_OBJECTS = "maxOpenObjects"
    MAX_BYTES = "maxBytes"
    MAX_OPEN_TIME = "maxOpenTime"
    SCHEMA = "schema"
    """The schema of a record, or none, differs from that of the object."""
    OTHER = "other"
    """The end of a run that publishes its open objects, other settings, or a limit of S3."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close these objects, in the order in which they were opened.

    `ends_rotation`: no object is open after this step, and no later step appends a row before the last appended one.
    With scope Object a later step may append such a row, of an object that was open when this one closed.
    """

    objects: tuple[OpenObjectState, ...]
    ends_rotation: bool = False
    reason: CloseReason = field(default=CloseReason.OTHER, compare=False)


Step = Append | Close
