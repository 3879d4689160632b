"""Keys, headers, timestamps and their types from a real broker to objects, which DuckDB reads."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pytest

from devtools.topics import Record
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]

SCHEMA = {
    "type": "record",
    "name": "example.Flight",
    "fields": [{"name": "number", "type": "long"}, {"name": "carrier", "type": ["null", "string"]}],
}
RECORDS = 30
START = 1_700_000_000_000


def flight(number: int) -> dict[str, Any]:
    return {"number": number, "carrier": None if number % 4 else f"ä{number}"}


def datum(number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, flight(number))
    return out.getvalue()


def produced(number: int, value: bytes) -> Record:
    headers = [("trace", b"\xff%d" % number), ("trace", None)] if number % 3 == 0 else []
    return Record(value=value, key=None if number % 2 else b"k%d" % number, timestamp=START + number, headers=headers)


FORMATS: dict[str, dict[str, Any]] = {
    "Json": {"output": "Json", "keyConverter": "Text", "timestamps": "Number"},
    "Parquet": {"output": "Parquet", "converter": "Avro", "schema": {"text": json.dumps(SCHEMA)}},
}


@pytest.mark.parametrize("output", FORMATS)
def test_duckdb_reads_what_the_broker_has_and_verify_deep_passes(
    spark_fixture: SparkFixture, topic: str, tmp_path: Path, output: str
) -> None:
    is_json, appended = output == "Json", f"{topic}-appended"
    spark_fixture.topics.create(topic)
    spark_fixture.topics.create(appended, settings={"message.timestamp.type": "LogAppendTime"})
    for name in (topic, appended):
        values = (json.dumps(flight(n)).encode() if is_json else datum(n) for n in range(RECORDS))
        spark_fixture.topics.produce(name, [produced(n, value) for n, value in enumerate(values)])
    sink = spark_fixture.sink([topic, appended], format={**FORMATS[output], "envelope": True})
    spark_fixture.run(sink, PUBLISH_ALL)
    found = rows(spark_fixture, tmp_path, is_json=is_json)
    assert [each[:2] for each in found] == [(name, n) for name in (topic, appended) for n in range(RECORDS)]
    for _, number, key, headers, when, kind, value in found[:RECORDS]:
        given = produced(number, b"")
        assert key == given.key
        assert headers == [{"name": name, "value": content} for name, content in given.headers]
        assert (when, kind) == (at(START + number), "CreateTime")
        assert value == flight(number)
    assert {each[5] for each in found[RECORDS:]} == {"LogAppendTime"}
    assert all(each[4] > at(START + RECORDS) for each in found[RECORDS:])
    compared = [each.compared for each in spark_fixture.verify_deep(sink)]
    assert [(each.records, list(each.findings)) for each in compared if each] == [(RECORDS, [])] * 2


def at(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def rows(fixture: SparkFixture, folder: Path, *, is_json: bool) -> list[Any]:
    """The records of all objects: topic, offset, key, headers, timestamp and its type, value."""
    ending, client = "json" if is_json else "parquet", fixture.s3.client()
    for number, key in enumerate(fixture.keys()):
        body: bytes = client.get_object(Bucket=fixture.bucket, Key=key)["Body"].read()
        (folder / f"{number}.{ending}").write_bytes(body)
    return queried(_JSON if is_json else _PARQUET, f"{folder}/*.{ending}")


_PARQUET = """
    select topic, "offset", key, headers, "timestamp", timestampType, "value"
    from read_parquet($files) order by strlen(topic), "offset"
"""
_JSON = """
    select topic, "offset", encode(key),
        list_transform(headers, lambda h: {'name': h."name", 'value': from_base64(h."value")}),
        make_timestamptz("timestamp" * 1000), timestampType, "value"
    from read_json($files, columns = {
        topic: 'VARCHAR', "offset": 'BIGINT', key: 'VARCHAR', headers: 'STRUCT("name" VARCHAR, "value" VARCHAR)[]',
        "timestamp": 'BIGINT', timestampType: 'VARCHAR', "value": 'STRUCT(number BIGINT, carrier VARCHAR)'
    }) order by strlen(topic), "offset"
"""


def queried(query: str, files: str) -> list[Any]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        return connection.execute(query, {"files": files}).fetchall()


NULLS: dict[str, dict[str, Any]] = {
    "Json": {"output": "Json"},
    "Parquet": {"output": "Parquet", "converter": "Json", "schema": {"text": json.dumps({
        "type": "object", "title": "Flight", "properties": {"number": {"type": "integer"}}, "required": ["number"],
    })}},
}  # fmt: skip


@pytest.mark.parametrize("output", NULLS)
def test_duckdb_distinguishes_tombstones_from_null_and_verify_deep_passes(
    spark_fixture: SparkFixture, topic: str, tmp_path: Path, output: str
) -> None:
    spark_fixture.topics.create(topic)
    values = [b'{"number": 0}', None, b"null", b'{"number": 3}', None]
    spark_fixture.topics.produce(topic, [Record(value=each, key=b"k%d" % n) for n, each in enumerate(values)])
    sink = spark_fixture.sink(
        [topic], format={**NULLS[output], "envelope": True}, errors={"onNullValue": "Write"}, rounds={"maxRecords": 2}
    )
    spark_fixture.run(sink, PUBLISH_ALL)
    (key,) = spark_fixture.keys()
    path = tmp_path / f"x.{output.lower()}"
    path.write_bytes(spark_fixture.s3.client().get_object(Bucket=spark_fixture.bucket, Key=key)["Body"].read())
    reader = "read_json_auto" if output == "Json" else "read_parquet"
    query = f"""select "offset", valueIsNull, "value".number from {reader}($files) order by 1"""
    assert queried(query, str(path)) == [
        (0, False, 0), (1, True, None), (2, False, None), (3, False, 3), (4, True, None),
    ]  # fmt: skip
    (verified,) = spark_fixture.verify_deep(sink)
    assert verified.compared is not None
    assert (verified.compared.records, list(verified.compared.findings)) == (5, [])
