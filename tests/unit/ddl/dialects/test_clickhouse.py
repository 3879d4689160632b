"""The statements of ClickHouse, which sqlglot parses. They were not run."""

from __future__ import annotations

import pytest
import sqlglot

from sink_job.ddl.dialects.clickhouse import clickhouse
from sink_job.ddl.table import SinkTable, TableColumn
from tests.unit.ddl.tables import EVERY_TYPE, HOSTILE, HOURLY, UNNAMED, S, json_table, table, text_table


@pytest.mark.parametrize(
    "given",
    [
        table(),
        table(columns=EVERY_TYPE, paths=HOURLY),
        table(columns=HOSTILE),
        json_table(columns=EVERY_TYPE),
        text_table(),
    ],
)
def test_a_parser_accepts_the_statement(given: SinkTable) -> None:
    (parsed,) = sqlglot.parse(clickhouse(given).text or "", dialect="clickhouse")
    assert parsed is not None
    assert parsed.key == "create"


def test_scalars_can_be_null_but_as_keys() -> None:
    text = clickhouse(table(columns=EVERY_TYPE)).text or ""
    assert "`int` Nullable(Int32)" in text
    assert "`map` Map(String, Nullable(Int64))" in text
    assert "`array` Array(Nullable(Int32))" in text
    assert "`struct` Tuple(`a` Nullable(Int32), `b` Nullable(String))" in text


def test_columns_of_the_path_are_virtual() -> None:
    text = clickhouse(table(paths=HOURLY)).text or ""
    assert "SELECT *, `dt`, `hour`, `carrier` FROM s3(" in text
    assert "use_hive_partitioning = 1" in text
    assert clickhouse(table(paths=UNNAMED)).gaps


def test_the_address_is_that_of_the_store() -> None:
    assert "'https://s3.eu-west-1.amazonaws.com/lake/topics/flights/**.snappy.parquet'" in (
        clickhouse(table(region="eu-west-1")).text or ""
    )
    assert "'http://store:9000/lake/topics/" in (clickhouse(table(endpoint="http://store:9000/")).text or "")


def test_a_prefix_that_is_a_pattern_is_a_gap() -> None:
    assert clickhouse(table(prefix="a*b/flights/")).gaps


def test_a_name_that_ends_with_a_backslash_stays_a_name() -> None:
    text = clickhouse(json_table(columns=(TableColumn("a\\", S),))).text or ""
    assert "'`a\\\\\\\\` Nullable(String)'" in text
