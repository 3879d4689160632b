"""Spark SQL: a view of the session over the files. Spark finds the partitions when the view is created."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from sink_job.api.enums import OutputFormat
from sink_job.ddl.dialects.hive import TYPES as HIVE_TYPES
from sink_job.ddl.dialects.rendering import (
    check_codec,
    directories,
    escaped_text,
    leave_out_tombstones,
    quoted,
    typed_columns,
    unnamed_paths,
)
from sink_job.ddl.table import ColumnType, Kind, Projection, SinkTable, Statement, without_paths

_SOURCES: Final = {OutputFormat.PARQUET: "parquet", OutputFormat.AVRO: "avro", OutputFormat.JSON: "json"}


def _timestamp(kind: ColumnType) -> str | None:
    if kind.precision > 6:
        return None
    return "timestamp" if kind.kind is Kind.TIMESTAMP else "timestamp_ntz"


_TYPES: Final = replace(
    HIVE_TYPES,
    engine="Spark",
    struct_field=lambda name, text: f"{quoted(name, '`')}: {text}",
    timestamp=_timestamp,
    names=None,
)
"""Spark SQL has Hive's types, apart from times; any field of a struct can be quoted."""


def _literal(text: str) -> str:
    """A text in Hadoop's pattern of paths."""
    return re.sub(r"([*?\[\]{}\\^])", r"\\\1", text)


def spark(table: SinkTable) -> Statement:
    """The statement. For a table of a catalog: CREATE TABLE … USING … with the same columns and options."""
    statement = Statement(None)
    check_codec(table, "spark", statement)
    paths = unnamed_paths(table, "spark", statement)
    options = {"path": table.url("s3a"), "pathGlobFilter": f"*{table.extension}"}
    if paths and table.tombstones is not None:  # a directory that is no partition is an error of Spark
        leave_out_tombstones(table, statement)
        options |= {"path": table.url("s3a") + directories(table, _literal), "basePath": table.url("s3a")}
    source = "text" if table.columns is None else _SOURCES[table.output]
    if source == "text":
        columns = [("value", "string")]
        if table.separator != "\n":
            options["lineSep"] = table.separator
    else:
        columns = list(typed_columns(without_paths(table), _TYPES, statement, [each.name for each in paths]))
    if source == "avro":
        statement.notes.append("Avro needs the package org.apache.spark:spark-avro of your Spark's version")
    if table.paths and not paths:
        options["recursiveFileLookup"] = "true"
    for each in paths:
        columns.append((each.name, "int" if each.projection is Projection.INTEGER else "string"))
    shown = ",\n".join(f"  {quoted(name, '`')} {text}" for name, text in columns)
    given = ", ".join(f"{name} {escaped_text(text)}" for name, text in options.items())
    statement.notes.append("New paths are found after the view is created again")
    statement.text = (
        f"CREATE OR REPLACE TEMPORARY VIEW {quoted(table.name, '`')} (\n{shown}\n)\nUSING {source}\nOPTIONS ({given});"
    )
    return statement
