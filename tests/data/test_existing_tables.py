"""Tables that exist before a sink, from a real broker to the rows that DuckDB reads: those of others, and the
records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from devtools.iceberg_reader import read_table
from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server, credentials_secret
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.enums import CatalogType
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.tables.catalogs import open_catalog
from sink_job.tables.field_ids import waiting_topics
from sink_job.tables.file_io import clients_like
from sink_job.tables.partitions.object_partitions import FIRST_PATH_COLUMN
from tests.support.synthetic_log import loopback_settings

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]
SCHEMA = {
    "type": "record",
    "name": "flight",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "carrier", "type": "string"},
        {"name": "position", "type": {"type": "record", "name": "P", "fields": [{"name": "lat", "type": "double"}]}},
        {"name": "legs", "type": {"type": "array", "items": "string"}},
        {"name": "prices", "type": {"type": "map", "values": "long"}},
        {"name": "gate", "type": ["null", "string"]},
    ],
}
ROWS = """
rows = connection.execute("select n, carrier, position, legs, map_entries(prices), gate from t order by n").fetchall()
result = [list(row) for row in rows]
"""


def flight(n: int) -> dict[str, Any]:
    return {
        "n": n,
        "carrier": f"ä{n % 3}",
        "position": {"lat": n / 4},
        "legs": ["MUC"] * (n % 3),
        "prices": {"eur": n},
        "gate": None if n % 2 else f"g{n}",
    }


def row(n: int) -> list[Any]:
    """The row of `flight` in `ROWS`."""
    value = flight(n)
    position = {"alt": None, **value["position"]}
    return [n, value["carrier"], position, value["legs"], [{"key": "eur", "value": n}], value["gate"]]


class ExistingTables:
    """A catalog, and sinks whose tables are in it."""

    def __init__(self, kafka: KafkaBroker, s3: S3Server, bucket: str, sink_here: SinkFactory, folder: Path) -> None:
        self._bootstrap = kafka.bootstrap
        self._endpoint = s3.endpoint
        self._bucket = bucket
        self._sink_here = sink_here
        lake = f"{bucket[:50]}-lake"
        s3.client().create_bucket(Bucket=lake)
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"s3://{lake}/tables"
        self.spec = CatalogSpec(type=CatalogType.SQL, uri=uri, warehouse=warehouse)
        settings = loopback_settings(s3.endpoint, bucket, credentials_secret(folder / "keys"))
        self.catalog = open_catalog(self.spec, clients_like(settings))

    def create(self, name: str, schema: pa.Schema) -> None:
        """Another program creates a table with a column that it drops again: fields get ids of their own."""
        iceberg = self.catalog._catalog
        iceberg.create_namespace_if_not_exists(name.split(".")[0])
        table = iceberg.create_table(name, pa.unify_schemas([pa.schema([("old", pa.int64())]), schema]))
        with table.update_schema() as update:
            update.delete_column("old")

    def sink(self, name: str, topic: str, table: str) -> SinkCommand:
        spec = local_spec(
            bootstrap=self._bootstrap,
            topics=[topic],
            endpoint=self._endpoint,
            bucket=self._bucket,
            rotation={"flushSize": 10},
            format={"converter": "Json", "output": "Parquet", "schema": {"text": json.dumps(SCHEMA)}},
        )
        catalog = json.loads(self.spec.model_dump_json(exclude_none=True, by_alias=True))
        return self._sink_here(manifest(name, {**spec, "tables": [{"catalog": catalog, "name": table}]}))

    def ids(self, name: str) -> dict[str, int]:
        """The field ids of a table, by path."""
        table = self.catalog.load(name)
        assert table is not None
        return {table.schema().find_column_name(n) or "": n for n in table.schema().field_ids}

    def rows(self, name: str) -> list[list[Any]]:
        """The rows of a table, as DuckDB reads them."""
        table = self.catalog.load(name)
        assert table is not None
        found: list[list[Any]] = read_table(self._endpoint, table.metadata_location, ROWS)
        return found


@pytest.fixture
def tables(kafka: KafkaBroker, s3: S3Server, bucket: str, sink_here: SinkFactory, tmp_path: Path) -> ExistingTables:
    return ExistingTables(kafka, s3, bucket, sink_here, tmp_path)


COLUMNS = pa.schema(
    [
        ("prices", pa.map_(pa.string(), pa.int64())),
        ("legs", pa.list_(pa.string())),
        ("position", pa.struct([("alt", pa.float64()), ("lat", pa.float64())])),
        ("carrier", pa.string()),
        ("n", pa.int64()),
        ("of_others", pa.string()),
    ]
)


def test_a_table_with_rows_of_another_program_has_them_and_the_records_of_a_new_sink(
    tables: ExistingTables, topics: Topics, topic: str
) -> None:
    """The table has other columns in another order. No command registers."""
    tables.create("lake.flights", COLUMNS)
    others = {"n": -1, "carrier": "x", "position": {"alt": 1.0, "lat": 2.0}, "legs": ["a"], "prices": [("eur", 5)]}
    table = tables.catalog.load("lake.flights")
    assert table is not None
    table.append(pa.Table.from_pylist([{**others, "of_others": "y"}], schema=COLUMNS))
    before = tables.ids("lake.flights")
    topics.create(topic, partitions=2)
    topics.produce_values(topic, [json.dumps(flight(n)).encode() for n in range(25)])
    sink = tables.sink("flights", topic, "lake.flights")
    sink.catch_up()
    assert {path: number for path, number in tables.ids("lake.flights").items() if path in before} == before
    old = [-1, "x", {"alt": 1.0, "lat": 2.0}, ["a"], [{"key": "eur", "value": 5}], None]
    assert tables.rows("lake.flights") == [old, *map(row, range(25))]

    topics.produce_values(topic, [json.dumps(flight(n)).encode() for n in range(25, 40)])
    sink.catch_up()
    assert tables.rows("lake.flights") == [old, *map(row, range(40))]
    sink.must("verify", "--deep")
    sink.must("verify", "--table")


def test_a_run_that_ends_ends_with_the_error_of_a_table(tables: ExistingTables, topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce_values(topic, [json.dumps(flight(n)).encode() for n in range(15)])
    sink = tables.sink("flights", topic, "lake.flights")
    sink.catch_up()
    tables.catalog._catalog.drop_table("lake.flights")
    topics.produce_values(topic, [json.dumps(flight(n)).encode() for n in range(15, 20)])
    output = sink.must("run", "--until-caught-up", "--publish-open", exit_code=7)
    assert "all records were copied, and not all objects were registered: table lake.flights: TableReplaced:" in output
    sink.must("verify", "--deep")


def test_two_sinks_of_two_topics_have_one_table(tables: ExistingTables, topics: Topics, topic: str) -> None:
    tables.create("lake.all", COLUMNS)
    for number, name in enumerate((f"{topic}-a", f"{topic}-b")):
        topics.create(name)
        topics.produce_values(name, [json.dumps(flight(n)).encode() for n in range(number, 30, 2)])
        tables.sink(f"sink{number}", name, "lake.all").catch_up()
    assert tables.rows("lake.all") == [row(n) for n in range(30)]
    assert tables.ids("lake.all")["partition"] == FIRST_PATH_COLUMN


def test_a_run_that_ends_copies_nothing_of_a_new_topic_while_the_catalog_is_down(
    tables: ExistingTables, topics: Topics, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_topics, "ATTEMPTS", 2)
    topics.create(topic)
    topics.produce_values(topic, [json.dumps(flight(n)).encode() for n in range(15)])
    sink = tables.sink("flights", topic, "lake.flights")
    (tmp_path / "catalog.db").rename(tmp_path / "moved.db")
    (tmp_path / "catalog.db").mkdir()
    output = sink.must("run", "--until-caught-up", "--publish-open", exit_code=75)
    assert f"topic {topic} is not read, since the field ids of its first object have to be those of its table" in output
    (tmp_path / "catalog.db").rmdir()
    (tmp_path / "moved.db").rename(tmp_path / "catalog.db")
    tables.create("lake.flights", COLUMNS)
    sink.catch_up()
    assert tables.rows("lake.flights") == [row(n) for n in range(15)]
