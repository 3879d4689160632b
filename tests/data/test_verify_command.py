"""The command `s3sink verify` with a real broker and a real S3 server: table, JSON and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Record, Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]


@pytest.fixture
def written(
    kafka: KafkaBroker, topics: Topics, s3: S3Server, topic: str, bucket: str, sink_here: SinkFactory
) -> tuple[SinkCommand, str, str]:
    """Two published partitions: plain records in one, committed and aborted transactions in the other."""
    topics.create(topic, partitions=2)
    topics.produce_values(topic, [_value(n) for n in range(100)])
    for first, commit in ((0, True), (20, False), (40, True), (60, False)):
        topics.transaction(
            topic, [Record(value=_value(n), partition=1) for n in range(first, first + 20)], commit=commit
        )
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=s3.endpoint,
        bucket=bucket,
        rotation={"flushSize": 30},
        partitioner={"type": "Field", "fields": ["kind"]},
    )
    sink = sink_here(manifest("verified", spec))
    sink.catch_up()
    return sink, topic, bucket


def _value(n: int) -> bytes:
    return json.dumps({"n": n, "kind": f"k{n % 3}"}).encode()


def test_verify_passes_and_reports_damage_with_its_exit_code(
    written: tuple[SinkCommand, str, str], s3: S3Server, topics: Topics
) -> None:
    sink, topic, bucket = written

    proof = json.loads(sink.must("verify", "--deep", "-o", "json"))
    assert (proof["passed"], proof["exitCode"]) == (True, 0)
    first, second = proof["partitions"]
    assert (first["start"], first["committed"], first["end"], first["records"], first["gaps"]) == (0, 100, 100, 100, 0)
    # 80 records and a marker after each transaction; the two aborted ones have only a marker
    assert (second["committed"], second["end"], second["records"], second["gaps"]) == (84, 84, 40, 44)
    assert [p["compared"]["records"] for p in proof["partitions"]] == [100, 40]

    table = sink.must("verify")
    assert "OK: every record up to the committed offsets is in exactly one object" in table
    assert "TOPIC" in table

    topics.commit("s3sink-default.verified", topic, {0: 101})
    output = sink.must("verify", exit_code=5)
    assert f"FAILED: 1 of 2 topic-partitions; first finding: {topic}-0 offset 100" in output
    topics.commit("s3sink-default.verified", topic, {0: 100})

    client = s3.client()
    keys = [item["Key"] for item in client.list_objects_v2(Bucket=bucket, Prefix=f"topics/{topic}/")["Contents"]]
    body = client.get_object(Bucket=bucket, Key=keys[0])["Body"].read()
    client.put_object(Bucket=bucket, Key=keys[0], Body=body[::-1])
    output = sink.must("verify", exit_code=6)
    assert "ObjectMismatch" in output
    assert keys[0] in output

    client.delete_object(Bucket=bucket, Key=keys[0])
    output = sink.must("verify", exit_code=5)
    assert "ObjectMissing" in output


def test_a_sink_that_never_ran_is_reported(
    kafka: KafkaBroker, topics: Topics, s3: S3Server, topic: str, bucket: str, sink_of: SinkFactory
) -> None:
    topics.create(topic)
    spec = local_spec(
        bootstrap=kafka.bootstrap, topics=[topic], endpoint=s3.endpoint, bucket=bucket, rotation={"flushSize": 30}
    )
    assert "there is no ledger" in sink_of(manifest("idle", spec)).must("verify", exit_code=7)
