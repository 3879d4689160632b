"""Compares the statistics in the footer of a Parquet object with the ledger and with each other.

Readers skip row groups by their statistics, so wrong ones hide records. The ledger knows the offsets: an object whose
records contain their offset (`format.envelope`) has the first and last one of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq

from sink_job.ledger.state import ClosedObject

OFFSET: Final = "offset"
"""The column of an envelope with the offset."""


class _Bounds(NamedTuple):
    """The smallest and the largest value of a column in the row group `number`, and the rows of the group."""

    number: int
    low: Any
    high: Any
    rows: int


def statistics_difference(metadata: pq.FileMetaData, o: ClosedObject, offset_column: str | None = None) -> str | None:
    """What cannot be in the statistics of an object; None if everything can. `offset_column` is the path of a required
    column at the top level that contains offsets, None if no column does. Absent statistics are no difference."""
    difference = next(_impossible(metadata), None)
    if difference is not None or offset_column is None:
        return difference
    bounds = list(_bounds(metadata, offset_column))
    return _offset_difference(bounds, o, is_complete=len(bounds) == metadata.num_row_groups)


def _impossible(metadata: pq.FileMetaData) -> Iterator[str]:
    """Statistics that no values have: more nulls than values, or more values than rows in a column without lists."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            column, found = metadata.schema.column(index), group.column(index)
            if found.num_values != group.num_rows and not column.max_repetition_level:
                yield (
                    f"row group {number} of its Parquet footer has {group.num_rows} records and {found.num_values} "
                    f"values of the column {column.path}"
                )
            nulls = _nulls(found)
            if nulls > (found.num_values if column.max_definition_level else 0):
                yield (
                    f"row group {number} of its Parquet footer has {nulls} nulls among {found.num_values} values of "
                    f"the column {column.path}"
                )


def _nulls(found: pq.ColumnChunkMetaData) -> int:
    """The nulls of a column chunk; 0 if its statistics do not have their number."""
    statistics = found.statistics if found.is_stats_set else None
    return statistics.null_count or 0 if statistics is not None and statistics.has_null_count else 0


def _bounds(metadata: pq.FileMetaData, path: str) -> Iterator[_Bounds]:
    """The bounds of a column in each row group that has them."""
    index = {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}.get(path)
    if index is None:
        return
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(index).statistics if group.column(index).is_stats_set else None
        if statistics is not None and statistics.has_min_max:
            yield _Bounds(number, statistics.min, statistics.max, group.num_rows)


def _offset_difference(bounds: list[_Bounds], o: ClosedObject, *, is_complete: bool) -> str | None:
    """What differs between the bounds of the offsets and the ledger. The records of an object ascend. `is_complete`:
    all row groups have bounds."""
    next_offset = o.first
    for each in bounds:
        if not next_offset <= each.low <= each.high <= o.last or each.high - each.low + 1 < each.rows:
            return (
                f"row group {each.number} of its Parquet footer has {each.rows} records with the offsets {each.low} to "
                f"{each.high}, and in the ledger {next_offset} to {o.last} remain for it"
            )
        next_offset = each.high + 1
    if bounds and is_complete and (bounds[0].low, bounds[-1].high) != (o.first, o.last):
        return (
            f"its Parquet footer has the offsets {bounds[0].low} to {bounds[-1].high}, and the ledger {o.first} to "
            f"{o.last}"
        )
    return None
