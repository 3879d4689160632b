"""Limits of Avro and Parquet objects that depend on their encoded bytes.

A row is a datum while it is staged, and encoded it may be larger: a long of one byte takes eight in Parquet. So the
limit of `RotationPolicy`, which counts rows, does not keep an object within S3's 10,000 parts. An object is also closed
when its encoded bytes fill 9,000 parts, or when the indexes of its row groups are so large that the footer would need
too much memory. The encoded bytes of an object are a function of its records (P3). They are checked where offsets pass
a multiple of CHECK_EVERY, so the end of the object does not depend on batches and rounds.

The difference to 10,000 parts is for the records up to the next check, the last block, and the footer, which is not
larger than the indexes. The rows of a batch are checked one by one multiple from half of a limit on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from sink_job.api.memory_budget import max_index
from sink_job.api.spec import ObjectSettings
from sink_job.api.units.s3_limits import MAX_PARTS
from sink_job.arrow.arrays import Integers
from sink_job.ledger.state import OpenObject

MAX_ENCODED_PARTS: Final = MAX_PARTS * 9 // 10
"""Number of parts that encoded bytes fill when an object is closed."""
CHECK_EVERY: Final = 256
"""Offsets between two checks of a large object."""


@dataclass(frozen=True, slots=True)
class EncodedSize:
    """The bytes of an open object: its complete blocks with all parts, and the indexes of the blocks."""

    blocks: int
    index: int

    @classmethod
    def of(cls, o: OpenObject) -> EncodedSize:
        """The size of an object to which a round has added nothing yet."""
        blocks = sum(part.size for part in o.parts) + sum(extent.length for extent in o.blocks)
        return cls(blocks, sum(extent.length for extent in o.index))


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The limits in bytes: of blocks and indexes together, and of indexes."""

    total: int
    index: int

    @classmethod
    def of(cls, object_settings: ObjectSettings) -> SizeLimits | None:
        """The limits of a sink; None if objects are the concatenation of rows."""
        if not object_settings.format.output.has_datums:
            return None
        index = 0 if object_settings.format.parquet is None else max_index(object_settings.format.parquet)
        return cls(MAX_ENCODED_PARTS * object_settings.s3.part_size, index)

    def is_near(self, size: EncodedSize) -> bool:
        """Whether an object has half of a limit, so that the records of a batch are checked in ranges."""
        return self.is_reached(EncodedSize(2 * size.blocks, 2 * size.index))

    def is_reached(self, size: EncodedSize) -> bool:
        return size.blocks + size.index >= self.total or 0 < self.index <= size.index


def check_ranges(offsets: Integers) -> Iterator[tuple[int, int]]:
    """The rows `[start, end)` of ascending `offsets` between two checks."""
    bounds = np.flatnonzero(np.diff(offsets // CHECK_EVERY)) + 1
    return itertools.pairwise(dict.fromkeys((0, *bounds.tolist(), len(offsets))))


def is_checked(last: int, next_offset: int) -> bool:
    """Whether an object with the last record `last` is checked before the record `next_offset`."""
    return last // CHECK_EVERY < next_offset // CHECK_EVERY
