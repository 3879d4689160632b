"""`s3sink plan` over a real broker: the objects of a plan are those of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Record, Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]


def test_the_objects_of_a_plan_are_those_of_the_run(
    kafka: KafkaBroker, topics: Topics, s3: S3Server, topic: str, bucket: str, sink_here: SinkFactory
) -> None:
    topics.create(topic, partitions=3)
    start = int(time.time() * 1000) - 300_000
    topics.produce(
        topic,
        [
            Record(value=b'{"n":%d,"kind":"k%d"}' % (n, n % 2), timestamp=start + 1_000 * n, partition=number)
            for number in range(3)
            for n in range(250)
        ],
    )
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=s3.endpoint,
        bucket=bucket,
        partitioner={"type": "Field", "fields": ["kind"]},
        rotation={"flushSize": 100},
    )
    sink = sink_here(manifest("planned", spec))
    text = sink.must("plan", "--sample", "10m", "-o", "json")
    (planned,) = json.loads(text[text.index("{\n") :])["plans"]
    found = planned["topics"][0]
    assert (found["records"], found["closed"], found["open"], found["peak_open"]) == (750, 12, 6, 6)
    assert found["reasons"] == {"flushSize": 12}
    client = s3.client()
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    sink.catch_up()
    stored = client.list_objects_v2(Bucket=bucket, Prefix=f"topics/{topic}/")["Contents"]
    sizes = sorted(each["Size"] for each in stored)
    assert len(sizes) == 18
    assert found["size"]["p95"] == sizes[-1]
