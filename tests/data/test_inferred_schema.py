"""Plain JSON from a real broker to Parquet objects with an inferred schema, in processes of a real Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pytest

from devtools.bucket_listing import objects
from devtools.topics import Record
from sink_job.api.errors import DataError
from sink_job.api.spec import Sink
from sink_job.coordinator.committer import Committer
from tests.support.spark_fixture import PUBLISH_ALL, UNTIL_CAUGHT_UP, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]

FORMAT = {"output": "Parquet", "inference": "Once", "parquet": {"rowGroup": "1Mi"}}


class Killed(BaseException):
    """The driver ends here."""


def flight(n: int) -> dict[str, Any]:
    """The first round has all properties, and no value of `gate` and `codes`."""
    return {
        "n": n,
        "carrier": f"ä{n % 3}",
        "delay": None if n % 7 == 3 else n / 4 if n % 2 else n,
        "pos": {"lat": 1.5, "lon": n},
        "legs": [{"to": "MUC"}] * (n % 3),
        "seat": n if n % 2 else f"{n}A",
        "gate": None if n < 30 else {"x": n},
        "codes": [],
    }


def produce(fixture: SparkFixture, topic: str, *values: object) -> None:
    fixture.topics.produce(topic, (Record(value=json.dumps(value).encode()) for value in values))


def sink_of(fixture: SparkFixture, topic: str, given: Mapping[str, Any] | None = None) -> Sink:
    rounds = {"minBytes": 0, "maxDelay": "50ms", "maxRecords": 25}
    return fixture.sink([topic], format={**FORMAT, **(given or {})}, rounds=rounds)


def rows(fixture: SparkFixture, folder: Path) -> list[tuple[Any, ...]]:
    """The records of all objects, by DuckDB."""
    for number, key in enumerate(objects(fixture.s3.client(), fixture.bucket)):
        body = fixture.s3.client().get_object(Bucket=fixture.bucket, Key=key)["Body"].read()
        (folder / f"{number}.parquet").write_bytes(body)
    with duckdb.connect() as connection:
        return connection.execute(f"select * from '{folder}/*.parquet' order by n").fetchall()


def expect_verified(fixture: SparkFixture, sink: Sink, records: int) -> None:
    (result,) = fixture.verify_deep(sink)
    assert result.compared is not None
    assert (result.findings, result.compared.records) == ((), records)


def killed_at_call(number: int) -> Callable[..., Any]:
    """`Committer.record`, with the end of the driver before the call `number`: the tasks have uploaded and staged."""
    record, calls = Committer.record, count(1)

    def killed(committer: Committer, **given: Any) -> Any:
        if next(calls) == number:
            raise Killed
        return record(committer, **given)

    return killed


def test_json_becomes_parquet_with_the_schema_of_the_first_round_also_after_a_kill(
    spark_fixture: SparkFixture, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_fixture.topics.create(topic)
    produce(spark_fixture, topic, *map(flight, range(60)))
    sink = sink_of(spark_fixture, topic)
    with monkeypatch.context() as patched:
        patched.setattr(Committer, "record", killed_at_call(3))
        with pytest.raises(Killed):
            spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    spark_fixture.run(sink, PUBLISH_ALL)
    expected: list[tuple[Any, ...]] = [
        (
            n,
            f"ä{n % 3}",
            None if n % 7 == 3 else float(n / 4 if n % 2 else n),
            {"lat": 1.5, "lon": n},
            [{"to": "MUC"}] * (n % 3),
            json.dumps(flight(n)["seat"]),
            None if n < 30 else json.dumps({"x": n}, separators=(",", ":")),
            [],
        )
        for n in range(60)
    ]
    assert rows(spark_fixture, tmp_path) == expected
    expect_verified(spark_fixture, sink, 60)

    produce(spark_fixture, topic, {"n": "sixty"})
    with pytest.raises(DataError) as raised:
        spark_fixture.run(sink, PUBLISH_ALL)
    assert "the field n: a JSON value must be an integer" in str(raised.value)
    assert raised.value.offset == 60


def test_a_property_of_a_later_record_is_in_the_column_of_unknown_ones(
    spark_fixture: SparkFixture, topic: str, tmp_path: Path
) -> None:
    spark_fixture.topics.create(topic)
    produce(spark_fixture, topic, {"n": 1})
    sink = sink_of(spark_fixture, topic, {"unknownFields": "Json"})
    spark_fixture.run(sink, PUBLISH_ALL)
    produce(spark_fixture, topic, {"n": 2, "later": [1.5]})
    spark_fixture.run(sink, PUBLISH_ALL)
    assert rows(spark_fixture, tmp_path) == [(1, None), (2, '{"later":[1.5]}')]
    expect_verified(spark_fixture, sink, 2)
