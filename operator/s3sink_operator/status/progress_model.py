"""The progress of a sink in its status, as typed models. See `status_model`."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from s3sink_operator.status.status_fields import StatusModel, Time

MAX_MOST_LAGGING: Final = 20
"""Topic-partitions that `progress.mostLagging` lists."""
MAX_TOPICS: Final = 1000
"""Topics that `progress.topics` lists."""
MAX_COMMITTED: Final = 5000
"""Topic-partitions of which `progress.topics` has the committed offset, in all topics."""


class PartitionProgress(StatusModel):
    """One topic-partition."""

    topic: str
    """Topic."""
    partition: int
    """Partition."""
    committed: int | None = None
    """First offset that is not in a visible object."""
    next: int | None = None
    """First offset that has not been read."""
    end: int | None = None
    """End offset of the log (exclusive), up to the last committed record."""
    lag: int | None = None
    """Number of records that are not in a visible object."""
    lag_seconds: int | None = None
    """Age of the first of these records in seconds; absent if unknown."""


class TopicProgress(StatusModel):
    """Sums of one topic."""

    topic: str
    """Topic."""
    partitions: int | None = None
    """Number of partitions that the sink reads."""
    lag: int | None = None
    """Number of records that are not in a visible object."""
    lag_seconds: int | None = None
    """Age of the oldest of these records in seconds; absent if unknown."""
    committed: Annotated[list[int] | None, Field(max_length=MAX_COMMITTED)] = None
    """First offset that is not in a visible object, by partition number; -1: not read."""


class AssignedPartitions(StatusModel):
    """Numbers of topic-partitions."""

    assigned: int | None = None
    """Number of topic-partitions that the sink reads."""
    active: int | None = None
    """Number of topic-partitions that had records in the last round."""


class Lag(StatusModel):
    """Lag of all topic-partitions at a time."""

    records: int | None = None
    """Number of records that are not in a visible object."""
    seconds: int | None = None
    """Age of the oldest of these records in seconds; absent if unknown."""
    time: Time = None
    """Time of the observation."""


class SinkProgress(StatusModel):
    """Progress that the driver reports."""

    phase: str | None = None
    """Phase of the sink: Starting, Recovering, Running, Stopping, Paused, Stopped, Deleting, Failed or Unknown."""
    partitions: AssignedPartitions | None = None
    """Topic-partitions."""
    records: int | None = None
    """Number of records written by this attempt, open objects included."""
    objects: int | None = None
    """Number of objects made visible by this attempt."""
    bytes: int | None = None
    """Bytes of these records, encoded and before compression."""
    last_publish_time: Time = None
    """Time when an object last became visible."""
    lag: Lag | None = None
    """Lag of the sink, while a driver reports it."""
    last_known_lag: Lag | None = None
    """Last observed lag, while no driver reports it."""
    topics: Annotated[list[TopicProgress] | None, Field(max_length=MAX_TOPICS)] = None
    """Sums by topic, largest lag first."""
    most_lagging: Annotated[list[PartitionProgress] | None, Field(max_length=MAX_MOST_LAGGING)] = None
    """Topic-partitions with the largest lag."""
    open_objects: int | None = None
    """Number of objects that are not visible yet."""
    epoch: int | None = None
    """Epoch of the driver's claim on the ledger."""
    round: int | None = None
    """Number of the last round in the ledger."""
    lost_offsets: int | None = None
    """Number of offsets skipped because Kafka no longer held them (onDataLoss: Continue)."""
    update_time: Time = None
    """Time when this section was written."""
