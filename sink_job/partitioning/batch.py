"""The records of a batch as columns: offsets, paths, times and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

REJECTED: Final = -1
"""Code of a row without any effect: rejected by the converter or the null policy, or without a time."""
REJECTED_PATH: Final = -2
"""Code of a row without a valid path. Its time still counts for `last_time` and `interval_start`; it closes no
object."""

TOMBSTONE: Final = "tombstone"
"""Path of records without a value (`errors.onNullValue: Write`)."""

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """The records of a batch as columns, in the order of their offsets.

    `offsets`: Kafka's offsets.
    `codes`: index of each record's path in `paths`, or REJECTED or REJECTED_PATH.
    `paths`: the distinct paths.
    `times`: ms since the epoch; None without a time partitioner.
    `sizes`: bytes; None if no rule depends on sizes.
    """

    offsets: Offsets
    codes: npt.NDArray[np.int32]
    paths: list[str]
    times: npt.NDArray[np.int64] | None = None
    sizes: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, start: int, end: int) -> Rows:
        """The rows from `start` to `end` (exclusive), not copied."""
        return Rows(
            offsets=self.offsets[start:end],
            codes=self.codes[start:end],
            paths=self.paths,
            times=None if self.times is None else self.times[start:end],
            sizes=None if self.sizes is None else self.sizes[start:end],
        )
