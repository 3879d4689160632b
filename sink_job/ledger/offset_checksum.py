"""Checksums of offset sets: a count, and the sum of a hash of each offset. They compare sets without listing them.

Checksums of disjoint sets add up. The objects and offset gaps of a rotation range therefore add up to the checksum of
the whole range, also if the paths interleave. The hash is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast
splittable pseudorandom number generators, 2014), which spreads neighbouring offsets over all 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sink_job.arrow.arrays import Integers
from sink_job.ledger.state import OffsetChecksum

CHUNK = 1 << 16


class CountedObject(Protocol):
    """An object in the audit: its first and last offset (inclusive) and the checksum of its offsets."""

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def offsets(self) -> OffsetChecksum: ...


def hash_offsets(offsets: Integers) -> npt.NDArray[np.uint64]:
    """The hash of each offset."""
    x = offsets.astype(np.uint64)
    x += np.uint64(0x9E3779B97F4A7C15)
    shifted = x >> np.uint64(30)
    x ^= shifted
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= np.right_shift(x, np.uint64(27), out=shifted)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= np.right_shift(x, np.uint64(31), out=shifted)
    return x


def checksum(offsets: Integers) -> OffsetChecksum:
    """The checksum of these offsets."""
    return OffsetChecksum(len(offsets), int(hash_offsets(offsets).sum(dtype=np.uint64)))


def checksum_range(start: int, end: int) -> OffsetChecksum:
    """The checksum of all offsets in `[start, end)`."""
    total = OffsetChecksum()
    for chunk in range(start, end, CHUNK):
        total += checksum(np.arange(chunk, min(chunk + CHUNK, end), dtype=np.int64))
    return total


def gap_checksum(start: int, end: int, present: OffsetChecksum) -> OffsetChecksum:
    """The checksum of the offsets in `[start, end)` without `present`, a subset of the range."""
    return checksum_range(start, end) - present if present.count < end - start else OffsetChecksum()


def total_checksum(objects: Sequence[CountedObject]) -> OffsetChecksum:
    """The checksum of all offsets in these objects."""
    return sum((o.offsets for o in objects), OffsetChecksum())
