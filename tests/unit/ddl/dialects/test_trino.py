"""The statements of Trino, which sqlglot parses. They were not run."""

from __future__ import annotations

import pytest
import sqlglot

from sink_job.ddl.dialects.trino import trino
from sink_job.ddl.table import SinkTable
from tests.unit.ddl.tables import EVERY_TYPE, HOSTILE, HOURLY, UNNAMED, json_table, table, text_table


@pytest.mark.parametrize(
    "given",
    [
        table(),
        table(columns=EVERY_TYPE),
        table(columns=HOSTILE),
        json_table(columns=EVERY_TYPE),
        text_table(),
    ],
)
def test_a_parser_accepts_the_statement(given: SinkTable) -> None:
    (parsed,) = sqlglot.parse(trino(given).text or "", dialect="trino")
    assert parsed is not None
    assert parsed.key == "create"


def test_partitions_are_projected() -> None:
    text = trino(table(paths=HOURLY)).text or ""
    assert "partitioned_by = ARRAY['dt', 'hour', 'carrier']" in text
    assert "partition_projection_type = 'DATE', partition_projection_format = 'yyyy-MM-dd'" in text
    assert "partition_projection_range = ARRAY['0', '23'], partition_projection_digits = 2" in text
    assert "partition_projection_location_template = 's3://lake/topics/flights/dt=${dt}/hour=${hour}" in text


def test_a_path_without_names_is_projected_too() -> None:
    found = trino(table(paths=UNNAMED))
    assert "'s3://lake/topics/flights/${year}'" in (found.text or "")
    assert found.gaps == []


def test_values_without_a_schema_are_lines() -> None:
    assert "textfile_field_separator = U&'\\0001'" in (trino(text_table()).text or "")
