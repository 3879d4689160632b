"""Three scenarios of exactly-once delivery with the real command: 1 MB records, 25 MB parts, 90 records per object.

90 records of a topic-partition make an object of four parts. The process, its JVM and its workers are killed at the
most critical points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from devtools import bucket_listing
from devtools.faults.s3_proxy import FaultProxy, Kill
from devtools.faults.s3_requests import Predicate, kind
from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from tests.conftest import SinkFactory

pytestmark = [pytest.mark.data, pytest.mark.spark]

RECORDS = 90
RECORD_BYTES = 1 << 20
PART_BYTES = 25 << 20
SMALLER = 20
"""Records of a round that is smaller than an object: the fourth round ends after the third part."""


def value(offset: int) -> bytes:
    """The record at `offset`: JSON of the required length."""
    head = b'{"offset":%d,"pad":"' % offset
    return head + b"x" * (RECORD_BYTES - len(head) - 2) + b'"}'


@dataclass
class Scenario:
    """A topic whose records up to `start` are committed, and the sink that continues there."""

    start: int
    topic: str
    topics: Topics
    server: S3Server
    bucket: str
    proxy: FaultProxy
    sink: SinkCommand
    group: str

    @property
    def key(self) -> str:
        """The object of the next ninety records."""
        return f"topics/{self.topic}/partition=0/{self.topic}+0+{self.start:010d}.json"

    @property
    def end(self) -> int:
        return self.start + RECORDS

    @property
    def uploaded(self) -> Counter[int | None]:
        """The number of uploads of each part of the object."""
        return Counter(r.part for r in self.proxy.requests if r.kind == "UploadPart" and r.key == self.key)

    @property
    def committed(self) -> int:
        return self.topics.committed(self.group, self.topic)[0]

    @property
    def visible(self) -> list[str]:
        return list(bucket_listing.objects(self.server.client(), self.bucket))

    def request(self, name: str, part: int | None = None) -> Predicate:
        return kind(name, key=self.key, part=part)

    def killed_at(self, matches: Predicate, *, after: bool = False) -> None:
        """Runs the command and kills it with all its processes at the matching request."""
        process = self.sink.start("run")
        rule = self.proxy.when(matches, Kill(process), point="after" if after else "before")
        SinkCommand.wait_for(lambda: bool(rule.fired), "the request to be killed at", process, seconds=300)
        process.wait(10)
        self.proxy.resume()

    def expect_exact(self) -> None:
        """One object of four parts with exactly the records; its offsets are committed."""
        client = self.server.client()
        assert self.visible == [self.key]
        assert bucket_listing.lines(client, self.bucket, self.key) == [value(n) for n in range(self.start, self.end)]
        assert client.head_object(Bucket=self.bucket, Key=self.key)["ETag"].strip('"').endswith("-4")
        assert self.committed == self.end
        assert self.orphans() == []

    def orphans(self) -> list[str]:
        """Orphaned uploads and staging objects."""
        client = self.server.client()
        kept = bucket_listing.objects(client, self.bucket, ledger=True)
        return [*bucket_listing.uploads(client, self.bucket).values(), *(key for key in kept if "/staging/" in key)]


@pytest.fixture
def scenario(
    request: pytest.FixtureRequest,
    kafka: KafkaBroker,
    topics: Topics,
    topic: str,
    s3: S3Server,
    bucket: str,
    s3_proxy: FaultProxy,
    sink_here: SinkFactory,
) -> Iterator[Scenario]:
    """`scenarios` sets the start offset and the limits of its rounds."""
    start: int
    rounds: dict[str, Any]
    start, rounds = request.param
    topics.create(topic)
    topics.produce_values(topic, [b"{}"] * start)
    topics.produce_values(topic, map(value, range(start, start + RECORDS)))
    group = f"{topic}-group"
    topics.commit(group, topic, {0: start})
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=s3_proxy.endpoint,
        bucket=bucket,
        kafka={"groupId": group},
        rotation={"flushSize": RECORDS},
        rounds=rounds,
        s3={"partSize": PART_BYTES},
    )
    yield Scenario(start, topic, topics, s3, bucket, s3_proxy, sink_here(manifest("scenario", spec)), group)
    topics.delete(topic)


def scenarios(start: int, **rounds: int) -> pytest.MarkDecorator:
    """The scenario that starts at offset `start`."""
    return pytest.mark.parametrize("scenario", [(start, rounds)], indirect=True, ids=[f"from {start}"])


@scenarios(180)
def test_success_makes_one_object_of_four_parts_and_commits_offset_270(scenario: Scenario) -> None:
    scenario.sink.catch_up(publish_open=False)
    scenario.expect_exact()
    assert scenario.committed == 270
    assert scenario.uploaded == {1: 1, 2: 1, 3: 1, 4: 1}


@scenarios(270, maxRecords=SMALLER)
def test_after_a_kill_in_part_4_a_sink_of_small_rounds_repeats_only_part_4(scenario: Scenario) -> None:
    scenario.killed_at(scenario.request("UploadPart", part=4))
    assert scenario.visible == []
    assert scenario.committed == 270
    scenario.proxy.forget()
    scenario.sink.catch_up(publish_open=False)
    scenario.expect_exact()
    assert scenario.committed == 360
    assert scenario.uploaded == {4: 1}


@scenarios(270)
def test_after_a_kill_in_part_4_a_sink_of_one_round_writes_the_same_bytes(
    scenario: Scenario,
) -> None:
    scenario.killed_at(scenario.request("UploadPart", part=4))
    assert scenario.visible == []
    assert scenario.committed == 270
    scenario.proxy.forget()
    scenario.sink.catch_up(publish_open=False)
    scenario.expect_exact()
    assert scenario.committed == 360
    assert scenario.uploaded == {1: 1, 2: 1, 3: 1, 4: 1}


@scenarios(360)
def test_nothing_is_published_twice_if_the_commit_is_lost_after_the_completion(scenario: Scenario) -> None:
    scenario.killed_at(scenario.request("CompleteMultipartUpload"), after=True)
    assert scenario.visible == [scenario.key]
    assert scenario.committed == 360
    before = _written(scenario)
    scenario.proxy.forget()
    scenario.sink.catch_up(publish_open=False)
    scenario.expect_exact()
    assert scenario.committed == 450
    assert _written(scenario) == before
    assert scenario.uploaded == {}


def _written(scenario: Scenario) -> tuple[Any, str]:
    head = scenario.server.client().head_object(Bucket=scenario.bucket, Key=scenario.key)
    return head["LastModified"], head["ETag"]
