"""Which objects fit a table."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from sink_job.api.errors import TableIncompatible
from sink_job.tables.avro_objects.row_columns import RowColumns
from sink_job.tables.files import ObjectFooter
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.successors.fit import Fit, check_optional, fit, fits_new_table, is_new_table_better
from tests.unit.tables.successors.objects import closed

LONG = ObjectColumns(Schema(NestedField(1, "c", LongType(), required=False)), (1,))
TEXT = ObjectColumns(Schema(NestedField(1, "c", StringType(), required=False)), (1,))


def footers(*given: tuple[int, ObjectColumns]) -> list[ObjectFooter]:
    return [
        ObjectFooter(closed(number, record), columns, {"file_path": f"s3://archive/{number}.parquet"})
        for number, (record, columns) in enumerate(given)
    ]


def numbers(found: Fit) -> list[int]:
    return [each.object.first for each in found.footers]


def test_all_objects_that_fit_are_kept() -> None:
    found = fit(RowColumns(None), footers((1, LONG), (2, LONG)))
    assert (numbers(found), found.left_at, found.error) == ([0, 1], None, None)


def test_a_table_is_left_at_the_first_record_with_an_object_that_does_not_fit() -> None:
    found = fit(RowColumns(None), footers((1, LONG), (2, TEXT), (2, LONG), (3, LONG)))
    assert (numbers(found), found.left_at) == ([0, 2], 2)
    assert "s3://archive/1.parquet: column c does not fit the table" in str(found.error)


def test_a_new_table_can_have_an_object_with_other_columns() -> None:
    given = footers((1, LONG), (2, TEXT))
    assert is_new_table_better(None, fit(RowColumns(None), given), given, None)


def test_a_table_with_required_columns_is_not_left() -> None:
    required = NestedField(1, "c", LongType(), required=True)
    with pytest.raises(TableIncompatible, match="requires values of the column c"):
        check_optional(Schema(required), "lake.a")
    check_optional(Schema(), "lake.a")


def test_each_other_object_of_the_record_has_to_fit_a_new_table() -> None:
    given = footers((1, LONG), (1, TEXT), (2, LONG))
    assert fits_new_table(Fit(given[:1], 1), given, None)
    with patch.object(RowColumns, "add", side_effect=TableIncompatible("no table can have it")):
        assert not fits_new_table(Fit(given[:1], 1), given, None)
        assert fits_new_table(Fit(given[:2], 1), given, None)
