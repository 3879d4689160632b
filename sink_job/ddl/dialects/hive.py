"""Hive, and Athena with its partition projection. Both read `LOCATION` with all objects below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from sink_job.api.enums import OutputFormat
from sink_job.ddl.dialects.rendering import (
    PLAIN_NAME,
    TypeNames,
    check_codec,
    check_lines,
    check_template,
    escaped_text,
    leave_out_tombstones,
    quoted,
    sql_text,
    typed_columns,
    unnamed_paths,
)
from sink_job.ddl.table import ColumnType, Kind, PathColumn, Projection, SinkTable, Statement, without_paths

INPUT: Final = {
    OutputFormat.PARQUET: "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    OutputFormat.AVRO: "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
    OutputFormat.JSON: "org.apache.hadoop.mapred.TextInputFormat",
    OutputFormat.BYTES: "org.apache.hadoop.mapred.TextInputFormat",
}
WRITE_ONLY: Final = {
    OutputFormat.PARQUET: "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    OutputFormat.AVRO: "org.apache.hadoop.hive.ql.io.avro.AvroContainerOutputFormat",
    OutputFormat.JSON: "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    OutputFormat.BYTES: "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
}
SERDE: Final = {
    OutputFormat.PARQUET: "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    OutputFormat.AVRO: "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    OutputFormat.JSON: "org.openx.data.jsonserde.JsonSerDe",
    OutputFormat.BYTES: "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
}
"""The classes of Athena, which are Hive's but for JSON."""
HIVE_JSON: Final = "org.apache.hadoop.hive.serde2.JsonSerDe"
TEXT_COLUMN: Final = "line"


def _timestamp(kind: ColumnType) -> str | None:
    return "timestamp"


TYPES: Final = TypeNames(
    engine="Hive",
    scalars={
        Kind.BOOLEAN: "boolean",
        Kind.INT: "int",
        Kind.LONG: "bigint",
        Kind.FLOAT: "float",
        Kind.DOUBLE: "double",
        Kind.STRING: "string",
        Kind.JSON: "string",
        Kind.BYTES: "binary",
        Kind.DATE: "date",
    },
    decimal="decimal({},{})",
    array="array<{}>",
    map="map<{},{}>",
    struct="struct<{}>",
    struct_field=lambda name, text: f"{name}:{text}",
    timestamp=_timestamp,
    names=PLAIN_NAME,
)


def hive(table: SinkTable) -> Statement:
    """The statement of Hive. It knows partitions from its metastore alone."""
    statement = Statement(None)
    check_codec(table, "hive", statement)
    check_lines(table, "hive", statement)
    paths = [each for each in unnamed_paths(table, "hive", statement) if _is_column(each, statement)]
    columns = hive_columns(table, statement, paths)
    if paths:
        leave_out_tombstones(table, statement)
        statement.notes.append(
            f"After new paths: ALTER TABLE {quoted(table.name, '`')} ADD IF NOT EXISTS PARTITION (…), or MSCK REPAIR "
            f"TABLE {quoted(table.name, '`')}, which lists the bucket"
        )
    elif table.paths:
        statement.notes.append("Set mapreduce.input.fileinputformat.input.dir.recursive=true to read all paths")
    lines = [
        f"CREATE EXTERNAL TABLE IF NOT EXISTS {quoted(table.name, '`')} (",
        ",\n".join(f"  {quoted(name, '`')} {text}" for name, text in columns),
        ")",
    ]
    if paths:
        shown = ", ".join(f"{quoted(each.name, '`')} string" for each in paths)
        lines.append(f"PARTITIONED BY ({shown})")
    lines += _storage(table, HIVE_JSON)
    lines.append(f"LOCATION {escaped_text(table.url('s3a'))}")
    if literal := avro_literal(table, paths):
        lines.append(f"TBLPROPERTIES ('avro.schema.literal'={escaped_text(literal)})")
    statement.text = "\n".join(lines) + ";"
    return statement


def athena(table: SinkTable) -> Statement:
    """The statement of Athena, with partition projection: it needs no listing of partitions."""
    statement = Statement(None)
    check_codec(table, "athena", statement)
    check_lines(table, "athena", statement)
    paths = [each for each in table.paths if _is_column(each, statement)]
    columns = hive_columns(table, statement, paths)
    lines = [
        f"CREATE EXTERNAL TABLE IF NOT EXISTS {quoted(table.name, '`')} (",
        ",\n".join(f"  {quoted(name, '`')} {text}" for name, text in columns),
        ")",
    ]
    if paths:
        shown = ", ".join(f"{quoted(each.name, '`')} {partition_type(each)}" for each in paths)
        lines.append(f"PARTITIONED BY ({shown})")
    lines += _storage(table, SERDE[OutputFormat.JSON], avro_literal(table, paths))
    lines.append(f"LOCATION {sql_text(table.url())}")
    if properties := projection(table, paths, statement):
        leave_out_tombstones(table, statement)
        check_template(table, statement)
        shown = ",\n".join(f"  {sql_text(name)} = {sql_text(text)}" for name, text in properties.items())
        lines.append(f"TBLPROPERTIES (\n{shown}\n)")
    statement.text = "\n".join(lines) + ";"
    return statement


def hive_columns(table: SinkTable, statement: Statement, paths: Sequence[PathColumn]) -> list[tuple[str, str]]:
    """The columns with their types: of records, without those of the path; or one text."""
    if table.columns is None:
        return [(TEXT_COLUMN, "string")]
    if len(without_paths(table)) < len(table.columns):
        statement.notes.append(
            "A column of the path replaces the field of the record with its name: its values are texts"
        )
    return list(typed_columns(without_paths(table), TYPES, statement, [each.name for each in paths]))


def _is_column(each: PathColumn, statement: Statement) -> bool:
    if PLAIN_NAME.fullmatch(each.name):
        return True
    statement.gaps.append(
        f"the path element {each.template} is no column: its name has other characters than a-z, 0-9, _"
    )
    return False


def _storage(table: SinkTable, json_serde: str, literal: str | None = None) -> Iterator[str]:
    match table.output:
        case OutputFormat.PARQUET:
            yield "STORED AS PARQUET"
        case OutputFormat.AVRO:
            yield f"ROW FORMAT SERDE '{SERDE[OutputFormat.AVRO]}'"
            if literal is not None:
                yield f"WITH SERDEPROPERTIES ('avro.schema.literal'={sql_text(literal)})"
            yield f"STORED AS INPUTFORMAT '{INPUT[table.output]}'"
            yield f"OUTPUTFORMAT '{WRITE_ONLY[table.output]}'"
        case _ if table.columns is None:
            yield "ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\001'"
            yield "STORED AS TEXTFILE"
        case _:
            yield f"ROW FORMAT SERDE '{json_serde}'"
            yield "STORED AS TEXTFILE"


def avro_literal(table: SinkTable, paths: Sequence[PathColumn]) -> str | None:
    """The Avro schema without the fields of the path; None for another output."""
    if table.avro is None:
        return None
    schema = msgspec.json.decode(table.avro)
    if isinstance(schema, dict) and "fields" in schema:
        names = {each.name.lower() for each in paths}
        schema["fields"] = [each for each in schema["fields"] if each["name"].lower() not in names]
    return msgspec.json.encode(schema).decode()


def partition_type(each: PathColumn) -> str:
    """The type of a path column with projection."""
    return "int" if each.projection is Projection.INTEGER else "string"


def projection(table: SinkTable, paths: Sequence[PathColumn], statement: Statement) -> Mapping[str, str]:
    """The table properties of Athena's partition projection. Without all elements of the path there are none."""
    if not paths:
        return {}
    if len(paths) < len(table.paths):
        statement.gaps.append("partition projection needs all elements of the path")
        return {}
    found = {"projection.enabled": "true"}
    for each in paths:
        head = f"projection.{each.name}"
        found[f"{head}.type"] = each.projection
        if each.projection is Projection.INTEGER:
            found[f"{head}.range"] = f"{each.lowest},{each.highest}"
            found |= {f"{head}.digits": str(each.digits)} if each.digits else {}
        elif each.projection is Projection.DATE:
            found |= {
                f"{head}.format": each.pattern,
                f"{head}.range": f"{lowest_date(each)},NOW",
                f"{head}.interval": "1",
                f"{head}.interval.unit": each.unit,
            }
    template = "/".join(each.template.format(f"${{{each.name}}}") for each in paths)
    found["storage.location.template"] = f"{table.url()}{template}"
    injected = [each.name for each in paths if each.projection is Projection.INJECTED]
    if injected:
        statement.notes.append(f"Each query needs values of {', '.join(injected)} in its WHERE: = or IN")
    if any(each.projection is not Projection.INJECTED for each in paths):
        statement.notes.append(
            "Narrow the ranges of projection.* to what the bucket has: a query without a WHERE reads all"
        )
    return found


def lowest_date(each: PathColumn) -> str:
    """The first value of a date: the year 2000 in its pattern."""
    text = each.pattern.replace("yyyy", "2000").replace("MM", "01").replace("dd", "01")
    for letters in ("HH", "mm", "ss"):
        text = text.replace(letters, "00")
    return text.replace("'", "")
