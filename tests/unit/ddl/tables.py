"""Tables for the tests of dialects."""

from __future__ import annotations

from typing import Any

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.ddl.table import ColumnType, Kind, PathColumn, Projection, SinkTable, TableColumn

S, I = ColumnType(Kind.STRING), ColumnType(Kind.INT)  # noqa: E741

EVERY_TYPE = tuple(
    TableColumn(name, kind)
    for name, kind in {
        "boolean": ColumnType(Kind.BOOLEAN),
        "int": I,
        "long": ColumnType(Kind.LONG),
        "float": ColumnType(Kind.FLOAT),
        "double": ColumnType(Kind.DOUBLE),
        "string": S,
        "bytes": ColumnType(Kind.BYTES),
        "json": ColumnType(Kind.JSON),
        "decimal": ColumnType(Kind.DECIMAL, 10, 2),
        "date": ColumnType(Kind.DATE),
        "timestamp": ColumnType(Kind.TIMESTAMP, 6),
        "local": ColumnType(Kind.LOCAL_TIMESTAMP, 6),
        "array": ColumnType(Kind.ARRAY, element=I),
        "map": ColumnType(Kind.MAP, key=S, element=ColumnType(Kind.LONG)),
        "struct": ColumnType(Kind.STRUCT, fields=(TableColumn("a", I), TableColumn("b", S))),
    }.items()
)

HOSTILE = (
    TableColumn("a'b", S),
    TableColumn('a"b', S),
    TableColumn("a`b", S),
    TableColumn("a;-- b", S),
    TableColumn("Select", S),
    TableColumn("SELECT", S),
)
"""Names with quotes and comments, and two that differ in their case."""

HOURLY = (
    PathColumn("dt", Projection.DATE, "dt={}", pattern="yyyy-MM-dd", unit="DAYS"),
    PathColumn("hour", Projection.INTEGER, "hour={}", lowest=0, highest=23, digits=2),
    PathColumn("carrier", Projection.INJECTED, "carrier={}"),
)
UNNAMED = (PathColumn("year", Projection.INTEGER, "{}", is_named=False, lowest=2000, highest=2100, digits=4),)


def table(**given: Any) -> SinkTable:
    """A table of Parquet objects."""
    found: dict[str, Any] = {
        "name": "flights",
        "topic": "flights",
        "bucket": "lake",
        "prefix": "topics/flights/",
        "extension": ".snappy.parquet",
        "output": OutputFormat.PARQUET,
        "codec": CompressionCodec.SNAPPY,
        "columns": (TableColumn("n", I),),
        **given,
    }
    return SinkTable(**found)


def json_table(**given: Any) -> SinkTable:
    """A table of JSON lines."""
    return table(**{"output": OutputFormat.JSON, "codec": CompressionCodec.NONE, "extension": ".json", **given})


def text_table(**given: Any) -> SinkTable:
    """A table of values without a schema."""
    return json_table(columns=None, **given)
