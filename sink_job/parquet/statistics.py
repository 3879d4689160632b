"""The columns of a row group as Parquet has them: one for each leaf of the types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns

_OFFSET: Final = 4
"""The size of the offset of a list or a text in bytes."""


class Leaf(NamedTuple):
    """A column of Parquet: its path, such as `a.list.element`, its type and its values."""

    path: str
    type: pa.DataType
    arrays: list[pa.Array]


def columns_with_statistics(table: pa.Table) -> list[str]:
    """The paths of the columns of Parquet, such as `a.list.element`, whose values of `table` contain no NaN.

    The minimum and maximum of Parquet leave out NaN (parquet.thrift, Statistics). DuckDB and Spark order NaN after
    every other number. They would skip row groups and pages in which NaN is the only value above a bound. Names can
    contain dots: two columns with the same path have the same choice.
    """
    columns = zip(table.column_names, table.columns, strict=True)
    found = [leaf for name, column in columns for leaf in leaves(name, column)]
    with_nan = {leaf.path for leaf in found if any(map(_has_nan, leaf.arrays))}
    return [leaf.path for leaf in found if leaf.path not in with_nan]


def decoded_size(table: pa.Table) -> int:
    """The size of the columns of a table in bytes. It depends on the values alone."""
    return sum(array_size(chunk) for column in table.columns for chunk in column.chunks)


def array_size(array: pa.Array) -> int:
    """The size of a column in bytes, with an offset for each text and list."""
    kind = array.type
    if pa.types.is_struct(kind):
        return sum(array_size(array.field(number)) for number in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _OFFSET * len(array) + array_size(array.keys) + array_size(array.items)
    if pa.types.is_list(kind):
        return _OFFSET * len(array) + array_size(array.values)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _OFFSET * len(array) + int(np.ptp(arrow_columns.bounds(array)[[0, -1]]))
    width: int = _storage(kind).bit_width
    return width * len(array) // 8


def _storage(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.index_type
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def leaves(name: str, column: pa.ChunkedArray) -> Iterator[Leaf]:
    """The columns of Parquet in the column `name` of a table."""
    return _leaves(name, column.type, column.chunks)


def _leaves(path: str, kind: pa.DataType, arrays: list[pa.Array]) -> Iterator[Leaf]:
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            field = kind.field(number)
            yield from _leaves(f"{path}.{field.name}", field.type, [each.field(number) for each in arrays])
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type, [each.keys for each in arrays])
        yield from _leaves(f"{path}.key_value.value", kind.item_type, [each.items for each in arrays])
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type, [each.values for each in arrays])
    else:
        yield Leaf(path, kind, arrays)


def _has_nan(array: pa.Array) -> bool:
    return pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())
