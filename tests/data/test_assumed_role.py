"""A sink that assumes a role whose sessions end while it runs: driver, workers and commands renew them, for the buckets
of objects and ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from devtools.bucket_listing import lines, objects
from devtools.kafka import KafkaBroker
from devtools.s3 import SECRET_KEY, Moto, S3Server, s3_server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Record, Topics
from tests.support.short_sessions import ShortSessions, short_sessions

pytestmark = [pytest.mark.data, pytest.mark.spark]

ROLE = "arn:aws:iam::123456789012:role/archive"
SESSION_S = 4.0


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    with s3_server(Moto) as server:
        server.client().create_bucket(Bucket="archive")
        server.client().create_bucket(Bucket="ledgers")
        yield server


@pytest.fixture
def sessions(moto: S3Server) -> Iterator[ShortSessions]:
    with short_sessions(moto, seconds=SESSION_S) as front:
        yield front


def test_sessions_that_end_while_a_sink_runs_are_renewed_in_all_its_processes(
    kafka: KafkaBroker,
    topics: Topics,
    moto: S3Server,
    sessions: ShortSessions,
    topic: str,
    sink_of: Callable[[Mapping[str, Any]], SinkCommand],
) -> None:
    topics.create(topic)
    topics.produce(topic, (Record(value=b'{"n":1}') for _ in range(3)))
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=sessions.endpoint,
        bucket="archive",
        s3={
            "assumeRole": {"arn": ROLE, "externalId": "partner-7", "sessionName": "flights"},
            "ledger": {"bucket": "ledgers", "prefix": "of"},
        },
        rotation={"flushSize": 3},
        rounds={"minBytes": 0, "maxDelay": "50ms"},
    )
    sink = sink_of(manifest("flights", spec))
    sink.env["AWS_ENDPOINT_URL_STS"] = sessions.endpoint
    process = sink.start("run")
    for count in (1, 2):
        sink.wait_for(lambda: len(objects(moto.client(), "archive")) == count, f"{count} objects", process)  # noqa: B023
        sink.wait_for(sessions.all_have_ended, "the end of the sessions", process)
        topics.produce(topic, (Record(value=b'{"n":1}') for _ in range(3)))
    sink.wait_for(lambda: len(objects(moto.client(), "archive")) == 3, "3 objects", process)
    process.terminate()
    proof = json.loads(sink.must("verify", "--deep", "-o", "json"))
    assert (proof["passed"], proof["partitions"][0]["compared"]["records"]) == (True, 9)
    assert topic in sink.must("status", "-o", "json")
    assert [len(lines(moto.client(), "archive", key)) for key in objects(moto.client(), "archive")] == [3] * 3
    assert sessions.rejected == 0
    assert len(sessions.used) > 4, "driver and workers have sessions of their own"
    asked = sessions.requests[0]
    assert (asked["RoleArn"], asked["ExternalId"], asked["RoleSessionName"]) == (ROLE, "partner-7", "flights")
    assert asked["DurationSeconds"] == "3600"
    allowed = {each for statement in json.loads(asked["Policy"])["Statement"] for each in statement["Resource"]}
    assert {"arn:aws:s3:::archive/topics/*", "arn:aws:s3:::ledgers/of/archive/topics/_s3sink/*"} <= allowed
    ledger = moto.client().list_objects_v2(Bucket="ledgers", Prefix="of/archive/topics/_s3sink/default.flights/ledger/")
    assert ledger["KeyCount"] > 0
    log = "".join(each.log for each in sink.processes)
    assert SECRET_KEY not in log
    assert not any(key in log for key in sessions.used)
