"""An object of a replay or a simulation, as timelines and figures use it."""

from __future__ import annotations

from typing import NamedTuple

from sink_job.api.topic_partition import TopicPartition
from sink_job.rotation.types import CloseReason


class PlannedObject(NamedTuple):
    """An object. `first` and `last` are offsets, inclusive. Times are ms since the epoch: `opened` and
    `last_arrival` are the arrivals of its first and last record, `visible` is when it was published, None for one that
    is open at the end, whose `bytes` are those encoded so far. `reason`: why it closed."""

    tp: TopicPartition
    path: str
    first: int
    last: int
    records: int
    bytes: int
    opened: int
    last_arrival: int
    visible: int | None = None
    reason: CloseReason | None = None
