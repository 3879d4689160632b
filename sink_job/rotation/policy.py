"""The rotation policy, and the open objects of one topic-partition during a round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from sink_job.api.enums import RotationScope, SchemaCompatibility
from sink_job.api.spec import ObjectSettings
from sink_job.api.units.s3_limits import MAX_PARTS
from sink_job.partitioning.time_zones import zone
from sink_job.rotation.schedule import Schedule
from sink_job.rotation.types import Close, CloseReason, ObjectId, OpenObjectState, RotationState

MAX_PARTS_BEFORE_CLOSE: Final = MAX_PARTS * 99 // 100
"""Number of full parts at which an object is closed, whatever the settings are: 9,900 of S3's 10,000."""


@dataclass(frozen=True, kw_only=True)
class RotationPolicy:
    """When objects close; None is off. Counts are records, sizes are encoded bytes, times are ms.

    A record whose schema differs from that of the open object of its path closes it, unless the batch decides otherwise
    (rule 3, `Rows.closes`). `separate`: it never does, because a path has one open object for each schema.
    An object that no setting closes is closed before it reaches S3's limit of 10,000 parts. `tombstone_path`: a change
    from or to this path is no path change.
    """

    flush_size: int | None = None
    interval: int | None = None
    schedule: Schedule | None = None
    on_path_change: bool = True
    max_open_objects: int | None = None
    max_bytes: int | None = None
    max_open_time: int | None = None
    per_object: bool = False
    separate: bool = False
    tombstone_path: str | None = None

    @classmethod
    def of(cls, object_settings: ObjectSettings) -> RotationPolicy:
        """The rotation of a sink. Raises ValueError for an unknown time zone."""
        rotation, timezone = object_settings.rotation, object_settings.partitioner.timezone
        limit = MAX_PARTS_BEFORE_CLOSE * object_settings.s3.part_size
        schedule = rotation.schedule_interval and Schedule(zone(timezone or "UTC"), rotation.schedule_interval)
        return cls(
            flush_size=rotation.flush_size,
            interval=rotation.interval,
            schedule=schedule or None,
            on_path_change=rotation.on_path_change,
            max_open_objects=rotation.max_open_objects,
            max_bytes=min(rotation.max_bytes or limit, limit),
            max_open_time=rotation.max_open_time,
            per_object=rotation.scope is RotationScope.OBJECT,
            separate=object_settings.schema_compatibility is SchemaCompatibility.SEPARATE,
            tombstone_path=object_settings.tombstone_path,
        )


class RotationContext:
    """The rotation state of one topic-partition during a round, and its open objects in the order of their opening:
    with `separate` by path and schema, else by path alone (no two of them have the same path)."""

    def __init__(
        self, settings: RotationPolicy, state: RotationState, objects: Iterable[OpenObjectState], now: int
    ) -> None:
        self.settings = settings
        self.now = now
        self.state = state
        self.open = {self.slot(each.path, each.schema): each for each in objects}

    @property
    def due(self) -> bool:
        """Whether the schedule is due: `now` is at or after its next point."""
        next_schedule = self.state.next_schedule
        return self.settings.schedule is not None and next_schedule is not None and self.now >= next_schedule

    def slot(self, path: str, schema: str | None) -> ObjectId:
        """The key in `open` of the object that a record with this path and schema belongs to."""
        return ObjectId(path, schema if self.settings.separate else None)

    def renew_schedule(self) -> None:
        if self.settings.schedule is not None:
            self.state = replace(self.state, next_schedule=self.settings.schedule.after(self.now))

    def add(self, target: ObjectId, *, first: int, last: int, count: int, size: int) -> ObjectId:
        """Adds `count` records of `size` bytes, with the offsets `first` to `last`, to the open object of their path
        and schema `target`; opens it if there is none. Returns the id of the object."""
        slot = self.slot(*target)
        before = self.open.get(slot) or opened(target, first, self.now)
        self.open[slot] = grown(before, last=last, count=count, size=size)
        self.state = replace(self.state, open_records=self.state.open_records + count)
        return before.id

    def close(self, objects: Sequence[OpenObjectState], reason: CloseReason = CloseReason.OTHER) -> Close:
        for each in objects:
            del self.open[self.slot(each.path, each.schema)]
        records = sum(each.count for each in objects)
        self.state = replace(self.state, open_records=self.state.open_records - records)
        return Close(tuple(objects), reason=reason)

    def close_all(self, reason: CloseReason = CloseReason.OTHER) -> Close:
        """Closes all open objects, at least one, and moves the committable offset after them."""
        closed = self.close(list(self.open.values()), reason)
        end = max(each.last for each in closed.objects) + 1
        self.state = replace(self.state, committable=end, interval_start=None)
        return closed

    @property
    def committable(self) -> int:
        """The first offset that is not in a closed object; without open objects the next offset to read."""
        if not self.open:
            return self.state.next
        if self.settings.per_object:
            return min(each.first for each in self.open.values())
        return self.state.committable


def opened(target: ObjectId, first: int, now: int, *, interval_start: int | None = None) -> OpenObjectState:
    """An object without records that opens at the round clock `now` with the offset `first`."""
    return OpenObjectState(
        path=target.path,
        schema=target.schema,
        first=first,
        last=first,
        count=0,
        size=0,
        opened_at=now,
        interval_start=interval_start,
    )


def grown(before: OpenObjectState, *, last: int, count: int, size: int) -> OpenObjectState:
    """The object with `count` more records of `size` bytes, up to the offset `last`."""
    return replace(before, last=last, count=before.count + count, size=before.size + size)
