"""Avro of AWS Glue's Java serializer from a real broker, with moto as AWS Glue, to objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from devtools.bucket_listing import lines, objects
from devtools.glue import ACCESS_KEY, REGION, SECRET_KEY, glue
from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Record, Topics
from tests.support.glue_values import RUNS, schema_texts, written_values

pytestmark = [pytest.mark.data, pytest.mark.spark]


def test_values_of_glues_serializer_are_written_and_pass_verify_deep_without_the_registry(
    kafka: KafkaBroker,
    topics: Topics,
    s3: S3Server,
    topic: str,
    bucket: str,
    tmp_path: Path,
    sink_of: Callable[[Mapping[str, Any]], SinkCommand],
) -> None:
    secret = f"glue-keys={keys(tmp_path)}"
    with glue() as aws:
        ids = [aws.register("travel", "flights", text) for text in schema_texts()]
        flights = [each for run in RUNS for each in written_values(run, ids)]
        topics.create(topic)
        topics.produce(topic, (Record(value=each.value) for each in flights))
        registry = {"type": "Glue", "url": [aws.url], "region": REGION, "name": "travel"}
        spec = local_spec(
            bootstrap=kafka.bootstrap,
            topics=[topic],
            endpoint=s3.endpoint,
            bucket=bucket,
            format={"converter": "Avro", "registry": {**registry, "credentials": {"secret": "glue-keys"}}},
            rotation={"flushSize": 1000},
            rounds={"minBytes": 0, "maxDelay": "50ms"},
        )
        sink = sink_of(manifest("flights", {**spec, "schemaCompatibility": "Separate"}))
        aws.register("travel", topic, schema_texts()[0])
        assert "`carrier`" in sink.must("ddl", "--dialect", "hive", "--secret", secret)
        sink.catch_up("--secret", secret)
    found = [[json.loads(line) for line in lines(s3.client(), bucket, key)] for key in objects(s3.client(), bucket)]
    expected = [each.flight for each in flights]
    assert found == [expected[0::2], expected[1::2]]
    proof = json.loads(sink.must("verify", "--deep", "-o", "json"))
    assert (proof["passed"], proof["partitions"][0]["compared"]["records"]) == (True, len(flights))
    assert SECRET_KEY not in "".join(process.log for process in sink.processes)


def keys(folder: Path) -> Path:
    """The directory of the mounted Secret."""
    secret = folder / "glue-keys"
    secret.mkdir()
    for name, content in {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}.items():
        (secret / name).write_text(content)
    return secret
