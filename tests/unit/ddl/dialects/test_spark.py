"""The statements of Spark. tests/data/test_ddl.py runs them."""

from __future__ import annotations

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.ddl.dialects.spark import spark
from sink_job.ddl.table import ColumnType, Kind, TableColumn
from tests.unit.ddl.tables import HOURLY, UNNAMED, json_table, table, text_table


def test_columns_of_the_path_are_at_the_end() -> None:
    assert spark(table(paths=HOURLY)).text == (
        "CREATE OR REPLACE TEMPORARY VIEW `flights` (\n  `n` int,\n  `dt` string,\n  `hour` int,\n"
        "  `carrier` string\n)\nUSING parquet\n"
        "OPTIONS (path 's3a://lake/topics/flights/', pathGlobFilter '*.snappy.parquet');"
    )


def test_a_path_without_names_is_read_recursively_and_is_a_gap() -> None:
    found = spark(json_table(paths=UNNAMED))
    assert "recursiveFileLookup 'true'" in (found.text or "")
    assert len(found.gaps) == 1


def test_nanoseconds_and_times_of_day_have_no_type() -> None:
    columns = (TableColumn("n", ColumnType(Kind.TIMESTAMP, 9)), TableColumn("t", ColumnType(Kind.TIME, 6)))
    assert spark(table(columns=columns)).gaps == [
        "column 'n' is left out: Spark has no type for a timestamp of 9 digits",
        "column 't' is left out: Spark has no type for a time of 6 digits",
    ]


def test_values_without_a_schema_are_lines_and_bytes_have_their_separator() -> None:
    assert "USING text" in (spark(text_table()).text or "")
    assert "lineSep '|'" in (spark(text_table(output=OutputFormat.BYTES, separator="|")).text or "")


def test_avro_needs_a_package_and_zstd_a_library() -> None:
    found = spark(table(output=OutputFormat.AVRO, codec=CompressionCodec.NONE, extension=".avro"))
    assert "spark-avro" in found.notes[0]
    assert spark(json_table(codec=CompressionCodec.ZSTD)).gaps
