"""The content of an object, compared with its expected rows from the first to the last."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from sink_job.verify.object_reader import ObjectReader
from sink_job.writer.row_slices import RowSlice

SMALL = 1 << 15
"""Size in bytes below which a copy makes the comparison faster."""


class Difference(NamedTuple):
    """The first row that differs, as its index in the compared rows. `is_missing`: the object ends before the row."""

    row: int
    is_missing: bool


class ObjectContent(Protocol):
    """Compares the content of one object. Every method raises ObjectUnreadable if the object cannot be read."""

    def compare(self, rows: RowSlice) -> Difference | None:
        """Compares the next records of the object with `rows`, which are encoded records. None: they are equal."""
        ...

    def remaining(self) -> str | None:
        """After the last record: what is wrong with the rest of the object, as a clause; None if nothing is."""
        ...


class RowContent:
    """An object that is the concatenation of its rows, compressed or not."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader

    def compare(self, rows: RowSlice) -> Difference | None:
        return difference_of(rows, self._reader.read(len(rows.data)))

    def remaining(self) -> str | None:
        return MORE if self._reader.read(1) else None


MORE = "the object has more content after its last record"


def difference_of(rows: RowSlice, stored: bytes) -> Difference | None:
    """The first row that differs from `stored`; None if all are equal."""
    at = first_difference(rows.data, stored)
    if at is None:
        return None
    return Difference(min(int(np.searchsorted(rows.ends, at, side="right")), len(rows.ends) - 1), at >= len(stored))


def first_difference(expected: memoryview, stored: bytes) -> int | None:
    """The index of the first different byte, or the end of the shorter sequence; None if they are equal."""
    if len(expected) < SMALL and expected.tobytes() == stored:
        return None
    size = min(len(expected), len(stored))
    left, right = np.frombuffer(expected, np.uint8, size), np.frombuffer(stored, np.uint8, size)
    if np.array_equal(left, right):
        return None if len(expected) == len(stored) else size
    return int(np.argmax(left != right))
