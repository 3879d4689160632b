"""Reads a sample from Kafka with the engine of a run. It uses no consumer group, and commits nothing."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.engine.kafka_admin import KafkaAdmin, TopicInfo
from sink_job.engine.types import Columns, Engine, Range
from sink_job.plan.sample import Sample, SampledPartition, SampledTopic, SampleLimits, arrivals, chosen

COLUMNS = Columns(timestamp=True, key=True, headers=True, timestamp_type=True)
_CUT = b"cut"


def read_sample(
    topics: Mapping[str, TopicInfo], limits: SampleLimits, admin: KafkaAdmin, engine: Engine, *, committed: bool
) -> Sample:
    """Reads the sample. `committed`: only records of committed transactions. Raises the errors of `admin` and
    `engine`."""
    most = limits.partitions_of(len(topics))
    numbers = {topic: chosen(info.partitions, most) for topic, info in topics.items()}
    every = [TopicPartition(topic, number) for topic, found in numbers.items() for number in found]
    ranges = {tp: found for tp, found in _ranges(every, numbers, limits, admin, committed).items() if found}
    budget = limits.max_bytes // max(1, len(ranges))
    answers = (
        engine.run(ranges=ranges, idle=(), inputs={}, columns=COLUMNS, factory=partial(SampleTask, budget))
        if ranges
        else {}
    )
    partitions = {tp: _partition(answer, limits) for tp, answer in answers.items()}
    partitions = {tp: each for tp, each in partitions.items() if len(each.batch)}
    read = {
        topic: SampledTopic(
            topics[topic].partitions, found, [n for n in found if TopicPartition(topic, n) not in partitions]
        )
        for topic, found in numbers.items()
    }
    return Sample(read, partitions, *_bounds(partitions, limits))


def _bounds(partitions: Mapping[TopicPartition, SampledPartition], limits: SampleLimits) -> tuple[int, int]:
    """The time that the sample covers, in ms. A number of records has the times of these."""
    if limits.records is None or not partitions:
        return limits.start, limits.end
    first = min(int(each.arrivals[0]) for each in partitions.values())
    return first, max(int(each.arrivals[-1]) for each in partitions.values())


def _ranges(
    every: Sequence[TopicPartition],
    numbers: Mapping[str, Sequence[int]],
    limits: SampleLimits,
    admin: KafkaAdmin,
    committed: bool,
) -> dict[TopicPartition, Range | None]:
    """The offsets to read of each partition; None for none."""
    begin, end = admin.beginning_offsets(every), admin.end_offsets(every, committed=committed)
    if limits.records is None:
        first = admin.offsets_for_times(every, limits.start)
        after = end if limits.end >= limits.until else admin.offsets_for_times(every, limits.end)
        found = {tp: (max(begin[tp], first[tp]), min(end[tp], after[tp])) for tp in every}
    else:
        share = {tp: -(-limits.records // len(numbers[tp.topic])) for tp in every}
        if limits.since is None:
            found = {tp: (max(begin[tp], end[tp] - share[tp]), end[tp]) for tp in every}
        else:
            first = admin.offsets_for_times(every, limits.since)
            found = {tp: (first[tp], min(end[tp], first[tp] + share[tp])) for tp in every}
    return {tp: Range(low, high) if low < high else None for tp, (low, high) in found.items()}


class SampleTask:
    """Returns the records of a range as an Arrow stream, at most `budget` bytes of each topic-partition, and after it
    whether that ended it."""

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def __call__(self, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        out, written, is_cut = io.BytesIO(), 0, False
        writer = None
        for batch in batches:
            if writer is None:
                writer = pa.ipc.new_stream(out, batch.schema)
            elif written + batch.nbytes > self._budget:
                is_cut = True
                break
            writer.write_batch(batch)
            written += batch.nbytes
        if writer is not None:
            writer.close()
        return out.getvalue() + (_CUT if is_cut else b"")

    def close(self) -> None:
        """There is nothing to close."""


def _partition(answer: bytes, limits: SampleLimits) -> SampledPartition:
    is_cut = answer.endswith(_CUT)
    if not answer:
        return SampledPartition(pa.RecordBatch.from_pylist([]), arrow_columns.numbers(pa.array([], pa.int64())))
    table = pa.ipc.open_stream(pa.py_buffer(answer.removesuffix(_CUT))).read_all().combine_chunks()
    batch = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=table.schema)
    stamps = arrow_columns.numbers(batch.column("timestamp"))
    start = limits.start if limits.records is None or not len(stamps) else int(max(stamps.min(), 0))
    return SampledPartition(batch, arrivals(stamps, start, limits.end), is_cut)
