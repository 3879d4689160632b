"""The Bloom filters of a row group: which columns have one, and for how many values it is made.

A column of booleans has none: Arrow has none for them. A column of floats neither: 0.0 and -0.0 are equal and have
different hashes, so a reader that searches for one of them would skip a row group that has the other one.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

import pyarrow as pa

from sink_job.api.memory_budget import max_bloom_filter
from sink_job.parquet.statistics import Leaf, leaves

FALSE_POSITIVES: Final = 0.01
"""The share of values that are not in a row group and that its filter does not exclude."""
BloomFilters = dict[str, dict[str, int | float]]
"""path of a column -> the options of Arrow's writer."""


def bloom_filters(table: pa.Table, fields: Collection[str], *, block_size: int) -> BloomFilters | None:
    """The filters of the columns `fields` of `table`, which is a row group: paths such as `origin.icao` and
    `tags.list.element`. None if it has no filter; fields that it does not have are ignored. `block_size` as of
    `ParquetContainer`.

    A filter is made for as many distinct values as the column has values. Arrow's writer halves it as long as the
    false positives stay below FALSE_POSITIVES, so a column of few distinct values has a small one. Names can contain
    dots: two columns with the same path have a filter each, of the same size.
    """
    if not fields:
        return None
    most = _values_of(max_bloom_filter(block_size))
    counts: dict[str, int] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        for leaf in leaves(name, column):
            if leaf.path in fields and _has_filter(leaf.type):
                counts[leaf.path] = max(1, _count(leaf), counts.get(leaf.path, 0))
    return {path: {"ndv": min(count, most), "fpp": FALSE_POSITIVES} for path, count in counts.items()} or None


def _has_filter(kind: pa.DataType) -> bool:
    return not (pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind))


def _count(leaf: Leaf) -> int:
    return sum(len(array) - array.null_count for array in leaf.arrays)


def _values_of(size: int) -> int:
    """The distinct values for which Arrow's writer makes a filter of `size` bytes, a power of two (parquet-format,
    BloomFilter.md: eight bits are set for each value)."""
    return max(1, math.floor(-math.log1p(-(FALSE_POSITIVES ** (1 / 8))) * size))
