"""The times of day at which open objects close (`rotation.scheduleInterval`): docs/semantics.md, section 6."""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.partitioning.time_zones import DAY, Zone


@dataclass(frozen=True)
class Schedule:
    """A point every `period` ms from each local midnight; the last interval of a day may be shorter."""

    zone: Zone
    period: int

    def after(self, now: int) -> int:
        """The first point after `now` (ms since the epoch)."""
        start, end = self._day(now)
        return start + min(((now - start) // self.period + 1) * self.period, end - start)

    def _day(self, now: int) -> tuple[int, int]:
        """Start and end of the local day of `now`: 23, 24 or 25 hours, depending on the zone.

        If the clock change skips midnight, the day starts at the change. If midnight occurs twice, the day starts at
        the first one, unless the clock returned to the previous day.
        """
        local = now + self.zone.offset(now)
        midnight = local - local % DAY
        start = self.zone.instants(midnight)[0]
        ends = self.zone.instants(midnight + DAY)
        return start, next((end for end in ends if end > now), ends[-1])
