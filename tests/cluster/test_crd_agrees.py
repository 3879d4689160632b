"""What the job's parser takes, the API server takes: found by trying values on both sides of every rule together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster
from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from tests.support.sinks import place_for_sinks, tried
from tests.unit.api.manifests import ABSENT, document

pytestmark = pytest.mark.cluster

VALUES: dict[str, list[object]] = {
    "metadata.name": ["a", "a" * 40],
    "spec.kafka.topics": [ABSENT, ["a"], ["a", "b"], ["."], ["a.b_c-D"]],
    "spec.transforms": [
        ABSENT,
        [],
        [{"type": "Filter", "when": {"header": "h"}}],
        [{"type": "Filter", "when": {"field": "a", "values": ["x"], "not": True}}],
        [{"type": "Cast", "casts": {"a": "Int8"}}, {"type": "Insert", "field": "t", "source": "Text", "text": "a"}],
        [{"type": "Rename", "renames": {"a": "b"}}, {"type": "Flatten"}],
    ],
    "spec.kafka.topicsPattern": [ABSENT, "a.*"],
    "spec.kafka.groupId": ["a", "a b"],
    "spec.kafka.bootstrapServers": ["a:1", "a:1 ,b:2", "[::1]:9092", "PLAINTEXT://a:1", "a.b-c_d:65535"],
    "spec.kafka.properties": [{}, {"a.b": "c"}, {"group.id": "a"}, {"ssl.key.password": "a"}],
    "spec.kafka.propertySecrets": [[], [{"name": "ssl.key.password", "secret": "a", "key": "b"}]],
    "spec.kafka.login": [
        ABSENT,
        {"type": "Plain"},
        {"type": "Plain", "credentials": {"secret": "a"}, "username": "b", "insecure": True},
        {"type": "MskIam", "profile": "a"},
        {"type": "MskIam", "assumeRole": {"arn": "arn:aws:iam::123456789012:role/a", "region": "b"}},
        {"type": "OAuth", "credentials": {"secret": "a"}, "tokenUrl": "http://127.0.0.1/b"},
        {"type": "Certificate", "credentials": {"secret": "a"}, "caSecret": {"secret": "a", "key": "b"}},
    ],
    "spec.format.converter": ["Json", "Text", "Bytes", "Cbor", "MessagePack"],
    "spec.format.output": ["Json", "Bytes"],
    "spec.format.compression": [
        ABSENT,
        *({"codec": codec} for codec in ("None", "Gzip", "Zstd", "Snappy", "Deflate")),
        {"codec": "Gzip", "level": 3},
        {"codec": "Gzip", "level": 4},
        {"codec": "Zstd", "level": 0},
        {"codec": "Zstd", "level": 19},
        {"codec": "None", "level": 1},
    ],
    "spec.format.bytes": [ABSENT, {"separator": ""}],
    "spec.format.parquet": [ABSENT, {"rowGroup": "1Mi"}],
    "spec.partitioner.type": ["Default", "Field", "Time", "Hourly", "Daily", "FieldAndTime"],
    "spec.partitioner.fields": [ABSENT, ["a"], ["a.b", "c"], ["a", "a"], ["a."]],
    "spec.partitioner.duration": [ABSENT, "1h", "60m", "0d1h", "24h", "1d", "1440m", "00001d", "90s"],
    "spec.partitioner.pathFormat": [
        ABSENT,
        "YYYY",
        "'year'=YYYY/'month'=MM/'day'=dd",
        "'year'=YYYY-'month'=MM-'day'=dd",
    ],
    "spec.partitioner.timezone": [ABSENT, "UTC", "+02:00"],
    "spec.partitioner.timestampExtractor": ["Wallclock", "Record", "RecordField"],
    "spec.rotation": [{}, {"flushSize": 1}, {"maxOpenTime": "1ms"}],
    "spec.rotation.interval": [ABSENT, "1ms", "1d1h1m1s1ms", "36500d", "0000000000000h1ms", "100000000000000h"],
    "spec.rotation.scheduleInterval": [ABSENT, "1h", "1d", "0d24h", "86400000ms", "000000000000001m", "1d1ms"],
    "spec.rotation.maxBytes": [ABSENT, 1, "1k", "1.5Gi", "48.828125Gi", "52428800001", "19.53125Ti", "1048576Ti"],
    "spec.s3.partSize": [ABSENT, 5242880, "5242880", "5Mi", "5.5Mi", "0.005Gi", "2Gi", "2147483648", "6M"],
    "spec.s3.topicsDir": ["", "a", "a/b", "a-", "-", "a/_s3sink", "..a"],
    "spec.s3.directoryDelimiter": ["/", "-", "--", "é", " "],
    "spec.s3.fileDelimiter": ["+", "-", "_", "é", "1"],
    "spec.s3.endpoint": [
        ABSENT,
        "https://a",
        "http://a",
        "http://localhost",
        "http://LOCALHOST:1/",
        "http://a.localhost:1",
        "http://127.1.2.3",
    ],
    "spec.s3.insecure": [True, False],
    "spec.errors.tolerance": ["None", "All"],
    "spec.rounds.minBytes": [0, "0", "1Gi", "512Mi", 536870912],
    "spec.rounds.maxBytes": [1, "512Mi", "536870912", "0.5Gi", "2Gi"],
    "spec.rounds.maxDelay": ["0s", "24h", "1d", "25h"],
    "spec.executor.memory.min": ["512Mi", 536870912, "1.5Gi", "8Gi"],
    "spec.executor.memory.max": ["512Mi", "1536Mi", "9G"],
    "spec.executor.mode": ["Local", "Cluster"],
    "spec.executor.instances": [ABSENT, 1, 3],
    "spec.executor.scaling": [
        ABSENT,
        {},
        {"mode": "Auto"},
        {"mode": "Auto", "minInstances": 9},
        {"minInstances": 2, "maxInstances": 2},
    ],
    "spec.sparkConf": [{}, {"spark.a": "b"}, {"spark.master": "local"}, {"a": "b"}],
    "spec.sinkId": ["a", "a..b", "topics", "topics.a"],
    "spec.offsets.reset": [
        ABSENT,
        {"nonce": "a", "to": "Latest"},
        {"nonce": "a", "to": "Timestamp", "timestamp": 0},
        {"nonce": "a", "to": "Timestamp", "timestamp": "2025-11-03T10:00:00Z"},
    ],
}


@pytest.fixture(scope="module")
def sinks(control_plane: Cluster) -> Iterator[Kube]:
    with place_for_sinks(control_plane) as kube:
        yield kube


def changed(changes: dict[str, object]) -> Json:
    """A right manifest with `changes`, some of which may take out what is not there."""
    manifest = document({path: value for path, value in changes.items() if value is not ABSENT})
    for path in (path for path, value in changes.items() if value is ABSENT):
        *way, last = path.split(".")
        place: Any = manifest
        for step in way:
            place = place.get(step, {})
        place.pop(last, None)
    return manifest


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_no_rule_rejects_what_the_parser_accepts(sinks: Kube, data: st.DataObject) -> None:
    paths = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=6, unique=True))
    manifest = changed({path: data.draw(st.sampled_from(VALUES[path]), label=path) for path in sorted(paths)})
    try:
        parse_sink(manifest)
    except InvalidSpec:
        return
    tried(sinks, manifest)
