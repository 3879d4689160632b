"""The files of a table by a hash of their paths, for a comparison with objects in any order. Pure.

A table may have millions of files. Their paths are not kept: a file takes 45 bytes, and its partition is shared.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

_HASH: Final = struct.Struct("<QQ")
_Number = TypeVar("_Number", bound=np.generic)


class TableFile(NamedTuple):
    """A data file of a table: its path, and its records and size in bytes as the manifest has them. `texts` are the
    values of columns that only paths have, by name; `problem` is what is wrong with other values of its partition."""

    path: str
    records: int
    size: int
    texts: tuple[tuple[str, str | None], ...] = ()
    problem: str = ""


class IndexedFile(NamedTuple):
    """What the index has of a file, without its path."""

    records: int
    size: int
    texts: tuple[tuple[str, str | None], ...]
    problem: str


class FileIndex:
    """The files of a table. `own`: the prefixes of the paths that the sink writes."""

    def __init__(self, files: Iterable[TableFile], own: Collection[str]) -> None:
        self.own = tuple(own)
        high, low = array("Q"), array("Q")
        records, sizes, partitions, is_own = array("q"), array("q"), array("I"), array("b")
        known: dict[tuple[tuple[tuple[str, str | None], ...], str], int] = {}
        for file in files:
            first, second = _hash(file.path)
            high.append(first)
            low.append(second)
            records.append(file.records)
            sizes.append(file.size)
            partitions.append(known.setdefault((file.texts, file.problem), len(known)))
            is_own.append(file.path.startswith(self.own))
        order = np.lexsort((_column(low, np.uint64), _column(high, np.uint64)))
        self._high = _column(high, np.uint64)[order]
        self._low = _column(low, np.uint64)[order]
        self._records = _column(records, np.int64)[order]
        self._sizes = _column(sizes, np.int64)[order]
        self._partitions = _column(partitions, np.uint32)[order]
        self._is_own = _column(is_own, np.int8)[order] != 0
        self._is_found = np.zeros(len(order), dtype=bool)
        self._known = list(known)

    @property
    def records(self) -> int:
        """The records of all files."""
        return int(self._records.sum())

    @property
    def others(self) -> npt.NDArray[np.int64]:
        """The records of each file that was not looked up and is outside of the sink's prefixes."""
        found: npt.NDArray[np.int64] = self._records[~self._is_found & ~self._is_own]
        return found

    @property
    def has_unknown(self) -> bool:
        """Whether files below the sink's prefixes were not looked up."""
        return bool((~self._is_found & self._is_own).any())

    def look_up(self, paths: Sequence[str]) -> list[list[IndexedFile]]:
        """The files with each of the paths: none, or more than one if the table has it several times."""
        hashes = [_hash(path) for path in paths]
        firsts = np.array([first for first, _ in hashes], dtype=np.uint64)
        starts = np.searchsorted(self._high, firsts, "left").tolist()
        ends = np.searchsorted(self._high, firsts, "right").tolist()
        places = zip(starts, ends, hashes, strict=True)
        return [
            [self._file(at) for at in range(start, end) if int(self._low[at]) == low] for start, end, (_, low) in places
        ]

    def is_found(self, path: str) -> bool:
        """Whether a file with this path was looked up."""
        first, second = _hash(path)
        start, end = (int(np.searchsorted(self._high, np.uint64(first), side)) for side in ("left", "right"))
        return any(bool(self._is_found[at]) for at in range(start, end) if int(self._low[at]) == second)

    def _file(self, at: int) -> IndexedFile:
        self._is_found[at] = True
        texts, problem = self._known[self._partitions[at]]
        return IndexedFile(int(self._records[at]), int(self._sizes[at]), texts, problem)


def _hash(path: str) -> tuple[int, int]:
    first, second = _HASH.unpack(hashlib.blake2b(path.encode(), digest_size=_HASH.size).digest())
    return first, second


def _column(values: array[int], kind: type[_Number]) -> npt.NDArray[_Number]:
    return np.frombuffer(values, dtype=kind) if values else np.zeros(0, dtype=kind)
