"""Partitions of files that cannot be those of all their rows."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, Transform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, PrimitiveType, StringType, TimestampType

from sink_job.tables.partitions.object_partitions import FIRST_PATH_COLUMN
from sink_job.tables.partitions.partition_audit import FilePartition, PartitionReader

DAY = 86_400_000_000
SHORT = "x" * 16


def file_of(
    kind: PrimitiveType,
    transform: Transform[Any, Any],
    value: Any,
    bounds: tuple[Any, Any] | None,
    nulls: int = 0,
    number: int = 1,
) -> tuple[PartitionReader, DataFile]:
    """A file of a table that is partitioned by its only column, with 10 values."""
    schema = Schema(NestedField(number, "a", kind, required=False))
    metadata = new_table_metadata(schema, PartitionSpec(), UNSORTED_SORT_ORDER, "s3://lake/t", {})
    field = PartitionField(number, 1000, transform, "a_field")
    columns = Schema(NestedField(number, "a", kind, required=False), schema_id=metadata.current_schema_id)
    metadata = metadata.model_copy(update={"schemas": [columns], "partition_specs": [PartitionSpec(field)]})
    low, high = ({}, {}) if bounds is None else ({number: to_bytes(kind, each)} for each in bounds)
    file = DataFile.from_args(
        partition=Record(value),
        value_counts={number: 10},
        null_value_counts={number: nulls},
        lower_bounds=low,
        upper_bounds=high,
    )
    file.spec_id = 0
    return PartitionReader(metadata), file


@pytest.mark.parametrize(
    ("kind", "transform", "value", "bounds", "nulls"),
    [
        (LongType(), IdentityTransform(), 5, (5, 5), 0),
        (LongType(), IdentityTransform(), 5, None, 0),
        (LongType(), IdentityTransform(), None, None, 10),
        (StringType(), IdentityTransform(), "ab", ("ab", "ab"), 0),
        (StringType(), IdentityTransform(), SHORT + "y", (SHORT, SHORT[:-1] + "y"), 0),
        (TimestampType(), DayTransform(), 1, (DAY, 2 * DAY - 1), 0),
        (LongType(), BucketTransform(4), 3, (1, 9), 0),
    ],
)
def test_a_value_that_the_bounds_allow_is_no_problem(
    kind: PrimitiveType, transform: Transform[Any, Any], value: Any, bounds: tuple[Any, Any] | None, nulls: int
) -> None:
    reader, file = file_of(kind, transform, value, bounds, nulls)
    assert reader.read(file).problem == ""


@pytest.mark.parametrize(
    ("kind", "transform", "value", "bounds", "nulls", "problem"),
    [
        (LongType(), IdentityTransform(), 5, (5, 6), 0, "is 5, and the bounds of its column are 5 and 6"),
        (LongType(), IdentityTransform(), 5, (5, 5), 1, "is 5, and 1 values are null"),
        (LongType(), IdentityTransform(), 5, None, 10, "is 5, and 10 of 10 values are null"),
        (LongType(), IdentityTransform(), None, (5, 5), 0, "is None, and 0 of 10 values are null"),
        (StringType(), IdentityTransform(), "ab", ("ab", "ac"), 0, "is 'ab', and the bounds of its column are 'ab'"),
        (StringType(), IdentityTransform(), SHORT + "y", (SHORT, SHORT), 0, "and the bounds of its column are"),
        (TimestampType(), DayTransform(), 1, (DAY, 2 * DAY), 0, "is 1, and the bounds of its column are 1 and 2"),
    ],
)
def test_a_value_that_is_not_that_of_all_rows_is_a_problem(
    kind: PrimitiveType,
    transform: Transform[Any, Any],
    value: Any,
    bounds: tuple[Any, Any] | None,
    nulls: int,
    problem: str,
) -> None:
    reader, file = file_of(kind, transform, value, bounds, nulls)
    assert problem in reader.read(file).problem


def test_the_value_of_a_column_of_paths_is_a_text_to_be_compared_with_the_path() -> None:
    reader, file = file_of(StringType(), IdentityTransform(), "x", None, 0, FIRST_PATH_COLUMN)
    assert reader.names == {"a"}
    assert reader.read(file) == FilePartition({"a": "x"})
