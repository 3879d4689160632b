"""The types of NumPy's arrays: one name for each element type and use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Integers of 64 bits: counts, sizes, positions in a buffer."""

Offsets = Integers
"""Offsets of Kafka."""

Times = Integers
"""Times in ms since the epoch."""

Mask = npt.NDArray[np.bool_]
"""For each row, whether it is meant."""

Codes = npt.NDArray[np.int32]
"""For each row the index of its value in a list of distinct values; negative for a row without one."""

Indices = npt.NDArray[np.intp]
"""Indices of rows, or of elements of another array."""

Bounds = npt.NDArray[np.int32]
"""The start of each value in the buffer of a column, and the end of the last one: one more than rows."""

Bytes = npt.NDArray[np.uint8]
"""The bytes of a buffer."""
