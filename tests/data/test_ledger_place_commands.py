"""The commands of a sink with its ledger in another bucket, with a real broker and a real S3 server."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server, credentials_secret
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]


@pytest.fixture
def ledgers(s3: S3Server) -> str:
    """Another bucket."""
    name = f"l-{uuid.uuid4().hex[:12]}"
    s3.client().create_bucket(Bucket=name)
    return name


def keys_of(s3: S3Server, bucket: str, prefix: str = "") -> list[str]:
    return [item["Key"] for item in s3.client().list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())]


def test_each_command_finds_the_ledger_in_its_bucket(
    kafka: KafkaBroker,
    topics: Topics,
    s3: S3Server,
    topic: str,
    bucket: str,
    ledgers: str,
    sink_here: SinkFactory,
    tmp_path: Path,
) -> None:
    rejected = f"{topic}-rejected"
    topics.create(topic, partitions=2)
    topics.create(rejected)
    values = [json.dumps({"n": n}).encode() if n % 10 else b"{" for n in range(100)]
    topics.produce_values(topic, values)
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=s3.endpoint,
        bucket=bucket,
        rotation={"flushSize": 10},
        errors={"tolerance": "All", "deadLetters": {"topic": rejected}},
        s3={"ledger": {"bucket": ledgers, "prefix": "sinks", "credentials": {"secret": "ledger-keys"}}},
    )
    sink = sink_here(manifest("placed", spec))
    secret = ("--secret", f"ledger-keys={credentials_secret(tmp_path / 'keys')}")
    assert "A sink can use this store." in sink.must("check-store", *secret)
    sink.must("run", "--until-caught-up", *secret)
    assert all(key.startswith(f"sinks/{bucket}/topics/_s3sink/default.placed/") for key in keys_of(s3, ledgers))
    assert keys_of(s3, bucket, "topics/_s3sink/") == [
        "topics/_s3sink/default.placed/owner.json",
        f"topics/_s3sink/topics/{topic}/json.json",
    ]
    assert topic in sink.must("status", *secret)
    sink.must("run", "--until-caught-up", "--publish-open", *secret)
    keys = keys_of(s3, bucket, f"topics/{topic}/")
    right = s3.client().get_object(Bucket=bucket, Key=keys[0])["Body"].read()
    s3.client().put_object(Bucket=bucket, Key=keys[0], Body=right[:-5])
    sink.must("verify", *secret, exit_code=6)
    assert f"its damaged bytes are at s3://{ledgers}/sinks/" in sink.must("repair", *secret)
    assert s3.client().get_object(Bucket=bucket, Key=keys[0])["Body"].read() == right
    assert "OK: every record" in sink.must("verify", "--deep", *secret)
    assert "deleted 1 copies of damaged bytes" in sink.must("repair", "--discard-damaged", *secret)
    sink.must("discard-open", *secret)
    sink.must("reset-offsets", "--to", "Earliest", "--on-existing", "NewPrefix", *secret)
    sink.must("run", "--until-caught-up", "--publish-open", *secret)
    assert len(keys_of(s3, bucket, f"topics/generation=2/{topic}/")) == len(keys)
    assert "OK: every record" in sink.must("verify", "--deep", *secret)
    assert "/staging/" not in "".join(keys_of(s3, ledgers))
    assert "/dead-letters/" not in "".join(keys_of(s3, ledgers))
