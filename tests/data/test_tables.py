"""Tables over objects on a real S3 server, as DuckDB reads them: the rows are the records, each once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from devtools.iceberg_reader import read_table
from devtools.s3 import s3_client
from sink_job.api.enums import CatalogType, OutputFormat
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.cli import main as cli
from sink_job.coordinator.context import StopCondition
from sink_job.tables.catalogs import open_catalog
from sink_job.tables.file_io import clients_like
from sink_job.tables.plan import LedgerView, Request
from sink_job.tables.registration import Registration, TopicTable
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.table_sink import BEGIN, FORMAT, parquet_log
from tests.unit.codecs.typed_cases import CASES
from tests.unit.codecs.typed_objects import AvroColumns, object_of
from tests.unit.tables.parquet_objects import listed

pytestmark = pytest.mark.data

ALL = StopCondition(until_caught_up=True, publish_open=True)
TYPED = AvroColumns([each for each in CASES if not each.name.endswith(("millis", "nanos"))])
"""Columns of all types that tables have."""
VALUES = (
    "result = [list(row) for row in connection.execute('select \"offset\", kind, seats from t order by 1').fetchall()]"
)


class LakeFixture:
    """A sink on a real S3 server, a bucket of its own for tables, and a SQL catalog."""

    def __init__(self, sink: SinkFixture, *, paths: bool = False) -> None:
        self.sink = sink
        self.bucket = f"{sink.bucket}-lake"
        s3_client(sink.endpoint).create_bucket(Bucket=self.bucket)
        self.spec = CatalogSpec(
            type=CatalogType.SQL,
            uri=f"sqlite:///{sink.folder}/catalog.db",
            warehouse=f"s3://{self.bucket}/tables",
        )
        self.catalog = open_catalog(self.spec, clients_like(sink.settings))
        self.given: dict[str, Any] = {"flush_size": 10, "paths": paths}

    def run(self, records: int, ids: tuple[int, ...] = (1,), **given: Any) -> None:
        self.sink.run(parquet_log(records, ids, **given), ALL, **self.given, spec={"format": FORMAT})

    def register(self, *arguments: str) -> int:
        """`s3sink register`."""
        spec = {"format": FORMAT, "tables": [{"catalog": self.spec.model_dump(), "name": "lake.{topic}"}]}
        document = json.loads(manifest(self.sink.bucket, self.sink.endpoint, **self.given, spec=spec))
        document["spec"]["s3"]["credentials"] = {"secret": "s3"}
        path = self.sink.folder / "sink.yaml"
        path.write_text(json.dumps(document))
        secret = f"s3={self.sink.settings.credentials_dir}"
        return cli.main(["register", str(path), "--secret", secret, *arguments])

    def read(self, script: str, name: str = "lake.log") -> Any:
        table = self.catalog.load(name)
        assert table is not None
        return read_table(self.sink.endpoint, table.metadata_location, script)


@pytest.fixture
def lake(sink_fixture: SinkFixture) -> LakeFixture:
    return LakeFixture(sink_fixture)


def expected(records: int, ids_of: Any) -> list[list[Any]]:
    """The rows of `VALUES` that the table must have; `ids_of` is the schema id of an offset."""
    rows = []
    for offset in range(records):
        item = parquet_log(records, (ids_of(offset),)).item(0, offset)
        rows.append([offset, item["kind"], item.get("seats")])
    return rows


def test_the_rows_of_a_table_are_the_records_of_the_sink(lake: LakeFixture) -> None:
    lake.run(25)
    assert lake.register("--from-beginning") == 0
    assert lake.register() == 0
    lake.run(60, (2,))
    assert lake.register() == 0
    assert lake.read(VALUES) == expected(60, lambda offset: 1 if offset < 25 else 2)


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
