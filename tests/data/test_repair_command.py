"""The command `s3sink repair` with a real broker and a real S3 server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]


def test_damaged_objects_are_restored_from_kafka_and_verify_passes(
    kafka: KafkaBroker, topics: Topics, s3: S3Server, topic: str, bucket: str, sink_here: SinkFactory
) -> None:
    topics.create(topic, partitions=2)
    topics.produce_values(topic, [json.dumps({"n": n}).encode() for n in range(100)])
    spec = local_spec(
        bootstrap=kafka.bootstrap, topics=[topic], endpoint=s3.endpoint, bucket=bucket, rotation={"flushSize": 10}
    )
    sink = sink_here(manifest("repaired", spec))
    sink.catch_up()
    client = s3.client()
    keys = [item["Key"] for item in client.list_objects_v2(Bucket=bucket, Prefix=f"topics/{topic}/")["Contents"]]
    right = {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}
    client.delete_object(Bucket=bucket, Key=keys[0])
    client.put_object(Bucket=bucket, Key=keys[1], Body=right[keys[1]][:-5])
    sink.must("verify", exit_code=5)

    planned = json.loads(sink.must("repair", "--dry-run", "-o", "json"))
    assert [(o["key"], o["outcome"]) for o in planned["objects"]] == [(key, "Restorable") for key in keys[:2]]
    text = sink.must("repair")
    assert "2 objects restored" in text
    assert {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys} == right
    assert "OK: every record" in sink.must("verify", "--deep")
    assert "no object is missing or damaged" in sink.must("repair")
    assert "deleted 1 copies of damaged bytes" in sink.must("repair", "--discard-damaged")
