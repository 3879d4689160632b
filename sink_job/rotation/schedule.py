"""The points of the day at which open objects are closed (`rotation.scheduleInterval`): SEMANTICS section 6."""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.partitioning.time_zones import DAY, Zone


@dataclass(frozen=True)
class Schedule:
    """Points every `period` milliseconds, counted from each local midnight; the last slot of a day may be short."""

    zone: Zone
    period: int

    def after(self, now: int) -> int:
        """The first point after `now` (milliseconds since the epoch)."""
        start, end = self._day(now)
        return start + min(((now - start) // self.period + 1) * self.period, end - start)

    def _day(self, now: int) -> tuple[int, int]:
        """Where the local day of `now` starts and ends: 23, 24 or 25 hours, as the zone says.

        Where midnight is left out the day starts with the clock change; where it comes twice the day starts with the
        first one, unless the day before was entered again.
        """
        local = now + self.zone.offset(now)
        midnight = local - local % DAY
        start = self.zone.instants(midnight)[0]
        ends = self.zone.instants(midnight + DAY)
        return start, next((end for end in ends if end > now), ends[-1])
