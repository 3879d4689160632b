"""The exact bounds of a column of a Parquet object. Those in the manifests of a table may be shortened.

A partition value that is not that of all rows makes readers of a table skip rows. So partition values come from here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq
from pyiceberg.types import (
    BooleanType,
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

TYPES: Final = (BooleanType, IntegerType, LongType, StringType, DateType, TimestampType, TimestamptzType)
"""The types of columns that have exact bounds here: those of values in paths, and of times."""
TIMES: Final = (DateType, TimestampType, TimestamptzType)
"""Types whose values are numbers of days or microseconds."""


class ExactBounds(NamedTuple):
    """The smallest and the largest value of a column that are not null, as values of a partition; None, None if all
    values are null."""

    low: Any
    high: Any
    has_nulls: bool

    @property
    def is_single(self) -> bool:
        """Whether all rows have the value `low`, or null."""
        if self.low is None:
            return True
        return bool(self.low == self.high) and not self.has_nulls


def exact_bounds(metadata: pq.FileMetaData, leaf: int, kind: IcebergType) -> ExactBounds | None:
    """The bounds of Parquet's column number `leaf`; None if the footer does not prove them, or for another type."""
    if not isinstance(kind, TYPES):
        return None
    lows: list[Any] = []
    highs: list[Any] = []
    has_nulls = False
    is_time = isinstance(kind, TIMES)
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(leaf)
        found = chunk.statistics if chunk.is_stats_set else None
        if found is None or not found.has_null_count:
            return None
        has_nulls |= found.null_count > 0
        if found.has_min_max:
            lows.append(found.min_raw if is_time else found.min)
            highs.append(found.max_raw if is_time else found.max)
        elif found.null_count < chunk.num_values:
            return None  # values without bounds
    return ExactBounds(min(lows, default=None), max(highs, default=None), has_nulls)
