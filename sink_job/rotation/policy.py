"""The rotation policy, and the open objects of one topic-partition during a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from sink_job.api.enums import RotationScope
from sink_job.api.s3_limits import MAX_PARTS
from sink_job.api.spec import ObjectSettings
from sink_job.partitioning.time_zones import zone
from sink_job.rotation.schedule import Schedule
from sink_job.rotation.types import Close, OpenObjectState, RotationState

MAX_PARTS_BEFORE_CLOSE: Final = MAX_PARTS * 99 // 100
"""Number of full parts at which an object is closed, whatever the settings are: 9,900 of S3's 10,000."""


@dataclass(frozen=True, kw_only=True)
class RotationPolicy:
    """When objects close; None is off. Counts are records, sizes are encoded bytes, times are ms.

    An object that no setting closes is closed before it reaches S3's limit of 10,000 parts.
    """

    flush_size: int | None = None
    interval: int | None = None
    schedule: Schedule | None = None
    on_path_change: bool = True
    max_open_objects: int | None = None
    max_bytes: int | None = None
    max_open_time: int | None = None
    per_object: bool = False

    @classmethod
    def of(cls, shaping: ObjectSettings) -> RotationPolicy:
        """The rotation of a sink. Raises ValueError for an unknown time zone."""
        rotation, timezone = shaping.rotation, shaping.partitioner.timezone
        limit = MAX_PARTS_BEFORE_CLOSE * shaping.s3.part_size
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
        )


class RotationContext:
    """The rotation state of one topic-partition during a round."""

    def __init__(self, settings: RotationPolicy, state: RotationState, now: int) -> None:
        """Works on a copy of `state`."""
        self.settings = settings
        self.now = now
        copies = {path: msgspec.structs.replace(cut) for path, cut in state.open.items()}
        self.state = msgspec.structs.replace(state, open=copies)

    @property
    def due(self) -> bool:
        """Whether the schedule is due: `now` is at or after its next point."""
        next_schedule = self.state.next_schedule
        return self.settings.schedule is not None and next_schedule is not None and self.now >= next_schedule

    def renew_schedule(self) -> None:
        if self.settings.schedule is not None:
            self.state.next_schedule = self.settings.schedule.after(self.now)

    def open(self, path: str, first: int, *, interval_start: int | None = None) -> OpenObjectState:
        """The open object of `path`; opens one with the first offset `first` if there is none."""
        cut = self.state.open.get(path)
        if cut is None:
            cut = OpenObjectState(
                path=path, first=first, last=first, count=0, size=0, opened_at=self.now, interval_start=interval_start
            )
            self.state.open[path] = cut
        return cut

    def add(self, cut: OpenObjectState, *, last: int, count: int, size: int) -> None:
        """Adds `count` records of `size` bytes, up to the offset `last`, to `cut`."""
        cut.last = last
        cut.count += count
        cut.size += size
        self.state.open_records += count

    def close(self, cuts: Sequence[OpenObjectState]) -> Close:
        for cut in cuts:
            del self.state.open[cut.path]
            self.state.open_records -= cut.count
        return Close(tuple(cuts))

    def close_all(self) -> Close:
        """Closes all open objects, at least one, and moves the committable offset after them."""
        closed = self.close(list(self.state.open.values()))
        self.state.committable = max(cut.last for cut in closed.objects) + 1
        self.state.interval_start = None
        return closed

    @property
    def committable(self) -> int:
        """The first offset that is not in a closed object; without open objects the next offset to read."""
        if not self.state.open:
            return self.state.next
        if self.settings.per_object:
            return min(cut.first for cut in self.state.open.values())
        return self.state.committable
