"""The statement of each dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from sink_job.ddl.dialects.clickhouse import clickhouse
from sink_job.ddl.dialects.duckdb import duckdb
from sink_job.ddl.dialects.glue import glue
from sink_job.ddl.dialects.hive import athena, hive
from sink_job.ddl.dialects.rendering import commented
from sink_job.ddl.dialects.spark import spark
from sink_job.ddl.dialects.trino import trino
from sink_job.ddl.table import SinkTable, Statement


class Dialect(StrEnum):
    """The query engines."""

    ATHENA = "athena"
    GLUE = "glue"
    HIVE = "hive"
    TRINO = "trino"
    SPARK = "spark"
    DUCKDB = "duckdb"
    CLICKHOUSE = "clickhouse"


_STATEMENTS: Final[Mapping[Dialect, Callable[[SinkTable], Statement]]] = {
    Dialect.ATHENA: athena,
    Dialect.GLUE: glue,
    Dialect.HIVE: hive,
    Dialect.TRINO: trino,
    Dialect.SPARK: spark,
    Dialect.DUCKDB: duckdb,
    Dialect.CLICKHOUSE: clickhouse,
}


def statement_of(table: SinkTable, dialect: Dialect) -> tuple[str, bool]:
    """What to print for a table, and whether the engine has all of it."""
    statement = _STATEMENTS[dialect](table)
    return commented(statement, table), not (statement.gaps or table.gaps)
