"""The columns of a row group as Parquet has them: one for each leaf of the types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.partitioning import arrow_columns

_OFFSET: Final = 4
"""The size of the offset of a list or a text in bytes."""


def columns_with_statistics(table: pa.Table) -> list[str]:
    """The paths of the columns of Parquet, such as `a.list.element`, whose values of `table` contain no NaN.

    The minimum and maximum of Parquet leave out NaN (parquet.thrift, Statistics). DuckDB and Spark order NaN after
    every other number. They would skip row groups and pages in which NaN is the only value above a bound. Names can
    contain dots: two columns with the same path have the same choice.
    """
    columns = zip(table.column_names, table.columns, strict=True)
    leaves = [leaf for name, column in columns for leaf in _leaves(name, column.type, column.chunks)]
    with_nan = {path for path, _, arrays in leaves if any(map(_has_nan, arrays))}
    return [path for path, _, _ in leaves if path not in with_nan]


def enum_paths(schema: pa.Schema) -> list[str]:
    """The paths of the columns of Parquet whose values are indexes of a dictionary."""
    leaves = (leaf for field in schema for leaf in _leaves(field.name, field.type, []))
    return [path for path, kind, _ in leaves if pa.types.is_dictionary(kind)]


def decoded_size(table: pa.Table) -> int:
    """The size of the columns of a table in bytes. It depends on the values alone."""
    return sum(_size(chunk) for column in table.columns for chunk in column.chunks)


def _size(array: pa.Array) -> int:
    kind = array.type
    if pa.types.is_struct(kind):
        return sum(_size(array.field(number)) for number in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _OFFSET * len(array) + _size(array.keys) + _size(array.items)
    if pa.types.is_list(kind):
        return _OFFSET * len(array) + _size(array.values)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _OFFSET * len(array) + int(np.ptp(arrow_columns.bounds(array)[[0, -1]]))
    width: int = _storage(kind).bit_width
    return width * len(array) // 8


def _storage(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.index_type
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _leaves(path: str, kind: pa.DataType, arrays: list[pa.Array]) -> Iterator[tuple[str, pa.DataType, list[pa.Array]]]:
    """The columns of Parquet in a column of the table, each with its path, type and arrays."""
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
        yield path, kind, arrays


def _has_nan(array: pa.Array) -> bool:
    return pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())
