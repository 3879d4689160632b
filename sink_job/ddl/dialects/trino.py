"""Trino with its Hive connector. Partitions come from its partition projection."""

from __future__ import annotations

from typing import Final

from sink_job.api.enums import OutputFormat
from sink_job.ddl.dialects.hive import TEXT_COLUMN, lowest_date
from sink_job.ddl.dialects.rendering import (
    TypeNames,
    check_codec,
    check_lines,
    check_template,
    leave_out_tombstones,
    quoted,
    sql_text,
    typed_columns,
)
from sink_job.ddl.table import ColumnType, Kind, PathColumn, Projection, SinkTable, Statement, without_paths

_FORMATS: Final = {OutputFormat.PARQUET: "PARQUET", OutputFormat.AVRO: "AVRO", OutputFormat.JSON: "JSON"}
_STEPS: Final = {"DAYS": "DAYS", "HOURS": "HOURS", "MINUTES": "MINUTES", "SECONDS": "SECONDS"}


def _timestamp(kind: ColumnType) -> str | None:
    return f"timestamp({kind.precision})"


_TYPES: Final = TypeNames(
    engine="Trino's Hive connector",
    scalars={
        Kind.BOOLEAN: "boolean",
        Kind.INT: "integer",
        Kind.LONG: "bigint",
        Kind.FLOAT: "real",
        Kind.DOUBLE: "double",
        Kind.STRING: "varchar",
        Kind.JSON: "varchar",
        Kind.BYTES: "varbinary",
        Kind.DATE: "date",
    },
    decimal="decimal({},{})",
    array="array({})",
    map="map({},{})",
    struct="row({})",
    struct_field=lambda name, text: f"{quoted(name)} {text}",
    timestamp=_timestamp,
)


def trino(table: SinkTable) -> Statement:
    """The statement, for the current catalog and schema."""
    statement = Statement(None)
    check_codec(table, "trino", statement)
    check_lines(table, "trino", statement)
    leave_out_tombstones(table, statement)
    if table.paths:
        check_template(table, statement)
    if table.columns is None:
        columns = [(TEXT_COLUMN, "varchar")]
    else:
        names = [each.name for each in table.paths]
        columns = list(typed_columns(without_paths(table), _TYPES, statement, names))
    if table.output is OutputFormat.AVRO:
        statement.notes.append("avro_schema_literal is not set: Trino reads fields by their names")
    lines = [f"  {quoted(name)} {text}" for name, text in columns]
    lines += [_projected(each, statement) for each in table.paths]
    properties = [f"external_location = {sql_text(table.url())}"]
    if table.columns is None:
        properties += ["format = 'TEXTFILE'", "textfile_field_separator = U&'\\0001'"]
    else:
        properties.append(f"format = {sql_text(_FORMATS[table.output])}")
    if table.paths:
        properties.append(f"partitioned_by = ARRAY[{', '.join(sql_text(each.name.lower()) for each in table.paths)}]")
        properties.append("partition_projection_enabled = true")
        template = "/".join(each.template.format(f"${{{each.name.lower()}}}") for each in table.paths)
        properties.append(f"partition_projection_location_template = {sql_text(table.url() + template)}")
        statement.notes.append("Narrow the ranges of the projection to what the bucket has")
    shown = ",\n".join(f"  {each}" for each in properties)
    statement.text = f"CREATE TABLE {quoted(table.name)} (\n" + ",\n".join(lines) + f"\n)\nWITH (\n{shown}\n);"
    return statement


def _projected(each: PathColumn, statement: Statement) -> str:
    name = quoted(each.name)
    if each.projection is Projection.INTEGER:
        digits = f", partition_projection_digits = {each.digits}" if each.digits else ""
        return (
            f"  {name} integer WITH (partition_projection_type = 'INTEGER', "
            f"partition_projection_range = ARRAY['{each.lowest}', '{each.highest}']{digits})"
        )
    if each.projection is Projection.DATE and each.unit in _STEPS:
        return (
            f"  {name} varchar WITH (partition_projection_type = 'DATE', partition_projection_format = "
            f"{sql_text(each.pattern)}, partition_projection_range = ARRAY[{sql_text(lowest_date(each))}, 'NOW'], "
            f"partition_projection_interval = 1, partition_projection_interval_unit = '{_STEPS[each.unit]}')"
        )
    statement.notes.append(f"Each query needs a value of {each.name} in its WHERE")
    return f"  {name} varchar WITH (partition_projection_type = 'INJECTED')"
