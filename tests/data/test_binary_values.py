"""CBOR and MessagePack from a real broker to objects in a real S3 server."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from devtools.topics import Record
from sink_job.api.enums import ConverterType
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture
from tests.unit.plain.encoders import ENCODERS, Pairs, Time, encoded

pytestmark = [pytest.mark.data, pytest.mark.spark]

START = 1_700_000_000


@pytest.mark.parametrize("choice", list(ENCODERS))
def test_binary_values_become_json_lines_below_paths_of_their_fields(
    spark_fixture: SparkFixture, topic: str, choice: ConverterType
) -> None:
    log = spark_fixture.topics.create(topic)
    items = [Pairs([("at", Time(START + 3600 * n)), ("of", Pairs([("n", n % 2)])), ("raw", b"\xff")]) for n in range(4)]
    values = [encoded(choice, item, seed) for seed, item in enumerate(items)]
    spark_fixture.topics.produce(
        log, (Record(value=value) for value in [*values[:2], b"\xc1", encoded(choice, None), *values[2:]])
    )
    sink = spark_fixture.sink(
        [log],
        format={"converter": str(choice)},
        partitioner={
            "type": "FieldAndTime",
            "fields": ["of.n"],
            "duration": "1d",
            "pathFormat": "YYYY",
            "timezone": "UTC",
            "timestampExtractor": "RecordField",
            "timestampField": "at",
        },
        errors={"tolerance": "All", "onNullValue": "Ignore"},
    )
    report = spark_fixture.run(sink, PUBLISH_ALL)
    objects = {key.split("/", 2)[2]: lines for key, lines in spark_fixture.values().items()}
    assert {key.rpartition("/")[0]: [json.loads(line) for line in lines] for key, lines in objects.items()} == {
        f"of.n={n}/2023": [{"at": (START + 3600 * i) * 1000, "of": {"n": n}, "raw": "/w=="} for i in (n, n + 2)]
        for n in (0, 1)
    }
    assert report.totals.dropped == 1


def test_paths_have_keys_headers_topic_and_partition_and_times_are_in_headers(
    spark_fixture: SparkFixture, topic: str
) -> None:
    log = spark_fixture.topics.create(topic)
    at = [("at", str((START + 3600 * n) * 1000).encode()) for n in range(4)]
    records = [
        Record(key=b'{"id":1}', value=b"a", headers=[("tenant", b"x"), ("tenant", b"acme"), at[0]]),
        Record(key=None, value=b"b", headers=[("tenant", b"acme"), at[1]]),
        Record(key=b'{"id":1}', value=b"c", headers=[("tenant", b"acme"), at[2]]),
        Record(key=b"nope", value=b"d", headers=[("tenant", b"acme"), at[3]]),
        Record(key=b'{"id":1}', value=b"e"),
        Record(key=b"nope", value=None),
    ]
    spark_fixture.topics.produce(log, records)
    sink = spark_fixture.sink(
        [log],
        format={"converter": "Text", "output": "Bytes", "keyConverter": "Json"},
        partitioner={
            "type": "FieldAndTime",
            "fields": ["$key.id", "$header.tenant", "$topic", "$partition"],
            "duration": "1d",
            "pathFormat": "YYYY",
            "timezone": "UTC",
            "timestampExtractor": "RecordField",
            "timestampField": "$header.at",
            "schemaName": "Suffix",
        },
        errors={"tolerance": "All", "onNullValue": "Ignore"},
    )
    report = spark_fixture.run(sink, PUBLISH_ALL)
    objects = {key.split("/", 2)[2].rpartition("/")[0]: lines for key, lines in spark_fixture.values().items()}
    assert objects == {
        f"key.id={key}/header.tenant=acme/topic={log}/partition=0/2023/schema_name=null": lines
        for key, lines in (("1", [b"a", b"c"]), ("null", [b"b"]))
    }
    assert report.totals.dropped == 2


def test_avro_without_wire_format_is_read_with_the_schema_of_a_config_map(
    spark_fixture: SparkFixture, topic: str
) -> None:
    log = spark_fixture.topics.create(topic)
    schema: dict[str, Any] = {
        "type": "record",
        "name": "example.Flight",
        "fields": [{"name": "n", "type": "long"}, {"name": "carrier", "type": "string"}],
    }
    items = [{"n": n, "carrier": "UA" if n % 2 else "AA"} for n in range(10)]
    spark_fixture.topics.produce(log, (Record(value=avro(schema, item)) for item in items))
    sink = spark_fixture.sink(
        [log],
        format={"converter": "Avro", "schema": {"configMap": "flights", "key": "flight.avsc"}},
        partitioner={"type": "Field", "fields": ["carrier"], "schemaName": "Prefix"},
    )
    spark_fixture.run(sink.with_schema_text(json.dumps(schema)), PUBLISH_ALL)
    found = {
        key.split("/", 2)[2].rpartition("/")[0]: [json.loads(line) for line in lines]
        for key, lines in spark_fixture.values().items()
    }
    assert found == {
        f"schema_name=example.Flight/carrier={carrier}": [item for item in items if item["carrier"] == carrier]
        for carrier in ("AA", "UA")
    }


def avro(schema: dict[str, Any], item: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, item)
    return out.getvalue()
