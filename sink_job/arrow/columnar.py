"""The choice between two ways of decoding: columnar, all rows together, and row-wise.

The columnar way is several times as fast, but has not all types and rejects no single row. So it gives up on anything
unusual, and the row-wise way decides. Both give the same bytes where the columnar way gives any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import pyarrow as pa

MIN_ROWS = 16
"""Fewer rows are decoded faster row-wise."""
MAX_DEPTH: Final = 20
"""The maximum depth of a type with a columnar form."""


class NotColumnar(Exception):
    """A type has no columnar form."""


class UnusualValues(ValueError):
    """A column has values that must be read row-wise."""


Result = TypeVar("Result")


def if_columnar(compile_type: Callable[[], Result]) -> Result | None:
    """The columnar form that `compile_type` makes; None if it raises NotColumnar."""
    try:
        return compile_type()
    except NotColumnar:
        return None


def columnar_or_row_wise(
    values: pa.BinaryArray,
    columnar: Callable[[pa.BinaryArray], Result] | None,
    row_wise: Callable[[pa.BinaryArray], Result],
    *,
    min_rows: int | None = None,
) -> Result:
    """The result of `columnar` (None: the type has no columnar form). That of `row_wise` if `columnar` raises
    UnusualValues, or for fewer rows than `min_rows` (default: MIN_ROWS)."""
    if columnar is not None and len(values) >= (MIN_ROWS if min_rows is None else min_rows):
        try:
            return columnar(values)
        except UnusualValues:
            pass
    return row_wise(values)
