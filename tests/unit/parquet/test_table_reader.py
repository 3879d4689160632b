"""Rows of Parquet objects: their data, read to a table, and the Parquet file that is made of it."""

from __future__ import annotations

import io
import json
import re
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import OutputFormat
from sink_job.arrow import columnar
from sink_job.avro import flat_reader
from sink_job.avro.converter import AvroDecoder
from sink_job.avro.from_connect import avro_schema, is_union
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema, SchemaType
from sink_job.connect.scopes import child
from sink_job.parquet.statistics import decoded_size
from sink_job.parquet.table_reader import ParquetTableReader
from tests.unit.avro.avro_data import Draw, Sample, _Builder, encode, record, registered
from tests.unit.avro.test_flat_reader import samples as flat_samples

PARQUET = DatumSettings(OutputFormat.PARQUET)
_LOGICAL = {
    "date": ("int", st.dates().map(lambda each: (each - date(1970, 1, 1)).days)),
    "time-millis": ("int", st.integers(0, 86_399_999)),
    "time-micros": ("long", st.integers(0, 86_399_999_999)),
    "timestamp-millis": ("long", st.integers(-(10**13), 10**14)),
    "timestamp-micros": ("long", st.integers(-(10**16), 10**17)),
    "local-timestamp-millis": ("long", st.integers(-(10**13), 10**14)),
    "local-timestamp-micros": ("long", st.integers(-(10**16), 10**17)),
    "uuid": ("string", st.uuids().map(str)),
}


class _ParquetBuilder(_Builder):
    """Draws schemas that Parquet can express, with all logical types."""

    def _millis(self, _: int) -> Sample:
        name = self.draw(st.sampled_from(sorted(_LOGICAL)))
        kind, values = _LOGICAL[name]
        return Sample({"type": kind, "logicalType": name}, values)

    _date = _millis

    def _decimal(self, _: int) -> Sample:
        precision = self.draw(st.integers(1, 38))
        scale = self.draw(st.integers(0, precision))
        schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        values = st.integers(1 - 10**precision, 10**precision - 1)
        sizes = st.sampled_from([None, 17, 20])
        return Sample(schema, st.builds(_unscaled, values, sizes))


def _unscaled(value: int, size: int | None) -> bytes:
    return value.to_bytes(size or (value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)


@st.composite
def samples(draw: Draw) -> tuple[Any, list[Any]]:
    sample = _ParquetBuilder(draw)._record(3)
    return sample.schema, draw(st.lists(sample.values, max_size=6))


def datums(schema: Any, values: list[Any]) -> tuple[Schema, pa.BinaryArray]:
    """The schema of an object, and the data of its rows."""
    decoder = AvroDecoder(registered(schema), (), DEFAULT_OPTIONS, PARQUET)
    decoded = decoder.decode(pa.array(encode(schema, values), pa.binary()))
    assert not decoded.rejected, decoded.rejected
    return decoder.schema, decoded.texts


def table(schema: Schema, data: pa.BinaryArray, *, min_rows: int = 16, with_numpy: bool = False) -> pa.Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", min_rows)
        patch.setattr(flat_reader, "MIN_TYPE_BYTES", 0 if with_numpy else 1 << 40)
        found = ParquetTableReader(schema, PARQUET).table(data)
    found.validate(full=True)
    return found


def parquet(found: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(found, out, store_schema=False)
    return out.getvalue()


def simplified(schema: Schema, value: Any) -> Any:
    """A value of a table as fastavro reads it: a union is its member, a map with text keys a dict."""
    if value is None:
        return None
    if is_union(schema):
        members = [simplified(each.schema, value[each.name]) for each in schema.fields if value[each.name] is not None]
        return members[0] if members else None
    match schema.type:
        case SchemaType.STRUCT:
            return {each.name: simplified(each.schema, value[each.name]) for each in schema.fields}
        case SchemaType.ARRAY:
            return [simplified(child(schema.values), item) for item in value]
        case SchemaType.MAP:
            return {key: simplified(child(schema.values), item) for key, item in value}
    return value


@given(samples())
def test_a_table_is_the_same_by_column_and_one_by_one(sample: tuple[Any, list[Any]]) -> None:
    schema, data = datums(*sample)
    by_column = table(schema, data, min_rows=0)
    assert parquet(by_column) == parquet(table(schema, data, min_rows=1 << 60))


@given(flat_samples())
def test_a_table_of_flat_data_is_the_same_with_numpy(sample: tuple[Any, list[bytes]]) -> None:
    given_schema, given_data = sample
    decoder = AvroDecoder(registered(given_schema), (), DEFAULT_OPTIONS, PARQUET)
    data = decoder.decode(pa.array(given_data, pa.binary())).texts
    one = table(decoder.schema, data, min_rows=0, with_numpy=True)
    other = table(decoder.schema, data, min_rows=0)
    assert decoded_size(one) == decoded_size(other)
    assert parquet(one) == parquet(other)


@given(samples(), st.sampled_from([0, 1 << 60]))
def test_a_parquet_file_has_the_values_that_fastavro_reads(sample: tuple[Any, list[Any]], min_rows: int) -> None:
    schema, data = datums(*sample)
    found = pq.read_table(io.BytesIO(parquet(table(schema, data, min_rows=min_rows)))).to_pylist()
    text = fastavro.parse_schema(json.loads(avro_schema(schema, PARQUET)))
    expected = [fastavro.schemaless_reader(io.BytesIO(each), text) for each in data.to_pylist()]
    rows = repr([simplified(schema, row) for row in found])
    assert rows.replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") == repr(expected)


UUID = "12345678-1234-5678-1234-567812345678"
TYPES: list[tuple[str, Any, Any, str, Any]] = [
    ("boolean", "boolean", True, "BOOLEAN", True),
    ("int", "int", -5, "INTEGER", -5),
    ("int8", {"type": "int", "connect.type": "int8"}, -5, "INTEGER", -5),
    ("long", "long", 2**63 - 1, "BIGINT", 2**63 - 1),
    ("float", "float", 0.5, "FLOAT", 0.5),
    ("double", "double", -0.0, "DOUBLE", -0.0),
    ("string", "string", "é", "VARCHAR", "é"),
    ("enum", {"type": "enum", "name": "E", "symbols": ["Z", "A"]}, "A", "VARCHAR", "A"),
    ("bytes", "bytes", b"\0\xff", "BLOB", b"\0\xff"),
    ("fixed", {"type": "fixed", "name": "F", "size": 2}, b"\0\xff", "BLOB", b"\0\xff"),
    (
        "decimal",
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        b"\xff\x38",
        "DECIMAL(10,2)",
        Decimal("-2.00"),
    ),
    (
        "decimal without a precision that Parquet allows",
        {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2},
        b"\x01",
        "DECIMAL(38,2)",
        Decimal("0.01"),
    ),
    (
        "decimal on a fixed",
        {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 1},
        b"\xff\xff\xff",
        "DECIMAL(5,1)",
        Decimal("-0.1"),
    ),
    ("date", {"type": "int", "logicalType": "date"}, -1, "DATE", date(1969, 12, 31)),
    ("time-millis", {"type": "int", "logicalType": "time-millis"}, 1001, "TIME", time(0, 0, 1, 1000)),
    ("time-micros", {"type": "long", "logicalType": "time-micros"}, 1001, "TIME", time(0, 0, 0, 1001)),
    (
        "timestamp-millis",
        {"type": "long", "logicalType": "timestamp-millis"},
        1001,
        "TIMESTAMP WITH TIME ZONE",
        datetime(1970, 1, 1, 0, 0, 1, 1000, UTC),
    ),
    (
        "timestamp-micros",
        {"type": "long", "logicalType": "timestamp-micros"},
        1001,
        "TIMESTAMP WITH TIME ZONE",
        datetime(1970, 1, 1, 0, 0, 0, 1001, UTC),
    ),
    (
        "local-timestamp-millis",
        {"type": "long", "logicalType": "local-timestamp-millis"},
        1001,
        "TIMESTAMP",
        datetime(1970, 1, 1, 0, 0, 1, 1000),
    ),
    (
        "local-timestamp-micros",
        {"type": "long", "logicalType": "local-timestamp-micros"},
        1001,
        "TIMESTAMP",
        datetime(1970, 1, 1, 0, 0, 0, 1001),
    ),
    ("uuid", {"type": "string", "logicalType": "uuid"}, UUID, "UUID", uuid.UUID(UUID)),
    (
        "uuid on a fixed",
        {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"},
        uuid.UUID(UUID).bytes,
        "UUID",
        uuid.UUID(UUID),
    ),
    ("array", {"type": "array", "items": "int"}, [1, 2], "INTEGER[]", [1, 2]),
    ("map", {"type": "map", "values": "int"}, {"k": 1}, "MAP(VARCHAR, INTEGER)", {"k": 1}),
    (
        "record",
        record(("x", "int"), ("y", ["null", "string"]), name="S"),
        {"x": 1, "y": None},
        "STRUCT(x INTEGER, y VARCHAR)",
        {"x": 1, "y": None},
    ),
    ("union", ["int", "string"], "x", 'STRUCT("int" INTEGER, string VARCHAR)', {"int": None, "string": "x"}),
    (
        "map with other keys",
        {
            "type": "array",
            "items": {**record(("key", "int"), ("value", "string"), name="M"), "connect.internal.type": "MapEntry"},
        },
        [{"key": 1, "value": "a"}, {"key": 1, "value": "b"}],
        "MAP(INTEGER, VARCHAR)",
        {1: "b"},
    ),
]


@pytest.mark.parametrize(
    ("kind", "value", "duck_type", "expected"), [each[1:] for each in TYPES], ids=[each[0] for each in TYPES]
)
def test_duckdb_reads_the_type_and_the_value(
    kind: Any, value: Any, duck_type: str, expected: Any, tmp_path: Any
) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(parquet(table(*datums(record(("f", kind)), [{"f": value}] * 20))))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(f"SELECT typeof(f), f FROM '{file}' LIMIT 1").fetchall()
    assert found == [(duck_type, expected)]


def test_nanoseconds_keep_their_digits() -> None:
    schema = record(
        ("utc", {"type": "long", "logicalType": "timestamp-nanos"}),
        ("local", {"type": "long", "logicalType": "local-timestamp-nanos"}),
    )
    found = pq.read_table(io.BytesIO(parquet(table(*datums(schema, [{"utc": 1_001, "local": -1}])))))
    assert found.schema.types == [pa.timestamp("ns", "UTC"), pa.timestamp("ns")]
    assert [column.cast(pa.int64()).to_pylist() for column in found.columns] == [[1_001], [-1]]


def test_field_ids_follow_the_order_of_the_schema() -> None:
    schema, _ = datums(
        record(
            ("a", "int"),
            ("s", record(("x", {"type": "array", "items": "int"}), ("y", {"type": "map", "values": "int"}), name="S")),
            ("z", "int"),
        ),
        [],
    )
    found = pq.ParquetFile(io.BytesIO(parquet(table(schema, pa.array([], pa.binary())))))
    ids = re.findall(r"field_id=(\d+) (\w+)", str(found.schema))
    assert [(int(number), name) for number, name in ids] == [
        (1, "a"),
        (2, "s"),
        (3, "x"),
        (4, "element"),
        (5, "y"),
        (6, "key"),
        (7, "value"),
        (8, "z"),
    ]


@pytest.mark.parametrize("min_rows", [0, 1 << 60])
def test_the_last_of_equal_keys_of_a_map_counts(min_rows: int) -> None:
    schema = record(("m", {"type": "map", "values": "int"}))
    one, two = b"\x02k\x02", b"\x02k\x04"
    found = table(datums(schema, [])[0], pa.array([b"\x04" + one + two + b"\x00"], pa.binary()), min_rows=min_rows)
    assert found.to_pylist() == [{"m": [("k", 2)]}]


def _map_of(key: Any, *keys: object, min_rows: int) -> list[Any]:
    """What Parquet contains of a map with these keys, whose values are their positions."""
    entry = {**record(("key", key), ("value", "int"), name="M"), "connect.internal.type": "MapEntry"}
    value = [{"key": each, "value": position} for position, each in enumerate(keys)]
    schema, data = datums(record(("m", {"type": "array", "items": entry})), [{"m": value}])
    found: list[Any] = pq.read_table(io.BytesIO(parquet(table(schema, data, min_rows=min_rows)))).to_pylist()[0]["m"]
    return found


_NAN = float("nan")
_TENTHS = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}


@pytest.mark.parametrize("min_rows", [0, 1 << 60])
@pytest.mark.parametrize(
    ("key", "keys", "expected"),
    [
        pytest.param("double", (_NAN, _NAN), [(_NAN, 1)], id="NaN twice"),
        pytest.param("double", (0.0, -0.0), [(0.0, 0), (-0.0, 1)], id="both zeros"),
        pytest.param(_TENTHS, (b"\x01", b"\x00\x01"), [(Decimal("0.1"), 1)], id="a decimal with different bytes"),
    ],
)
def test_keys_of_a_map_are_equal_if_they_are_in_java(
    key: Any, keys: tuple[object, ...], expected: list[Any], min_rows: int
) -> None:
    assert repr(_map_of(key, *keys, min_rows=min_rows)) == repr(expected)


@pytest.mark.parametrize("min_rows", [0, 1 << 60])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "string", "logicalType": "uuid"}, UUID),
    ],
)
def test_the_text_keys_of_a_map_are_plain_texts(key: Any, value: str, min_rows: int) -> None:
    assert _map_of(key, value, min_rows=min_rows) == [(value, 0)]


@pytest.mark.parametrize("min_rows", [0, 1 << 60])
def test_data_that_is_not_valid_is_an_internal_error(min_rows: int) -> None:
    with pytest.raises(ValueError, match="the value ends within its Avro data"):
        table(datums(record(("f", "string")), [])[0], pa.array([b"\x04k"], pa.binary()), min_rows=min_rows)
