"""What the cutter takes and gives: a batch's rows, a partition's state, and what to do with which rows.

Offsets are Kafka's; `first` and `last` are inclusive, times milliseconds since the epoch, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt


class OpenObjectState(msgspec.Struct):
    """An open object: its first and last offset, how many records and bytes (encoded, uncompressed) it holds, the round
    clock it was opened at, and with scope Object the time of its first record."""

    path: str
    first: int
    last: int
    count: int
    size: int
    opened_at: int
    interval_start: int | None = None


class RotationState(msgspec.Struct):
    """A topic-partition between two rounds (SEMANTICS section 2).

    `next` is the next offset to read. `committable` is the first offset that is not in a closed object: with scope
    Partition it moves at a close, to the last written offset + 1, and with nothing open at the end of a round to
    `next`. `open` is in the order of opening, which is that of the first offsets. `n` counts the records in it.
    """

    next: int
    committable: int
    last_time: int | None = None
    interval_start: int | None = None
    open_records: int = 0
    current_path: str | None = None
    next_schedule: int | None = None
    open: dict[str, OpenObjectState] = {}

    @classmethod
    def start(cls, offset: int) -> RotationState:
        """The state of a topic-partition of which nothing has been read: `offset` is the first to read."""
        return cls(next=offset, committable=offset)


@dataclass(frozen=True, slots=True)
class Append:
    """These rows of the batch go to the open object of `path`, or open it."""

    path: str
    rows: slice | npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Close:
    """These objects are complete; in the order in which they were opened.

    `ends_rotation`: no object is open after this step, and no later step appends a row before the last appended one.
    With scope Object a later step may append such a row, of an object that was open when this one closed.
    """

    objects: tuple[OpenObjectState, ...]
    ends_rotation: bool = False


Step = Append | Close
