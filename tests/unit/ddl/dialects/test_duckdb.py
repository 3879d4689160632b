"""The statements of DuckDB, which it runs on the objects of a sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.ddl.dialects.duckdb import duckdb as statement_of
from tests.support.compared_sink import ComparedSink, log_of
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.unit.ddl.table_objects import TableObjects, connected
from tests.unit.ddl.tables import EVERY_TYPE, HOSTILE, HOURLY, UNNAMED, json_table, table, text_table


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableObjects:
    sink = ComparedSink(MemorySinkFixture(tmp_path, monkeypatch), tmp_path / "sink.yaml")
    connected(sink, monkeypatch)
    return TableObjects(sink, tmp_path / "bucket")


def rows(statement: str, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(statement)
        found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return found


@pytest.mark.parametrize("output", ["Json", "JsonGzip", "Parquet"])
def test_the_view_has_the_rows_of_the_source(
    objects: TableObjects, capsys: pytest.CaptureFixture[str], tmp_path: Path, output: str
) -> None:
    """The field `kind` is in the path, too."""
    log = log_of(output, 12, paths=2)
    objects.sink.output = output
    objects.sink.write(log, paths=True)
    objects.write()
    records = tmp_path / "records.jsonl"
    records.write_bytes(b"\n".join(log.value(0, offset) for offset in range(12)))
    more = () if output == "Parquet" else ("--records", str(records))
    statement = objects.statement(capsys, "duckdb", *more)
    found = rows(statement, 'SELECT "partition", "offset", kind FROM log ORDER BY "offset"')
    assert found == [(0, offset, f"k{offset % 2}") for offset in range(12)]
    assert rows(statement, "SELECT count(*) FROM log WHERE kind = 'k1'") == [(6,)]


def test_values_without_a_schema_are_one_column_of_json(
    objects: TableObjects, capsys: pytest.CaptureFixture[str]
) -> None:
    objects.sink.write(log_of("Json", 7))
    objects.write()
    statement = objects.statement(capsys, "duckdb")
    query = "SELECT CAST(json->>'offset' AS INT), \"partition\" FROM log ORDER BY 1"
    assert rows(statement, query) == [(offset, 0) for offset in range(7)]


def test_bytes_are_lines(objects: TableObjects, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of("Bytes", 7)
    objects.sink.output = "Bytes"
    objects.sink.write(log)
    objects.write()
    found = rows(objects.statement(capsys, "duckdb"), "SELECT line FROM log")
    assert sorted(line for (line,) in found) == sorted(log.value(0, offset).decode() for offset in range(7))


def test_a_record_in_an_envelope_has_its_key_and_any_value(
    objects: TableObjects, capsys: pytest.CaptureFixture[str]
) -> None:
    objects.sink.path.write_text(
        manifest("archive", "http://127.0.0.1:9", flush_size=5, spec={"format": {"envelope": True}})
    )
    folder = objects.folder / "topics/log/partition=0"
    folder.mkdir(parents=True)
    (folder / "log+0+0000000000.json").write_text(
        '{"key":"aw==","headers":[{"name":"h","value":null}],"timestamp":5,"timestampType":"CreateTime","topic":"log",'
        '"partition":0,"offset":7,"value":{"kind":"k0"}}\n'
    )
    query = 'SELECT "key", headers[1].name, topic, "offset", value->>\'kind\' FROM log'
    assert rows(objects.statement(capsys, "duckdb"), query) == [("aw==", "h", "log", 7, "k0")]


def test_null_values_in_an_envelope_are_distinguished(
    objects: TableObjects, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"format": {"envelope": True}, "errors": {"onNullValue": "Write", "tombstonePath": "gone"}}
    objects.sink.path.write_text(manifest("archive", "http://127.0.0.1:9", flush_size=5, spec=spec))
    record = (
        '{"key":null,"headers":[],"timestamp":5,"timestampType":"CreateTime","topic":"log","partition":0,"offset":%s,'
        '"valueIsNull":%s,"value":null}\n'
    )
    for number, (path, is_null) in enumerate([("partition=0", "false"), ("gone", "true")]):
        folder = objects.folder / "topics/log" / path
        folder.mkdir(parents=True)
        (folder / f"log+0+000000000{number}.json").write_text(record % (number, is_null))
    statement = objects.statement(capsys, "duckdb", code=8)
    assert "NOT EXPRESSED: records without a value are below gone/" in statement
    assert rows(statement, 'SELECT "offset", "valueIsNull" FROM log') == [(0, False)]


def test_each_type_and_name_is_read(tmp_path: Path) -> None:
    """JSON of every type, and names with quotes and comments."""
    folder = tmp_path / "topics" / "flights" / "dt=2026-01-02" / "hour=03" / "carrier=UA"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text(
        '{"boolean":true,"int":1,"long":2,"float":0.5,"double":0.25,"string":"s","json":{"a":[1]},"decimal":1.25,'
        '"array":[1],"map":{"k":7},"struct":{"a":1,"b":"x"},"a\'b":"1","a\\"b":"2","a`b":"3","a;-- b":"4",'
        '"Select":"5"}\n'
    )
    given = json_table(columns=(*EVERY_TYPE, *HOSTILE), paths=HOURLY)
    statement = statement_of(given)
    assert len(statement.gaps) == 1
    text = (statement.text or "").replace("s3://lake", str(tmp_path))
    (row,) = rows(text, 'SELECT "struct".b, "map"[\'k\'], "a\'b", "a""b", "a`b", "a;-- b", "Select" FROM flights')
    assert row == ("x", 7, "1", "2", "3", "4", "5")
    assert rows(text, "SELECT dt, hour, carrier FROM flights") == [("2026-01-02", 3, "UA")]


def test_records_without_a_value_in_a_directory_of_their_own_are_a_gap(tmp_path: Path) -> None:
    """DuckDB rejects a directory that is no partition among those that are."""
    for folder in ("dt=2026-01-02/hour=03/carrier=UA", "tombstone"):
        place = tmp_path / "topics" / "flights" / folder
        place.mkdir(parents=True)
        (place / "x.json").write_text('{"n": 5}\n')
    statement = statement_of(json_table(paths=HOURLY, tombstones="tombstone"))
    assert ["below tombstone/" in each for each in statement.gaps] == [True]
    text = (statement.text or "").replace("s3://lake", str(tmp_path))
    assert rows(text, "SELECT n, carrier FROM flights") == [(5, "UA")]


def test_records_without_a_value_below_a_path_without_names_are_read(tmp_path: Path) -> None:
    place = tmp_path / "topics" / "flights" / "tombstone"
    place.mkdir(parents=True)
    (place / "x.json").write_text('{"n": 5}\n')
    statement = statement_of(json_table(paths=UNNAMED, tombstones="tombstone"))
    assert not any("tombstone" in each for each in statement.gaps)
    text = (statement.text or "").replace("s3://lake", str(tmp_path))
    assert rows(text, "SELECT n FROM flights") == [(5,)]


def test_a_path_without_names_is_a_gap_and_is_read_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "topics" / "flights" / "2026"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text('{"n": 5}\n')
    statement = statement_of(json_table(paths=UNNAMED))
    assert len(statement.gaps) == 1
    assert rows((statement.text or "").replace("s3://lake", str(tmp_path)), "SELECT * FROM flights") == [(5,)]


def test_avro_needs_an_extension_and_has_no_columns_of_the_path() -> None:
    found = statement_of(table(output=OutputFormat.AVRO, codec=CompressionCodec.NONE, paths=HOURLY))
    assert "INSTALL avro" in found.notes[0]
    assert found.gaps == ["read_avro has no columns of the path"]


def test_bytes_that_are_no_lines_are_a_gap() -> None:
    assert statement_of(text_table(output=OutputFormat.BYTES, separator="|")).gaps


def test_the_secret_has_the_address_of_the_store() -> None:
    assert (
        "ENDPOINT 'store:9000', URL_STYLE 'path', USE_SSL false"
        in statement_of(table(endpoint="http://store:9000")).notes[-1]
    )


def test_characters_of_patterns_in_the_prefix_are_literal() -> None:
    assert "s3://lake/a[*]b/flights/**/*" in (statement_of(table(prefix="a*b/flights/")).text or "")
