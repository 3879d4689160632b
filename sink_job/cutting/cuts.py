"""What the cutter takes and gives: a batch's rows, a partition's state, and what to do with which rows.

Offsets are Kafka's; `first` and `last` are inclusive, times milliseconds since the epoch, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

REFUSED: Final = -1
"""Code of a row that has no effect at all: refused by the converter or the null policy, or without a time."""
REFUSED_PATH: Final = -2
"""Code of a row whose path could not be made: it moves `last_time` and can set `base`, and triggers no rule."""

TOMBSTONE: Final = "tombstone"
"""Path of records without a value (`errors.onNullValue: Write`)."""

Offsets = npt.NDArray[np.int64]


class OpenCut(msgspec.Struct):
    """An open object: its first and last offset, how many records and bytes (encoded, uncompressed) it holds, the round
    clock it was opened at, and with scope Object the time of its first record."""

    path: str
    first: int
    last: int
    count: int
    size: int
    opened_at: int
    base: int | None = None


class CutState(msgspec.Struct):
    """A topic-partition between two rounds (SEMANTICS section 2).

    `next` is the next offset to read. `committable` is the first offset that is not in a closed object: with scope
    Partition it moves at a close, to the last written offset + 1, and with nothing open at the end of a round to
    `next`. `open` is in the order of opening, which is that of the first offsets. `n` counts the records in it.
    """

    next: int
    committable: int
    last_time: int | None = None
    base: int | None = None
    n: int = 0
    current_path: str | None = None
    next_schedule: int | None = None
    open: dict[str, OpenCut] = {}

    @classmethod
    def start(cls, offset: int) -> CutState:
        """The state of a topic-partition of which nothing has been read: `offset` is the first to read."""
        return cls(next=offset, committable=offset)


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch's records in the order of their offsets, as columns.

    `codes` index into `paths`, in which no path stands twice, or are REFUSED or REFUSED_PATH. `times` are None
    without a time partitioner; `sizes` are None only where nobody asks for sizes.
    """

    offsets: Offsets
    codes: npt.NDArray[np.int32]
    paths: list[str]
    times: npt.NDArray[np.int64] | None = None
    sizes: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, start: int, end: int) -> Rows:
        """Rows `start` to `end` (exclusive), without copying."""
        return Rows(
            offsets=self.offsets[start:end],
            codes=self.codes[start:end],
            paths=self.paths,
            times=None if self.times is None else self.times[start:end],
            sizes=None if self.sizes is None else self.sizes[start:end],
        )


@dataclass(frozen=True, slots=True)
class Append:
    """These rows of the batch go to the open object of `path`, or open it."""

    path: str
    rows: slice | npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Close:
    """These objects are complete; in the order in which they were opened."""

    objects: tuple[OpenCut, ...]


Step = Append | Close
