"""ClickHouse: a view over its table function s3."""

from __future__ import annotations

from typing import Final

from sink_job.api.enums import OutputFormat
from sink_job.ddl.dialects.rendering import (
    TypeNames,
    check_codec,
    check_lines,
    directories,
    escaped_name,
    escaped_text,
    leave_out_tombstones,
    quoted,
    typed_columns,
    unnamed_paths,
)
from sink_job.ddl.table import ColumnType, Kind, SinkTable, Statement, without_paths

_FORMATS: Final = {OutputFormat.PARQUET: "Parquet", OutputFormat.AVRO: "Avro", OutputFormat.JSON: "JSONEachRow"}


def _timestamp(kind: ColumnType) -> str | None:
    return f"DateTime64({kind.precision}, 'UTC')" if kind.kind is Kind.TIMESTAMP else f"DateTime64({kind.precision})"


class ClickHouseTypes(TypeNames):
    """Scalars can be null, but as keys of a map. Arrays, maps and structs cannot."""

    def text(self, kind: ColumnType) -> str:
        """See `TypeNames.text`."""
        if kind.kind is Kind.MAP:
            return f"Map({super().text(kind.keys)}, {self.text(kind.items)})"
        found = super().text(kind)
        return found if kind.kind in (Kind.ARRAY, Kind.STRUCT) else f"Nullable({found})"


_SCALARS: Final = {
    Kind.BOOLEAN: "Bool",
    Kind.INT: "Int32",
    Kind.LONG: "Int64",
    Kind.FLOAT: "Float32",
    Kind.DOUBLE: "Float64",
    Kind.STRING: "String",
    Kind.JSON: "String",
    Kind.BYTES: "String",
    Kind.DATE: "Date32",
}

_TYPES: Final = ClickHouseTypes(
    engine="ClickHouse",
    scalars=_SCALARS,
    decimal="Decimal({}, {})",
    array="Array({})",
    map="Map({}, {})",
    struct="Tuple({})",
    struct_field=lambda name, text: f"{escaped_name(name)} {text}",
    timestamp=_timestamp,
)


def clickhouse(table: SinkTable) -> Statement:
    """The statement. The columns of the path are those of use_hive_partitioning."""
    statement = Statement(None)
    check_codec(table, "clickhouse", statement)
    check_lines(table, "clickhouse", statement)
    paths = unnamed_paths(table, "clickhouse", statement)
    if table.columns is None:
        form = "LineAsString"
        columns = [("line", "String")]
    else:
        form = _FORMATS[table.output]
        names = [each.name for each in paths]
        columns = list(typed_columns(without_paths(table), _TYPES, statement, names))
    shown = ", ".join(f"{escaped_name(name)} {text}" for name, text in columns)
    base = table.endpoint or f"https://s3.{table.region or 'us-east-1'}.amazonaws.com"
    below = "**"
    if paths and table.tombstones is not None:
        leave_out_tombstones(table, statement)
        below = directories(table, str) + "*"
    pattern = f"{base.rstrip('/')}/{table.bucket}/{table.prefix}{below}{table.extension}"
    if any(each in f"{table.prefix}{table.extension}" for each in "*?{}"):
        statement.gaps.append("the prefix has characters that ClickHouse reads as a pattern")
    select = ", ".join(["*", *(escaped_name(each.name) for each in paths)])
    settings = f"SETTINGS use_hive_partitioning = {int(bool(paths))}"
    if form == "JSONEachRow":
        settings += ", input_format_skip_unknown_fields = 1, input_format_json_read_objects_as_strings = 1"
    statement.notes.append("Access: a named collection, or access keys as the second and third argument of s3()")
    source = f"s3({escaped_text(pattern)}, {escaped_text(form)}, {escaped_text(shown)})"
    statement.text = f"CREATE VIEW {quoted(table.name, '`')} AS\nSELECT {select} FROM {source}\n{settings};"
    return statement
