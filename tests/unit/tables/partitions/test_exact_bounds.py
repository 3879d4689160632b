"""Exact bounds of columns, from the footers of objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from sink_job.tables.partitions.exact_bounds import ExactBounds, exact_bounds
from tests.unit.tables.parquet_objects import column, footer, parquet


def bounds(kind: pa.DataType, of: IcebergType, values: list[Any], **options: Any) -> ExactBounds | None:
    return exact_bounds(footer(parquet([column(1, "a", kind)], {"a": values}, **options)), 0, of)


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=6))
def test_the_bounds_of_texts_are_single_exactly_if_all_rows_have_one_value(values: list[str | None]) -> None:
    found = bounds(pa.string(), StringType(), values, row_group=2)
    assert found is not None
    assert found.is_single == (len(set(values)) == 1)
    assert not found.is_single or found.low == values[0]


AT = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "of", "value", "expected"),
    [
        (pa.int32(), IntegerType(), -5, -5),
        (pa.int64(), LongType(), 2**63 - 1, 2**63 - 1),
        (pa.bool_(), BooleanType(), False, False),
        (pa.date32(), DateType(), AT.date(), -1),
        (pa.timestamp("us"), TimestampType(), AT.replace(tzinfo=None), -1),
        (pa.timestamp("us", "UTC"), TimestamptzType(), AT, -1),
        (pa.timestamp("us", "UTC"), TimestamptzType(), 2**62, 2**62),
    ],
    ids=str,
)
def test_bounds_are_values_of_partitions(kind: pa.DataType, of: IcebergType, value: Any, expected: Any) -> None:
    assert bounds(kind, of, [value, value]) == ExactBounds(expected, expected, has_nulls=False)
    assert bounds(kind, of, [value, None]) == ExactBounds(expected, expected, has_nulls=True)


@pytest.mark.parametrize(
    ("kind", "of", "values", "options"),
    [
        (pa.string(), StringType(), ["x"], {"write_statistics": False}),
        (pa.string(), StringType(), ["x" * 5_000], {}),
        (pa.float64(), DoubleType(), [1.0], {}),
    ],
    ids=["no statistics", "a long text", "another type"],
)
def test_a_footer_that_proves_nothing_has_no_bounds(
    kind: pa.DataType, of: IcebergType, values: list[Any], options: dict[str, Any]
) -> None:
    assert bounds(kind, of, values, **options) is None
