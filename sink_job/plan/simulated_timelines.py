"""The timelines of a simulation: what its steps deliver, and the objects of its reports."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sink_job.api.topic_partition import TopicPartition
from sink_job.plan.planned_object import PlannedObject
from sink_job.plan.timeline import Timelines
from sink_job.rotation.types import CloseReason
from sink_job.simulate.simulation import SimulatedObject, StepReport


class SimulatedTimelines:
    """Collects the writes of a simulation. Times are those of its clock, in ms since the epoch."""

    def __init__(self) -> None:
        self._arrivals: dict[TopicPartition, list[int]] = {}
        self._opened: dict[tuple[str, int], int] = {}
        self._closed: list[PlannedObject] = []
        self._open: list[PlannedObject] = []
        self._times: list[int] = []

    def add(self, delivered: Iterable[TopicPartition], report: StepReport, now: int) -> None:
        """Adds a write at the time `now`: the topic-partition of each record, and the report."""
        self._times.append(now)
        for tp in delivered:
            self._arrivals.setdefault(tp, []).append(now)
        self._closed += [self._planned(each, now)._replace(visible=now) for each in report.closed]
        self._open = [self._planned(each, now) for each in report.open]

    def _planned(self, each: SimulatedObject, now: int) -> PlannedObject:
        return PlannedObject(
            tp=TopicPartition(each.topic, each.partition),
            path="/".join(each.path),
            first=each.first_offset,
            last=each.last_offset,
            records=each.records,
            bytes=each.size,
            opened=self._opened.setdefault((each.key, each.partition), now),
            last_arrival=now,
            reason=None if each.reason is None else CloseReason(each.reason),
        )

    def timelines(self) -> Timelines:
        """All writes so far. Sizes are encoded and uncompressed."""
        arrivals = {tp: np.array(times, np.int64) for tp, times in self._arrivals.items()}
        times = self._times or [0]
        return Timelines(min(times), max(times), arrivals, [*self._closed, *self._open])
