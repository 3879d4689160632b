"""Kafka as a sample: the engine and the admin client of a driver that runs over it, with a clock of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import GroupMember, TopicInfo
from sink_job.engine.types import Columns, ProcessorFactory, Range
from sink_job.plan.sample import Sample

BATCH_RECORDS = 5_000
"""About what a reader polls at once."""


class ReplayClock:
    """The time of a replay, in ms since the epoch."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class ReplayLog:
    """See `sink_job.engine.types.Engine` and `sink_job.engine.kafka_admin.KafkaAdmin`. Records exist from their arrival
    on. Partitions that were not read do not exist."""

    def __init__(self, sample: Sample, clock: ReplayClock) -> None:
        self._sample = sample
        self._clock = clock
        self._group: dict[TopicPartition, tuple[int, str]] = {}

    # -- the engine --------------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        """Runs the tasks of a round one after another."""
        processor = factory()
        results = {tp: processor(tp, inputs.get(tp, b""), self._batches(tp, r, columns)) for tp, r in ranges.items()}
        results |= {tp: processor(tp, inputs.get(tp, b""), iter(())) for tp in idle}
        processor.close()
        return results

    def _batches(self, tp: TopicPartition, requested: Range, columns: Columns) -> Iterator[pa.RecordBatch]:
        found = self._sample.partitions[tp].slice(requested.start, requested.end)
        names = ["offset", "value", *(name for name in found.schema.names if getattr(columns, name, False))]
        for first in range(0, len(found), BATCH_RECORDS):
            yield found.slice(first, BATCH_RECORDS).select(names)

    def cancel(self) -> None:
        """Nothing runs beside the driver."""

    # -- the admin client --------------------------------------------------------------------------------------------

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        return {topic: TopicInfo("sample", each.partitions) for topic, each in self._sample.topics.items()}

    def cluster_id(self) -> str:
        return "sample"

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        found = self._sample.partitions
        return {tp: found[tp].end_at(self._clock.now) for tp in partitions if tp in found}

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        found = self._sample.partitions
        return {tp: int(found[tp].offsets[0]) for tp in partitions if tp in found}

    def offsets_for_times(self, partitions: Sequence[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        return self.end_offsets(partitions)

    def log_sizes(self, topics: Sequence[str]) -> dict[TopicPartition, int] | None:
        """Bytes that the records so far have, at the average size of all of them."""
        sizes: dict[TopicPartition, int] = {}
        for tp, each in self._sample.partitions.items():
            average = each.batch.column("value").nbytes / len(each.batch)
            sizes[tp] = max(1, int(average * (each.end_at(self._clock.now) - int(each.offsets[0]))))
        return sizes

    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
    ) -> dict[TopicPartition, int]:
        return {tp: self._group[tp][0] for tp in partitions if tp in self._group}

    def group_metadata(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        return {tp: self._group[tp][1] for tp in partitions if tp in self._group}

    def group_members(self, group: str) -> int:
        return 0

    def active_groups(self, topics: Sequence[str]) -> Sequence[GroupMember]:
        return ()

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        self._group.update({tp: (offset, metadata) for tp, offset in offsets.items()})
