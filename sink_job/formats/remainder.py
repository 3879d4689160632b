"""The bytes of an open object that fill no part at the end of a round, in their three kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Remainder(Generic[T]):
    """One value for each kind of bytes: the bytes themselves, where they are staged, or how many there are.

    `blocks`: complete blocks (rows, gzip members, Avro blocks, row groups) that do not fill a part.
    `partial_block`: the incomplete block, as uncompressed rows.
    `index`: what the footer needs of each complete block (`datum_rows`).
    """

    blocks: T
    partial_block: T
    index: T

    def __iter__(self) -> Iterator[T]:
        return iter((self.blocks, self.partial_block, self.index))

    def map(self, function: Callable[[T], U]) -> Remainder[U]:
        """The results of `function`, called in the order of the fields."""
        return Remainder(function(self.blocks), function(self.partial_block), function(self.index))

    def combine(self, other: Remainder[U], function: Callable[[T, U], V]) -> Remainder[V]:
        """The results of `function` for the values of both, called in the order of the fields."""
        return Remainder(*map(function, self, other))

    def as_dict(self) -> dict[str, T]:
        """The values by the names of the fields."""
        return {"blocks": self.blocks, "partial_block": self.partial_block, "index": self.index}
