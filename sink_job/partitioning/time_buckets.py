"""Time buckets: where the zone and the duration of a path meet."""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.arrow.arrays import Indices, Times
from sink_job.partitioning.time_zones import Zone, ranked


@dataclass(frozen=True)
class TimeBuckets:
    """The time buckets of paths: intervals of `duration` ms in the zone's local time."""

    zone: Zone
    duration: int

    def of(self, times: Times) -> tuple[Indices, list[int]]:
        """For each of `times` the index of its bucket, and the start (instant) of each distinct bucket.

        The division of local time truncates toward zero, as in the connector: before 1970 the start of a bucket is its
        end. The repeated hour of a clock change is one bucket. `times` must not be empty.
        """
        local = times + self.zone.offsets(times)
        numbers = local // self.duration
        if int(local.min()) < 0:
            numbers += (local < 0) & (numbers * self.duration != local)
        indexes, distinct = ranked(numbers)
        return indexes, [self.zone.to_utc(int(number) * self.duration) for number in distinct]
