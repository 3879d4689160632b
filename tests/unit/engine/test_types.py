"""Processors without state."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns
from sink_job.engine.types import stateless


def describe(tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
    return f"{tp} {task_input.decode()} {len(list(batches))}".encode()


def test_a_stateless_processor_passes_its_arguments_on_and_can_be_closed() -> None:
    processor = stateless(describe)()
    batch = pa.record_batch([columns.integers(np.array([1]))], ["offset"])
    assert processor(TopicPartition("t", 1), b"in", iter([batch])) == b"t-1 in 1"
    processor.close()


def test_its_factory_can_be_sent_to_another_process() -> None:
    factory = pickle.loads(pickle.dumps(stateless(describe)))
    assert factory()(TopicPartition("t", 1), b"in", iter(())) == b"t-1 in 0"
