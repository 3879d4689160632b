"""A first start after a connector that is ended while it compares objects, or before its claim: it has changed nothing,
and the next start is right (P5)."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from devtools import bucket_listing
from devtools.faults.proxy import Hold
from devtools.faults.s3_proxy import FaultProxy, Rule
from devtools.faults.s3_requests import kind
from devtools.kafka import KafkaBroker
from devtools.processes import Process
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]
RECORDS = 40
ALL = ("--until-caught-up", "--publish-open")


@dataclass
class Interrupted:
    """A connector's topic, group and objects: those from offset 10 to 29 are not committed."""

    sink: SinkCommand
    s3: S3Server
    bucket: str
    topic: str
    topics: Topics

    @property
    def group(self) -> str:
        return f"connect-{self.topic}"

    def key(self, first: int) -> str:
        return f"topics/{self.topic}/partition=0/{self.topic}+0+{first:010d}.json"

    def write(self) -> None:
        self.topics.create(self.topic)
        self.topics.produce_values(self.topic, (b'{"n":%d}' % n for n in range(RECORDS)))
        for first in (0, 10, 20):
            content = b"".join(b'{"n":%d}\n' % n for n in range(first, first + 10))
            self.s3.client().put_object(Bucket=self.bucket, Key=self.key(first), Body=content)
        self.topics.commit(self.group, self.topic, {0: 10})

    def expect_unchanged(self) -> None:
        """There are the connector's objects alone, no claim, and the group has its offset: a mark of the owner, and an
        object of a probe, may be left."""
        client = self.s3.client()
        listed = client.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        keys = [each["Key"] for each in listed]
        assert [key for key in keys if "/_s3sink/" not in key] == [self.key(n) for n in (0, 10, 20)]
        assert not [key for key in keys if "/ledger/" in key]
        assert self.topics.committed(self.group, self.topic) == {0: 10}

    def expect_each_record_once(self) -> None:
        client = self.s3.client()
        keys = bucket_listing.objects(client, self.bucket)
        values = [json.loads(line)["n"] for key in keys for line in bucket_listing.lines(client, self.bucket, key)]
        assert sorted(values) == [*range(RECORDS)]
        assert "OK: every record" in self.sink.must("verify", "--deep")
        assert bucket_listing.uploads(client, self.bucket) == {}


@pytest.fixture
def interrupted(
    kafka: KafkaBroker,
    topics: Topics,
    topic: str,
    s3: S3Server,
    bucket: str,
    s3_proxy: FaultProxy,
    sink_of: SinkFactory,
) -> Interrupted:
    given: dict[str, Any] = {"kafka": {"groupId": f"connect-{topic}"}, "rotation": {"flushSize": 10}}
    spec = local_spec(bootstrap=kafka.bootstrap, topics=[topic], endpoint=s3_proxy.endpoint, bucket=bucket, **given)
    found = Interrupted(sink_of(manifest("flights", spec)), s3, bucket, topic, topics)
    found.write()
    return found


def end(process: Process, number: signal.Signals, rule: Rule) -> None:
    """Ends the process at the request of the rule, which never reaches the store."""
    rule.wait()
    if number is signal.SIGKILL:
        process.kill()
    else:
        assert process.terminate(seconds=60) == 0
    rule.remove()


@pytest.mark.parametrize(
    ("request_kind", "number"),
    [
        pytest.param("GetObject", signal.SIGTERM, id="a signal during the comparison"),
        pytest.param("PutObject", signal.SIGKILL, id="a kill at the claim"),
    ],
)
def test_a_start_that_is_ended_before_its_claim_has_changed_nothing(
    interrupted: Interrupted, s3_proxy: FaultProxy, number: signal.Signals, request_kind: str
) -> None:
    held = interrupted.key(20) if request_kind == "GetObject" else "/ledger/"
    rule: Rule = s3_proxy.when(kind(request_kind, key=held), Hold())
    process = interrupted.sink.start("run", "--from-connector", *ALL)
    end(process, number, rule)
    interrupted.expect_unchanged()
    interrupted.sink.must("run", "--from-connector", *ALL)
    interrupted.expect_each_record_once()
