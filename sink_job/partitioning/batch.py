"""A batch's records as columns: offsets, paths, times and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

REJECTED: Final = -1
"""Code of a row that has no effect at all: refused by the converter or the null policy, or without a time."""
REJECTED_PATH: Final = -2
"""Code of a row whose path could not be made: it moves `last_time` and can set `base`, and triggers no rule."""

TOMBSTONE: Final = "tombstone"
"""Path of records without a value (`errors.onNullValue: Write`)."""

Offsets = npt.NDArray[np.int64]


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
