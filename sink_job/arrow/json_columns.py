"""JSON texts of Arrow columns, column-wise. They are the texts that msgspec writes of the values row-wise.

A function of type `Texts` takes a column without nulls, and returns its JSON texts as a binary column of equal length.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Integers
from sink_job.arrow.columnar import UnusualValues
from sink_job.arrow.utf8 import is_utf8

Texts = Callable[[pa.Array], pa.BinaryArray]

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


def integers(column: pa.Array) -> pa.BinaryArray:
    return column.cast(pa.string()).view(pa.binary())


def booleans(column: pa.Array) -> pa.BinaryArray:
    return pc.if_else(column, one(b"true"), one(b"false"))


def doubles(column: pa.Array) -> pa.BinaryArray:
    if not pc.all(pc.is_finite(column)).as_py() and len(column):
        raise UnusualValues("a number is not finite")
    return _elements(column.to_pylist())


def floats(column: pa.Array) -> pa.BinaryArray:
    """The shortest numbers that are the values when they are read as 32-bit floats."""
    return doubles(column.cast(pa.string()).cast(pa.float64()))


def strings(column: pa.Array) -> pa.BinaryArray:
    """`column` may be one of strings that are not UTF-8. Raises UnusualValues if it is."""
    values = column.view(pa.binary())
    if not is_utf8(values):
        raise UnusualValues("a string is not UTF-8")
    text = arrow_columns.text(values)
    quoted = arrow_columns.joined(values, before=b'"', after=b'"')
    bounds = arrow_columns.bounds(values)
    data = np.frombuffer(text, np.uint8)
    must_escape = (data < ord(" ")) | (data == ord('"')) | (data == ord("\\"))
    if not must_escape.any():
        return quoted
    escaped = np.flatnonzero(must_escape) + bounds[0]
    rows = np.unique(np.searchsorted(bounds, escaped, side="right") - 1)
    return _replaced(quoted, rows, [_encode(values[row].as_py().decode()) for row in rows.tolist()])


def base64_texts(column: pa.Array) -> pa.BinaryArray:
    """Base64 texts of binary values."""
    return arrow_columns.binaries([b'"%b"' % base64.b64encode(value) for value in column.to_pylist()])


def symbols(texts: Sequence[str]) -> Texts:
    """The texts `texts` by their indexes. Raises UnusualValues for another index."""
    quoted = arrow_columns.binaries([_encode(text) for text in texts])

    def of_indexes(column: pa.Array) -> pa.BinaryArray:
        check_range(column, 0, len(texts) - 1)
        return quoted.take(column)

    return of_indexes


def check_range(column: pa.Array, lowest: int, highest: int) -> None:
    """Raises UnusualValues if a value of the column is outside the range."""
    numbers = arrow_columns.numbers(column)
    if len(numbers) and not (lowest <= numbers.min() and numbers.max() <= highest):
        raise UnusualValues("an integer is outside its range")


def converted(convert: Callable[[Any], object]) -> Texts:
    """The texts of the values that `convert` makes, one by one. Raises UnusualValues if it raises ValueError or
    ArithmeticError."""

    def one_by_one(column: pa.Array) -> pa.BinaryArray:
        try:
            return arrow_columns.binaries([_encode(convert(value)) for value in column.to_pylist()])
        except (ValueError, ArithmeticError) as error:
            raise UnusualValues(str(error)) from None

    return one_by_one


def nullable(texts: Texts, null: bytes) -> Texts:
    """For a column with nulls, whose text is `null`.

    >>> nullable(integers, b"null")(pa.array([1, None, 3])).to_pylist()
    [b'1', b'null', b'3']
    """

    def of_nullable(column: pa.Array) -> pa.BinaryArray:
        if not column.null_count:
            return texts(column)
        present = arrow_columns.truths(column.is_valid())
        parts = [arrow_columns.binaries([null]), texts(column.filter(arrow_columns.booleans(present)))]
        source = np.where(present, np.cumsum(present), 0)  # 0 is the null; the texts of the others follow it
        return pa.concat_arrays(parts).take(arrow_columns.integers(source))

    return of_nullable


def structs(fields: Sequence[tuple[str, Texts]]) -> Texts:
    """JSON objects with all `fields`, in the order of the columns.

    >>> texts = structs([("n", integers), ("s", strings)])
    >>> texts(pa.array([{"n": 1, "s": "a"}, {"n": 2, "s": ""}, {"n": 3, "s": "b"}])).to_pylist()
    [b'{"n":1,"s":"a"}', b'{"n":2,"s":""}', b'{"n":3,"s":"b"}']
    """
    names = [_encode(name) + b":" for name, _ in fields]

    def of_struct(column: pa.StructArray) -> pa.BinaryArray:
        parts: list[Any] = []
        for position, ((_, texts), child) in enumerate(zip(fields, column.flatten(), strict=True)):
            parts += [one((b"," if position else b"{") + names[position]), texts(child)]
        return pc.binary_join_element_wise(*parts, one(b"}"), one(b""))

    return of_struct


class ProjectedField(NamedTuple):
    """A field of a projected struct: the texts of the column at `position`, or with None the text `constant` in every
    row."""

    name: str
    position: int | None
    texts: Texts | None = None
    constant: bytes = b"null"


def projected_structs(fields: Sequence[ProjectedField]) -> Texts:
    """JSON objects with `fields`, in this order. At least one of them is a column."""

    def of_struct(column: pa.StructArray) -> pa.BinaryArray:
        children, parts = column.flatten(), [one(b"{")]
        for number, (name, position, texts, constant) in enumerate(fields):
            parts.append(one((b"," if number else b"") + _encode(name) + b":"))
            parts.append(one(constant) if position is None or texts is None else texts(children[position]))
        return pc.binary_join_element_wise(*parts, one(b"}"), one(b""))

    return of_struct


def lists(items: Texts) -> Texts:
    """JSON arrays.

    >>> lists(integers)(pa.array([[1, 2], [], [3]])).to_pylist()
    [b'[1,2]', b'[]', b'[3]']
    """

    def of_list(column: pa.ListArray) -> pa.BinaryArray:
        return bracketed(b"[", items(column.flatten()), column.offsets, b"]")

    return of_list


def maps(items: Texts) -> Texts:
    """JSON objects of maps with text keys. Raises UnusualValues if a map has a key twice.

    >>> column = pa.array([[("a", 1), ("b", 2)], [], [("c", 3)]], pa.map_(pa.string(), pa.int64()))
    >>> maps(integers)(column).to_pylist()
    [b'{"a":1,"b":2}', b'{}', b'{"c":3}']
    """

    def of_map(column: pa.MapArray) -> pa.BinaryArray:
        offsets = np.array(column.offsets.to_pylist(), np.int64)
        start, end = int(offsets[0]), int(offsets[-1])
        keys = column.keys.slice(start, end - start)
        check_keys(keys.view(pa.binary()), np.diff(offsets))
        entries = pc.binary_join_element_wise(strings(keys), items(column.items.slice(start, end - start)), one(b":"))
        return bracketed(b"{", entries, column.offsets, b"}")

    return of_map


def check_keys(keys: pa.BinaryArray, counts: Integers) -> None:
    """Raises UnusualValues if a map has a key twice. `counts` is the number of keys of each map.

    >>> keys = arrow_columns.binaries([b"a", b"b", b"a"])
    >>> check_keys(keys, np.array([2, 1]))  # {a, b}, {a}
    >>> check_keys(keys, np.array([1, 2]))  # {a}, {b, a}
    >>> check_keys(keys, np.array([3]))
    Traceback (most recent call last):
        ...
    sink_job.arrow.columnar.UnusualValues: a map has a key twice
    """
    codes = keys.dictionary_encode()
    rows = np.repeat(np.arange(len(counts)), counts)
    # one number for each pair of a map and a key, so that one `unique` finds a pair that occurs twice
    pairs = rows * max(1, len(codes.dictionary)) + np.array(codes.indices.to_pylist(), np.int64)
    if len(np.unique(pairs)) < len(pairs):
        raise UnusualValues("a map has a key twice")


def bracketed(before: bytes, elements: pa.BinaryArray, offsets: pa.Array, after: bytes) -> pa.BinaryArray:
    """The elements from each offset to the next one, joined by commas."""
    if len(offsets) < 2:
        return arrow_columns.binaries([])
    at = pc.subtract(offsets, offsets[0])
    return arrow_columns.joined(
        pc.binary_join(pa.ListArray.from_arrays(at, elements), one(b",")), before=before, after=after
    )


def _elements(values: list[float]) -> pa.BinaryArray:
    """The JSON texts of numbers."""
    return arrow_columns.binaries(_encode(values)[1:-1].split(b",") if values else [])


def _replaced(column: pa.BinaryArray, rows: Integers, texts: Sequence[bytes]) -> pa.BinaryArray:
    """The column with `texts` in the rows `rows`.

    >>> _replaced(arrow_columns.binaries([b"a", b"b", b"c"]), np.array([1]), [b"long"]).to_pylist()
    [b'a', b'long', b'c']
    """
    source = np.arange(len(column))
    source[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, arrow_columns.binaries(texts)]).take(arrow_columns.integers(source))


def one(value: bytes) -> pa.BinaryScalar:
    """A value for each row."""
    return arrow_columns.binaries([value])[0]
