"""A column of each type of docs/schemas.md: Avro values, what every reader must find, and how it must call the type."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pandas as pd

from tests.unit.avro.avro_data import record

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ONE = uuid.UUID("12345678-1234-5678-1234-567812345678")
_TWO = uuid.UUID("ffffffff-0000-0000-0000-000000000001")
MICROS, MILLIS = timedelta(microseconds=1), timedelta(milliseconds=1)
LONGS = (-(2**63), 2**63 - 1)
TIMES = (-1, 1_700_000_000_123)


@dataclass(frozen=True)
class Case:
    """A column. `values` are of the Avro type `avro` without its logical type, `read` what a reader must find.

    The types are those of DuckDB, polars, Spark and pyarrow. `footer` is the type in the footer as parquet-java prints
    it, where `_` is the name of the column.
    """

    name: str
    avro: Any
    values: tuple[Any, ...]
    read: tuple[Any, ...]
    duckdb: str
    polars: str
    spark: str
    arrow: str
    footer: str
    spark_infers: bool = True
    """Whether Spark finds the type without a schema. Otherwise it reads `values` with the type `spark`."""
    in_avro: tuple[Any, ...] | None = None
    """What fastavro finds instead of `read`."""


def plain(name: str, avro: Any, values: tuple[Any, ...], types: tuple[str, str, str, str], footer: str) -> Case:
    """A case whose values are read as they are; `types` are those of the four readers."""
    return Case(name, avro, values, values, *types, footer=footer)


def logical(kind: Any, name: str, **more: Any) -> dict[str, Any]:
    return {**(kind if isinstance(kind, dict) else {"type": kind}), "logicalType": name, **more}


def fixed(name: str, size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def at(values: tuple[int, ...], unit: timedelta) -> tuple[datetime, ...]:
    """Times in UTC, from units since the epoch."""
    return tuple(_EPOCH + each * unit for each in values)


def local(values: tuple[int, ...], unit: timedelta) -> tuple[datetime, ...]:
    return tuple(each.replace(tzinfo=None) for each in at(values, unit))


def of_day(values: tuple[int, ...], unit: timedelta) -> tuple[time, ...]:
    return tuple(each.time() for each in at(values, unit))


def nanos(tz: str | None) -> tuple[Any, ...]:
    return tuple(pd.Timestamp(each, unit="ns", tz=tz) for each in _NANOS)


_UNITS: Final = {"us": "MICROS", "ns": "NANOS"}
_NANOS: Final = (-1, 1_700_000_000_123_456_789)
_SCALARS = [
    plain("boolean", "boolean", (True, False), ("BOOLEAN", "Boolean", "boolean", "bool"), "boolean _"),
    plain("int", "int", (-(2**31), 2**31 - 1), ("INTEGER", "Int32", "int", "int32"), "int32 _"),
    plain(
        "int8", {"type": "int", "connect.type": "int8"}, (-128, 127), ("INTEGER", "Int32", "int", "int32"), "int32 _"
    ),
    plain(
        "int16",
        {"type": "int", "connect.type": "int16"},
        (-32_768, 32_767),
        ("INTEGER", "Int32", "int", "int32"),
        "int32 _",
    ),
    plain("long", "long", LONGS, ("BIGINT", "Int64", "bigint", "int64"), "int64 _"),
    plain("float", "float", (0.5, float("-inf")), ("FLOAT", "Float32", "float", "float"), "float _"),
    plain("double", "double", (-0.0, 1e300), ("DOUBLE", "Float64", "double", "double"), "double _"),
    plain("not_a_number", "double", (float("nan"), 1.0), ("DOUBLE", "Float64", "double", "double"), "double _"),
    plain("string", "string", ("", "é\0😀"), ("VARCHAR", "String", "string", "string"), "binary _ (STRING)"),
    plain(
        "enum",
        {"type": "enum", "name": "E", "symbols": ["Z", "A"]},
        ("A", "Z"),
        ("VARCHAR", "String", "string", "string"),
        "binary _ (STRING)",
    ),
    plain("bytes", "bytes", (b"", b"\0\xff"), ("BLOB", "Binary", "binary", "binary"), "binary _"),
    plain(
        "fixed",
        fixed("F", 2),
        (b"\0\0", b"\0\xff"),
        ("BLOB", "Binary", "binary", "fixed_size_binary[2]"),
        "fixed_len_byte_array(2) _",
    ),
]
"""Types without a logical type."""


def _of_unscaled(number: int, scale: int) -> Decimal:
    """Exactly, whatever the precision of the decimal context."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _decimal(name: str, avro: Any, values: tuple[bytes, ...], digits: tuple[int, int], size: int) -> Case:
    """A decimal of this precision and scale, in `size` bytes."""
    precision, scale = digits
    read = tuple(_of_unscaled(int.from_bytes(each, "big", signed=True), scale) for each in values)
    arguments = f"({precision},{scale})"
    return Case(
        name,
        avro,
        values,
        read,
        duckdb=f"DECIMAL{arguments}",
        polars=f"Decimal(precision={precision}, scale={scale})",
        spark=f"decimal{arguments}",
        arrow=f"decimal128({precision}, {scale})",
        footer=f"fixed_len_byte_array({size}) _ (DECIMAL{arguments})",
    )


_LARGEST = (10**38 - 1).to_bytes(16, "big", signed=True)
_DECIMALS = [
    _decimal("decimal", logical("bytes", "decimal", precision=10, scale=2), (b"\xff\x38", b"\x01"), (10, 2), 5),
    _decimal("decimal_38", logical("bytes", "decimal", precision=38, scale=0), (_LARGEST, b"\xff"), (38, 0), 16),
    _decimal("decimal_64", logical("bytes", "decimal", precision=64, scale=2), (b"\x01", b"\0\0\x02"), (38, 2), 16),
    _decimal(
        "decimal_fixed",
        logical(fixed("D", 3), "decimal", precision=5, scale=1),
        (b"\xff\xff\xff", b"\0\0\x01"),
        (5, 1),
        3,
    ),
]


def _time(unit: str, kind: str, values: tuple[int, ...], step: timedelta) -> Case:
    """A time of day. Spark 4.2 does not infer the type."""
    return Case(
        f"time_{unit}",
        logical(kind, f"time-{unit}"),
        values,
        of_day(values, step),
        duckdb="TIME",
        polars="Time",
        spark="bigint",
        arrow="time64[us]",
        footer="int64 _ (TIME(MICROS,false))",
        spark_infers=False,
    )


def _timestamp(unit: str, read: Callable[[str | None], tuple[Any, ...]], *, is_local: bool) -> Case:
    """A timestamp. Spark 4.2 does not infer those in ns."""
    short, values = ("ns", _NANOS) if unit == "nanos" else ("us", TIMES)
    duck = "TIMESTAMP" if is_local else "TIMESTAMP WITH TIME ZONE"
    spark = "timestamp_ntz" if is_local else "timestamp"
    if unit == "nanos":
        duck, spark = "TIMESTAMP_NS" if is_local else "TIMESTAMPTZ_NS", "bigint"
    zone = "None" if is_local else "'UTC'"
    name = f"timestamp-{unit}"
    return Case(
        f"{'local_' if is_local else ''}timestamp_{unit}",
        logical("long", f"local-{name}" if is_local else name),
        values,
        read(None if is_local else "UTC"),
        duckdb=duck,
        polars=f"Datetime(time_unit='{short}', time_zone={zone})",
        spark=spark,
        arrow=f"timestamp[{short}]" if is_local else f"timestamp[{short}, tz=UTC]",
        footer=f"int64 _ (TIMESTAMP({_UNITS[short]},{'false' if is_local else 'true'}))",
        spark_infers=unit != "nanos",
        in_avro=values if unit == "nanos" else None,
    )


def _uuid(name: str, avro: Any, values: tuple[Any, ...]) -> Case:
    """A UUID, whose bytes polars and Spark find. Spark 4.2 does not infer the type."""
    return Case(
        name,
        avro,
        values,
        (_ONE, _TWO),
        duckdb="UUID",
        polars="Binary",
        spark="binary",
        arrow="extension<arrow.uuid>",
        footer="fixed_len_byte_array(16) _ (UUID)",
        spark_infers=False,
    )


_LOGICAL = [
    Case(
        "date",
        logical("int", "date"),
        (-1, 20_000),
        (date(1969, 12, 31), date(2024, 10, 4)),
        duckdb="DATE",
        polars="Date",
        spark="date",
        arrow="date32[day]",
        footer="int32 _ (DATE)",
    ),
    _time("millis", "int", (0, 86_399_999), MILLIS),
    _time("micros", "long", (1, 86_399_999_999), MICROS),
    *(
        _timestamp(unit, read, is_local=is_local)
        for is_local in (False, True)
        for unit, read in (
            ("millis", lambda tz: at(TIMES, MILLIS) if tz else local(TIMES, MILLIS)),
            ("micros", lambda tz: at(TIMES, MICROS) if tz else local(TIMES, MICROS)),
            ("nanos", nanos),
        )
    ),
    _uuid("uuid", logical("string", "uuid"), (str(_ONE), str(_TWO).upper())),
    _uuid("uuid_fixed", logical(fixed("U", 16), "uuid"), (_ONE.bytes, _TWO.bytes)),
]
_INNER = record(("x", "int"), ("y", ["null", logical("long", "timestamp-micros")]), name="S")
_ENTRY = {**record(("key", "int"), ("value", "string"), name="M"), "connect.internal.type": "MapEntry"}
_NESTED = [
    plain("nullable", ["null", "int"], (None, 7), ("INTEGER", "Int32", "int", "int32"), "optional int32 _"),
    plain(
        "array",
        {"type": "array", "items": ["null", "int"]},
        ([], [1, None]),
        ("INTEGER[]", "List(Int32)", "array<int>", "list<element: int32>"),
        "group _ (LIST) { repeated group list { optional int32 element; } }",
    ),
    Case(
        "map",
        {"type": "map", "values": "int"},
        ({}, {"k": 1, "": 2}),
        ([], [("k", 1), ("", 2)]),
        duckdb="MAP(VARCHAR, INTEGER)",
        polars="Map(String, Int32)",
        spark="map<string,int>",
        arrow="map<string, int32 ('map')>",
        footer="group _ (MAP) { repeated group key_value { required binary key (STRING); required int32 value; } }",
        in_avro=({}, {"k": 1, "": 2}),
    ),
    Case(
        "map_of_numbers",
        {"type": "array", "items": _ENTRY},
        ([], [{"key": -1, "value": "a"}]),
        ([], [(-1, "a")]),
        duckdb="MAP(INTEGER, VARCHAR)",
        polars="Map(Int32, String)",
        spark="map<int,string>",
        arrow="map<int32, string ('map_of_numbers')>",
        footer="group _ (MAP) { repeated group key_value { required int32 key; required binary value (STRING); } }",
        in_avro=([], [{"key": -1, "value": "a"}]),
    ),
    Case(
        "record",
        _INNER,
        ({"x": 1, "y": None}, {"x": 2, "y": 5}),
        ({"x": 1, "y": None}, {"x": 2, "y": at((5,), MICROS)[0]}),
        duckdb="STRUCT(x INTEGER, y TIMESTAMP WITH TIME ZONE)",
        polars="Struct({'x': Int32, 'y': Datetime(time_unit='us', time_zone='UTC')})",
        spark="struct<x:int,y:timestamp>",
        arrow="struct<x: int32 not null, y: timestamp[us, tz=UTC]>",
        footer="group _ { required int32 x; optional int64 y (TIMESTAMP(MICROS,true)); }",
    ),
    Case(
        "union",
        ["int", "string"],
        (3, "x"),
        ({"int": 3, "string": None}, {"int": None, "string": "x"}),
        duckdb='STRUCT("int" INTEGER, string VARCHAR)',
        polars="Struct({'int': Int32, 'string': String})",
        spark="struct<int:int,string:string>",
        arrow="struct<int: int32, string: string>",
        footer="group _ { optional int32 int; optional binary string (STRING); }",
        in_avro=(3, "x"),
    ),
]

CASES: Final = [*_SCALARS, *_DECIMALS, *_LOGICAL, *_NESTED]
"""All types of Avro values."""
