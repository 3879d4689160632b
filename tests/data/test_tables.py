"""Tables over objects on a real S3 server, as DuckDB reads them: the rows are the records, each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from devtools.processes import ServerFailedError
from sink_job.api.enums import OutputFormat
from sink_job.tables.plan import LedgerView, Request
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import TopicTable
from tests.support.lake import VALUES, LakeFixture, expected
from tests.support.sink_fixture import SinkFixture
from tests.support.table_sink import BEGIN, FORMAT, parquet_log
from tests.unit.codecs.typed_cases import CASES
from tests.unit.codecs.typed_objects import AvroColumns, object_of
from tests.unit.tables.parquet_objects import listed

pytestmark = pytest.mark.data

TYPED = AvroColumns([each for each in CASES if not each.name.endswith(("millis", "nanos"))])
"""Columns of all types that tables have."""


@pytest.fixture
def lake(sink_fixture: SinkFixture) -> LakeFixture:
    """A sink with a SQL catalog."""
    return LakeFixture(sink_fixture)


def test_the_rows_of_a_table_are_the_records_of_the_sink(lake: LakeFixture) -> None:
    lake.run(25)
    assert lake.register("--from-beginning") == 0
    assert lake.register() == 0
    lake.run(60, (2,))
    assert lake.register() == 0
    assert lake.read(VALUES) == expected(60, lambda offset: 1 if offset < 25 else 2)


def test_duckdb_and_pyiceberg_do_not_read_avro_objects(lake: LakeFixture) -> None:
    """docs/tables.md has this limit. Neither returns wrong rows."""
    lake.sections["format"] = {**FORMAT, "output": "Avro"}
    lake.run_log(replace(parquet_log(25), output=OutputFormat.AVRO))
    assert lake.register("--from-beginning") == 0
    with pytest.raises(ServerFailedError, match="File format 'AVRO' not supported"):
        lake.read("result = connection.execute('select count(kind) from t').fetchall()")
    table = lake.catalog.load("lake.log")
    assert table is not None
    with pytest.raises(ValueError, match="AVRO"):
        table.scan().to_arrow()


def test_a_table_is_read_without_the_objects_that_a_reader_has_moved_away(lake: LakeFixture) -> None:
    """The second registration adds a snapshot without files, the last one an object that was moved back."""
    lake.options = {"onMissing": "Skip"}
    s3, rows = lake.sink.s3, expected(30, lambda offset: 2)
    lake.run(30, (2,))
    before = lake.sink.keys()
    key = before[1]
    content = s3.get(key)
    s3.delete([key])
    assert lake.register("--from-beginning") == 0
    assert lake.read(VALUES) == rows[:10] + rows[20:]
    lake.run(50, (2,))
    s3.delete(sorted({*lake.sink.keys()} - {*before}))
    assert lake.register() == 0
    assert lake.read(VALUES) == rows[:10] + rows[20:]
    assert lake.verify_command() == 0
    s3.put(key, content)
    assert lake.register("--from-beginning") == 0
    assert lake.read(VALUES) == rows
    assert lake.verify_command() == 0


def test_keys_with_escaped_and_unusual_characters_are_read(sink_fixture: SinkFixture) -> None:
    lake = LakeFixture(sink_fixture)
    lake.run(25)
    content = sink_fixture.s3.get(sink_fixture.keys()[0])
    keys = ["topics/log/a=b%2Fc+d e/x.parquet", "topics/log/ü&@=,'$()/x.parquet"]
    for key in keys:
        sink_fixture.s3.put(key, content)
    view = LedgerView("sink", "ledger", 9)
    objects = [listed(key, content, 10) for key in keys]
    target = TopicTable("lake.keys", "log", objects, view, ("topics/",), lambda seconds: None)
    Registration(sink_fixture.s3, "topics/_s3sink/x/", lake.catalog, target).run(BEGIN)
    assert lake.read('result = connection.execute("select count(*) from t").fetchone()', "lake.keys") == [20]


def test_all_types_of_tables_have_the_values_of_the_objects_with_and_without_filters(
    lake: LakeFixture, tmp_path: Path
) -> None:
    content = object_of(TYPED, OutputFormat.PARQUET, "Snappy")
    local = tmp_path / "object.parquet"
    local.write_bytes(content)
    values = pq.read_table(local)
    s3 = lake.sink.s3
    s3.put("topics/log/typed.parquet", content)
    o = listed("topics/log/typed.parquet", content, len(values))
    target = TopicTable("lake.typed", "log", [o], LedgerView("sink", "ledger", 9), ("topics/",), lambda seconds: None)
    assert Registration(s3, "topics/_s3sink/x/", lake.catalog, target).run(Request(True)).records == len(values)

    copy = tmp_path / "copy.parquet"
    script = f"""
connection.execute("COPY (SELECT * FROM t) TO '{copy}' (FORMAT parquet)")
connection.execute("CREATE TABLE copied AS SELECT * FROM t")
types = {{name: str(kind) for name, kind, *_ in connection.execute("describe t").fetchall()}}
result = {{"types": types, "filters": []}}
for name, kind in types.items():
    if not any(text in kind for text in ("STRUCT", "MAP", "[")):
        for end in ("min", "max"):
            value = connection.execute(f'select {{end}}("{{name}}") from copied').fetchone()[0]
            counts = [
                connection.execute(f'select count(*) from {{source}} where "{{name}}" = ?', [value]).fetchone()[0]
                for source in ("copied", "t")
            ]
            result["filters"].append([name, *counts])
"""
    found = lake.read(script, "lake.typed")
    assert found["types"] == {each.name: each.duckdb for each in TYPED.cases}
    assert [str(row) for row in pq.read_table(copy).to_pylist()] == [str(row) for row in values.to_pylist()]
    assert len(found["filters"]) > 30
    assert [each for each in found["filters"] if not each[1] or each[1] != each[2]] == []


def test_records_that_an_offset_reset_copies_again_are_not_added_to_the_same_table(lake: LakeFixture) -> None:
    lake.run(25, (2,))
    lake.register("--from-beginning")
    lake.reset(25, "NewPrefix")
    lake.run(30, (2,))
    assert lake.register() == 7
    assert lake.read(VALUES) == expected(25, lambda offset: 2)
    assert lake.register("--from-beginning", name="later.{topic}") == 0
    assert lake.read(VALUES, "later.log") == expected(30, lambda offset: 2)


def test_a_table_continues_after_an_offset_reset_that_copies_nothing_again(lake: LakeFixture) -> None:
    lake.run(25)
    lake.register("--from-beginning")
    lake.reset(25, "Fail", "Latest")
    lake.run(40, (2,))
    assert lake.register() == 0
    assert lake.read(VALUES) == expected(40, lambda offset: 1 if offset < 25 else 2)
