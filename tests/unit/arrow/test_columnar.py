"""The choice between the columnar and the row-wise way."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.arrow import columns
from sink_job.arrow.columnar import MIN_ROWS, NotColumnar, UnusualValues, columnar_or_row_wise, if_columnar


def rows(count: int) -> pa.BinaryArray:
    return columns.binaries([b"x"] * count)


def columnar(values: pa.BinaryArray) -> str:
    return f"columnar {len(values)}"


def row_wise(values: pa.BinaryArray) -> str:
    return f"row-wise {len(values)}"


def unusual(values: pa.BinaryArray) -> str:
    raise UnusualValues("odd")


def broken(values: pa.BinaryArray) -> str:
    raise ValueError("another error")


def test_enough_rows_are_decoded_columnar() -> None:
    assert columnar_or_row_wise(rows(MIN_ROWS), columnar, row_wise) == f"columnar {MIN_ROWS}"


def test_fewer_rows_are_decoded_row_wise() -> None:
    assert columnar_or_row_wise(rows(MIN_ROWS - 1), columnar, row_wise) == f"row-wise {MIN_ROWS - 1}"


@pytest.mark.parametrize(("count", "minimum", "way"), [(0, 0, "columnar"), (1, 2, "row-wise"), (2, 2, "columnar")])
def test_the_minimum_can_be_given_also_as_zero(count: int, minimum: int, way: str) -> None:
    assert columnar_or_row_wise(rows(count), columnar, row_wise, min_rows=minimum) == f"{way} {count}"


def test_a_type_without_a_columnar_form_is_decoded_row_wise() -> None:
    assert columnar_or_row_wise(rows(MIN_ROWS), None, row_wise) == f"row-wise {MIN_ROWS}"


def test_unusual_values_are_decoded_row_wise() -> None:
    assert columnar_or_row_wise(rows(MIN_ROWS), unusual, row_wise) == f"row-wise {MIN_ROWS}"


def test_another_error_of_the_columnar_way_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="another error"):
        columnar_or_row_wise(rows(MIN_ROWS), broken, row_wise)


def test_a_type_that_does_not_compile_has_no_columnar_form() -> None:
    def compile_type() -> str:
        raise NotColumnar("recursive")

    assert if_columnar(compile_type) is None
    assert if_columnar(lambda: "compiled") == "compiled"
