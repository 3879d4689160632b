"""DuckDB: a view over the files. Each query lists the bucket."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sink_job.api.enums import OutputFormat
from sink_job.ddl.dialects.rendering import (
    TypeNames,
    check_lines,
    directories,
    leave_out_tombstones,
    quoted,
    sql_text,
    typed_columns,
    unnamed_paths,
)
from sink_job.ddl.table import ColumnType, Kind, PathColumn, Projection, SinkTable, Statement, without_paths

_GLOB: Final = re.compile(r"([*?\[\]])")


def _timestamp(kind: ColumnType) -> str | None:
    if kind.kind is Kind.TIMESTAMP:
        return "TIMESTAMPTZ"
    return "TIMESTAMP_NS" if kind.precision > 6 else "TIMESTAMP"


_TYPES: Final = TypeNames(
    engine="DuckDB",
    scalars={
        Kind.BOOLEAN: "BOOLEAN",
        Kind.INT: "INTEGER",
        Kind.LONG: "BIGINT",
        Kind.FLOAT: "FLOAT",
        Kind.DOUBLE: "DOUBLE",
        Kind.STRING: "VARCHAR",
        Kind.JSON: "JSON",
        Kind.BYTES: "BLOB",
        Kind.UUID: "UUID",
        Kind.DATE: "DATE",
        Kind.TIME: "TIME",
    },
    decimal="DECIMAL({},{})",
    array="{}[]",
    map="MAP({}, {})",
    struct="STRUCT({})",
    struct_field=lambda name, text: f"{quoted(name)} {text}",
    timestamp=_timestamp,
)


def duckdb(table: SinkTable) -> Statement:
    """The statement. Types of Parquet and Avro are those of the files."""
    statement = Statement(None)
    paths = unnamed_paths(table, "duckdb", statement)
    below = "**/"
    if paths and table.tombstones is not None:  # a directory that is no partition is an error of DuckDB
        leave_out_tombstones(table, statement)
        below = directories(table, _literal)
    pattern = sql_text(f"{_literal(table.url())}{below}*{_literal(table.extension)}")
    options = _partition_options(table, paths)
    match table.output:
        case OutputFormat.PARQUET:
            source = f"read_parquet({pattern}, union_by_name = true{options})"
        case OutputFormat.AVRO:
            statement.notes.append("Avro needs the extension: INSTALL avro; LOAD avro;")
            source = f"read_avro({pattern}, union_by_name = true)"
            if paths:
                statement.gaps.append("read_avro has no columns of the path")
        case _ if table.columns is None and table.output is OutputFormat.JSON:
            source = f"read_json_objects({pattern}, format = 'newline_delimited'{options})"
        case OutputFormat.JSON:
            fields = dict(typed_columns(without_paths(table), _TYPES, statement, [each.name for each in paths]))
            shown = ", ".join(f"{quoted(name)}: {sql_text(text)}" for name, text in fields.items())
            source = f"read_json({pattern}, format = 'newline_delimited', columns = {{{shown}}}{options})"
        case _:
            check_lines(table, "duckdb", statement)
            source = (
                f"read_csv({pattern}, columns = {{'line': 'VARCHAR'}}, delim = chr(1), quote = '', escape = '', "
                f"header = false, auto_detect = false{options})"
            )
    _add_access(table, statement)
    statement.text = f"CREATE OR REPLACE VIEW {quoted(table.name)} AS\nSELECT * FROM {source};"
    return statement


def _literal(text: str) -> str:
    """A text in a pattern of files."""
    return _GLOB.sub(r"[\1]", text)


def _partition_options(table: SinkTable, paths: object) -> str:
    if not paths:
        return ", hive_partitioning = false"
    types: Mapping[str, str] = {each.name: _path_type(each) for each in table.paths}
    shown = ", ".join(f"{quoted(name)}: {text}" for name, text in types.items())
    return f", hive_partitioning = true, hive_types = {{{shown}}}"


def _path_type(each: PathColumn) -> str:
    return "INTEGER" if each.projection is Projection.INTEGER else "VARCHAR"


def _add_access(table: SinkTable, statement: Statement) -> None:
    statement.notes.append("Access: CREATE SECRET (TYPE s3, PROVIDER credential_chain);")
    if table.endpoint is not None:
        host = table.endpoint.partition("://")[2]
        ssl = str(table.endpoint.startswith("https")).lower()
        statement.notes.append(f"The store: add ENDPOINT '{host}', URL_STYLE 'path', USE_SSL {ssl} to the secret")
