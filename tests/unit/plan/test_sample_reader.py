"""What is read for a sample: its ranges, and its limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import TopicInfo
from sink_job.engine.types import Columns, ProcessorFactory, Range
from sink_job.plan.replay_log import ReplayClock, ReplayLog
from sink_job.plan.sample import Sample, SampledPartition, SampleLimits
from sink_job.plan.sample_reader import read_sample
from tests.unit.plan.samples import START, partition, sample


class _Kafka(ReplayLog):
    """A log whose records all exist."""

    def __init__(self, found: Sample) -> None:
        super().__init__(found, ReplayClock(1 << 60))
        self.found = found
        self.read: dict[TopicPartition, Range] = {}

    def offsets_for_times(self, partitions: Sequence[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        ends = self.end_offsets(partitions)
        for tp in partitions:
            stamps = self.found.partitions[tp].batch.column("timestamp").to_pylist()
            offsets = self.found.partitions[tp].offsets.tolist()
            ends[tp] = next((o for o, stamp in zip(offsets, stamps, strict=True) if stamp >= ms), ends[tp])
        return ends

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        self.read = dict(ranges)
        return super().run(ranges=ranges, idle=idle, inputs=inputs, columns=columns, factory=factory)

    def _batches(self, tp: TopicPartition, requested: Range, columns: Columns) -> Iterator[pa.RecordBatch]:
        for batch in super()._batches(tp, requested, columns):
            for row in range(len(batch)):
                yield batch.slice(row, 1)


def _read(partitions: Mapping[int, SampledPartition], limits: SampleLimits) -> tuple[_Kafka, Sample]:
    kafka = _Kafka(sample(partitions))
    return kafka, read_sample({"t": TopicInfo("id", len(partitions))}, limits, kafka, kafka, committed=True)


def test_a_time_span_reads_the_records_with_these_timestamps() -> None:
    limits = SampleLimits(until=START + 10_000, span=2_000, since=START + 1_000)
    kafka, found = _read({0: partition([0, 1_000, 2_000, 3_000])}, limits)
    assert kafka.read == {TopicPartition("t", 0): Range(1, 3)}
    assert found.records == 2
    assert (found.start, found.end) == (START + 1_000, START + 3_000)


def test_a_number_of_records_is_divided_among_the_partitions_and_reads_the_last_ones() -> None:
    limits = SampleLimits(until=START + 10_000, records=4)
    kafka, found = _read({0: partition([0, 1, 2]), 1: partition([5, 6, 7, 8])}, limits)
    assert kafka.read == {TopicPartition("t", 0): Range(1, 3), TopicPartition("t", 1): Range(2, 4)}
    assert (found.start, found.end) == (START + 1, START + 8)


def test_a_partition_without_records_in_the_span_is_named() -> None:
    limits = SampleLimits(until=START + 10_000, span=5_000)
    _, found = _read({0: partition([0]), 1: partition([6_000])}, limits)
    assert found.topics["t"].empty == [0]
    assert list(found.partitions) == [TopicPartition("t", 1)]


def test_an_empty_topic_gives_an_empty_sample() -> None:
    _, found = _read({0: partition([0])}, SampleLimits(until=START + 10_000, span=5_000))
    assert found.records == 0


def test_the_limit_of_bytes_ends_a_partition_early() -> None:
    stamps = [1_000 * each for each in range(50)]
    limits = SampleLimits(until=START + 60_000, span=60_000, max_bytes=1_000)
    _, found = _read({0: partition(stamps)}, limits)
    read = found.partitions[TopicPartition("t", 0)]
    assert read.is_cut
    assert 0 < len(read.batch) < 50
    assert read.batch.column("offset").to_pylist() == list(range(len(read.batch)))
