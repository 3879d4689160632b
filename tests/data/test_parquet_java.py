"""Parquet objects are read by parquet-java, the reader of Spark, Trino and Hive."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType

from tests.unit.parquet.test_container import CODECS, RECORDS, body_of, parquet

pytestmark = [pytest.mark.data, pytest.mark.spark]


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "Brotli"])
def test_parquet_java_reads_rows_types_and_page_indexes(sql: SparkSession, tmp_path: Path, codec: str) -> None:
    """It has no Brotli. A filter reads row groups by their statistics, and pages by their indexes."""
    path = tmp_path / "x.parquet"
    path.write_bytes(body_of(RECORDS, parquet(codec)))
    frame = sql.read.parquet(str(path))
    assert [(field.name, field.dataType) for field in frame.schema] == [
        ("n", LongType()),
        ("s", StringType()),
        ("l", ArrayType(IntegerType(), containsNull=True)),
    ]
    assert [row.asDict() for row in frame.sort("n").collect()] == RECORDS
    assert [row.n for row in frame.where("n between 150 and 260 and s is not null").sort("n").collect()] == [
        record["n"] for record in RECORDS[150:261] if record["s"] is not None
    ]


def test_parquet_java_finds_each_value_of_columns_with_bloom_filters(sql: SparkSession, tmp_path: Path) -> None:
    """It skips row groups whose filter excludes the value."""
    path = tmp_path / "x.parquet"
    path.write_bytes(body_of(RECORDS, parquet(bloom_filters=["n", "s"])))
    frame = sql.read.parquet(str(path))
    searched = ["text 2", "text 6", "none of them"]
    assert [frame.where(frame.s == text).count() for text in searched] == [
        sum(record["s"] == text for record in RECORDS) for text in searched
    ]
    assert [row.n for row in frame.where("n in (7, 399, 400)").sort("n").collect()] == [7, 399]
