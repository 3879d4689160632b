"""Samples of made-up records, and sinks over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.plan.sample import Sample, SampledPartition, SampledTopic, arrivals

START = 1_760_000_400_000
"""A full hour."""
MINUTE = 60_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def partition(stamps: Sequence[int], values: Sequence[bytes | None] | None = None, first: int = 0) -> SampledPartition:
    """Records with these timestamps in ms after START, and the offsets from `first` on."""
    count = len(stamps)
    given = values if values is not None else [b'{"kind":"a"}'] * count
    batch = pa.record_batch(
        {
            "offset": pa.array(range(first, first + count), pa.int64()),
            "value": pa.array(given, pa.binary()),
            "timestamp": pa.array([START + each for each in stamps], pa.int64()),
            "key": pa.nulls(count, pa.binary()),
            "headers": pa.nulls(count, HEADERS),
            "timestamp_type": pa.array([0] * count, pa.int8()),
        }
    )
    made = np.array([START + each for each in stamps], np.int64)
    return SampledPartition(batch, arrivals(made, START, START + 100 * 86_400_000))


def sample(partitions: Mapping[int, SampledPartition], *, minutes: int = 10, of: int | None = None) -> Sample:
    """The topic `t` with these partitions `of` all."""
    return Sample(
        {"t": SampledTopic(of or len(partitions), sorted(partitions))},
        {TopicPartition("t", number): each for number, each in partitions.items()},
        START,
        START + minutes * MINUTE,
    )


def sink(**sections: Any) -> Sink:
    """A sink of the topic `t` with JSON lines."""
    spec = {
        "kafka": {"bootstrapServers": "127.0.0.1:9", "topics": ["t"]},
        "format": {"converter": "Json", "output": "Json"},
        "rotation": {"flushSize": 100},
        "s3": {"bucket": "planned", "region": "eu-central-1"},
    }
    given = spec | sections
    given.setdefault("partitioner", {"type": "Default", "timezone": "UTC"})
    document = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": "planned"}}
    return load_sink(json.dumps(document | {"spec": given}))
