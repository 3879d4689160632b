"""`format.timeUnit`: milliseconds in Parquet as microseconds, or as the schema says. Readers find the same instants."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.api.enums import OutputFormat, TimeUnit
from sink_job.api.sections.format_section import FormatSpec, ParquetSpec
from sink_job.avro.encoder import datum_encoder
from sink_job.codecs.containers import container_encoder
from sink_job.connect import logical_types
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.envelope.schema import KEY_BYTES, envelope_schema
from sink_job.formats.datum_rows import DatumRows
from tests.unit.formats.test_datum_rows import parts_of
from tests.unit.rotation.settings import object_settings

AT = Schema(SchemaType.INT64, name=logical_types.TIMESTAMP, version=logical_types.VERSION, optional=True)
TIME = Schema(SchemaType.INT32, name=logical_types.TIME, version=logical_types.VERSION)
STRUCT = Schema(SchemaType.STRUCT, name="inner", optional=True, fields=(Field("at", AT), Field("of_day", TIME)))
SCHEMA = Schema(
    SchemaType.STRUCT,
    name="r",
    fields=(
        Field("at", AT),
        Field("of_day", TIME),
        Field("list", Schema(SchemaType.ARRAY, values=AT)),
        Field("map", Schema(SchemaType.MAP, keys=Schema(SchemaType.STRING), values=AT)),
        Field("struct", STRUCT),
    ),
)
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
"""The bounds of the years 1 to 9999 in ms."""
INSTANTS = {
    FIRST: datetime(1, 1, 1, tzinfo=UTC),
    -1: datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
    LAST: datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC),
    None: None,
}
OF_DAY = time(23, 59, 59, 999_000)


def record(at: Any, of_day: Any) -> dict[str, Any]:
    return {"at": at, "of_day": of_day, "list": [at], "map": {"k": at}, "struct": {"at": at, "of_day": of_day}}


def object_of(unit: TimeUnit, count: int) -> bytes:
    settings = FormatSpec(output=OutputFormat.PARQUET, parquet=ParquetSpec(time_unit=unit))
    datums = DatumSettings.of(settings)
    assert datums
    encode = datum_encoder(SCHEMA, datums)
    data = [encode(record(at, 86_399_999)) for at in INSTANTS for _ in range(count)]
    rows = DatumRows().encode(pa.array(data, pa.binary())).to_pylist()
    return b"".join(parts_of(rows, container_encoder(settings, SCHEMA)("key")))


def by_duckdb(path: Path) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(f"select * from '{path}'").to_arrow_table()


READERS: dict[str, Callable[[Path], pa.Table]] = {
    "duckdb": by_duckdb,
    "polars": lambda path: pl.read_parquet(path).to_arrow(),
    "pyarrow": pq.read_table,
}


@pytest.mark.parametrize("count", [1, 10], ids=["row-wise", "column-wise"])
@pytest.mark.parametrize("unit", TimeUnit)
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_finds_the_same_instants_with_both_units(
    tmp_path: Path, reader: str, unit: TimeUnit, count: int
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(object_of(unit, count))
    found = [{**row, "map": _map(row["map"])} for row in READERS[reader](path).to_pylist()]
    assert found == [record(at, OF_DAY) for at in INSTANTS.values() for _ in range(count)]


def _map(entries: Any) -> dict[str, Any]:
    """polars has a list of structs."""
    return dict((each["key"], each["value"]) if isinstance(each, dict) else each for each in entries)


@pytest.mark.parametrize(
    ("unit", "expected"), [(TimeUnit.MICROS, "microseconds"), (TimeUnit.AS_SCHEMA, "milliseconds")]
)
def test_the_footer_has_the_unit_in_lists_maps_and_structs(unit: TimeUnit, expected: str) -> None:
    schema = pq.ParquetFile(io.BytesIO(object_of(unit, 1))).schema
    columns = [schema.column(number) for number in range(len(schema))]
    assert [f"timeUnit={expected}" in str(each.logical_type) for each in columns] == [
        each.path != "map.key_value.key" for each in columns
    ]


@pytest.mark.parametrize(("unit", "expected"), [(TimeUnit.MICROS, "us"), (TimeUnit.AS_SCHEMA, "ms")])
def test_the_timestamp_of_an_envelope_has_the_unit(unit: TimeUnit, expected: str) -> None:
    settings = FormatSpec(output=OutputFormat.PARQUET, parquet=ParquetSpec(time_unit=unit), envelope=True)
    datums = DatumSettings.of(settings)
    assert datums
    schema = envelope_schema(SCHEMA, KEY_BYTES)
    one: dict[str, Any] = {
        "key": None,
        "headers": [],
        "timestamp": 1,
        "timestampType": None,
        "topic": "t",
        "partition": 0,
        "offset": 0,
    }
    data = datum_encoder(schema, datums)({**one, "value": record(1, 1)})
    rows = DatumRows().encode(pa.array([data], pa.binary())).to_pylist()
    found = pq.read_table(io.BytesIO(b"".join(parts_of(rows, container_encoder(settings, schema)("key")))))
    assert found.schema.field("timestamp").type == pa.timestamp(expected, "UTC")
    assert found.column("timestamp").to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 1_000, UTC)]


def test_the_unit_is_a_setting_of_an_object_and_its_default_is_micros() -> None:
    """A driver with another value first finishes the open objects (P8)."""
    form = {"converter": "ConnectJson", "output": "Parquet"}
    default, micros, other = (
        object_settings(format={**form, **unit}).model_dump_json()
        for unit in ({}, {"parquet": {"timeUnit": "Micros"}}, {"parquet": {"timeUnit": "AsSchema"}})
    )
    assert default == micros
    assert other != micros
    assert object_settings(format={"converter": "ConnectJson"}).format.parquet is None
