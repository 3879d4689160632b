"""`s3sink ddl` for Spark, which reads the objects of a sink, and for Hive and Athena, whose statements Spark parses."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sink_job.ddl.dialects.hive import athena, hive
from sink_job.ddl.dialects.spark import spark
from sink_job.ddl.table import SinkTable
from tests.support.compared_sink import ComparedSink, log_of
from tests.support.memory_sink import MemorySinkFixture
from tests.unit.ddl.table_objects import TableObjects, connected
from tests.unit.ddl.tables import EVERY_TYPE, HOURLY, json_table, table, text_table

pytestmark = [pytest.mark.data, pytest.mark.spark]


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableObjects:
    sink = ComparedSink(MemorySinkFixture(tmp_path, monkeypatch), tmp_path / "sink.yaml")
    connected(sink, monkeypatch)
    return TableObjects(sink, tmp_path / "bucket")


def created(sql: SparkSession, statement: str) -> None:
    sql.sql(statement.rstrip().removesuffix(";"))


@pytest.mark.parametrize("output", ["Json", "JsonGzip", "Parquet"])
def test_spark_returns_the_rows_of_the_source(
    sql: SparkSession, objects: TableObjects, capsys: pytest.CaptureFixture[str], tmp_path: Path, output: str
) -> None:
    log = log_of(output, 12, paths=2)
    objects.sink.output = output
    objects.sink.write(log, paths=True)
    objects.write()
    records = tmp_path / "records.jsonl"
    records.write_bytes(b"\n".join(log.value(0, offset) for offset in range(12)))
    more = () if output == "Parquet" else ("--records", str(records))
    created(sql, objects.statement(capsys, "spark", *more))
    found = sql.sql("SELECT `partition`, offset, kind FROM log ORDER BY offset").collect()
    assert [tuple(row) for row in found] == [(0, offset, f"k{offset % 2}") for offset in range(12)]


@pytest.mark.parametrize("output", ["Json", "Bytes"])
def test_spark_reads_values_without_a_schema_as_lines(
    sql: SparkSession, objects: TableObjects, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    log = log_of(output, 7)
    objects.sink.output = output
    objects.sink.write(log)
    objects.write()
    created(sql, objects.statement(capsys, "spark"))
    found = sql.sql("SELECT value, `partition` FROM log").collect()
    assert sorted(tuple(row) for row in found) == sorted((log.value(0, offset).decode(), 0) for offset in range(7))


def test_spark_passes_over_records_without_a_value_outside_of_the_partitions(sql: SparkSession, tmp_path: Path) -> None:
    """Spark rejects a directory that is no partition among those that are."""
    for folder in ("dt=2026-01-02/hour=03/carrier=UA", "tombstone"):
        place = tmp_path / "topics" / "flights" / folder
        place.mkdir(parents=True)
        (place / "x.json").write_text('{"n": 5}\n')
    statement = spark(json_table(paths=HOURLY, tombstones="tombstone")).text or ""
    created(sql, statement.replace("s3a://lake", f"file://{tmp_path}"))
    assert [tuple(row) for row in sql.sql("SELECT n, dt, hour, carrier FROM flights").collect()] == [
        (5, "2026-01-02", 3, "UA")
    ]


@pytest.mark.parametrize("given", [table(columns=EVERY_TYPE, paths=HOURLY), json_table(), text_table()])
def test_sparks_parser_of_hives_statements_accepts_those_of_hive_and_athena(
    sql: SparkSession, given: SinkTable
) -> None:
    parser = sql._jsparkSession.sessionState().sqlParser()
    for statement in (hive(given), athena(given)):
        assert "CreateTable" in parser.parsePlan((statement.text or "").removesuffix(";")).toString()
