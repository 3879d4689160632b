"""A bit for each offset that rows of a table must have, in windows of bounded memory. Pure.

The ranges of components are laid one after the other; the bit of a record is its place there. Rows may be in any order:
a compaction may sort them. If there are more bits than a window has, the rows are read once for each window.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sink_job.tables.audits.offset_ranges import Components, Longs

WINDOW: Final = 1 << 29
"""Bits of a window: 64 MiB."""


class Marked(NamedTuple):
    """What a batch of rows has set: the numbers of the rows whose bits were not set before, with their components, and
    of those whose bits were set, also by the batch itself."""

    rows: Longs
    components: Longs
    repeated: Longs


class BitLayout:
    """The places of the bits of `components`; only of those of the mask `used`."""

    def __init__(self, components: Components, used: npt.NDArray[np.bool_], window: int = WINDOW) -> None:
        self.components = components
        self.window = window
        self._used = used
        lengths = np.where(used, components.end - components.start, 0)
        self._base = np.concatenate(([0], np.cumsum(lengths)))

    @property
    def windows(self) -> int:
        """The number of windows, at least 1."""
        return max(1, -(-int(self._base[-1]) // self.window))

    def places(self, components: Longs, offsets: Longs) -> Longs:
        """The places of the bits of records in these components; -1 for components that have no bits."""
        found = np.full(len(offsets), -1, dtype=np.int64)
        has = components >= 0
        has[has] = self._used[components[has]]
        inside = components[has]
        found[has] = self._base[inside] + offsets[has] - self.components.start[inside]
        return found

    def place(self, component: int) -> tuple[int, int]:
        """The place of the first bit of a component, and the one after its last."""
        return int(self._base[component]), int(self._base[component + 1])

    def range_of(self, window: int) -> tuple[int, int]:
        """The first and the last component with bits in a window."""
        first = int(np.searchsorted(self._base, window * self.window, "right")) - 1
        last = int(np.searchsorted(self._base, (window + 1) * self.window, "left")) - 1
        return first, min(max(first, last), len(self.components) - 1)


class OffsetBits:
    """The bits of a window."""

    def __init__(self, layout: BitLayout, window: int) -> None:
        self._layout = layout
        self._start = window * layout.window
        length = min(layout.window, max(0, int(layout._base[-1]) - self._start))
        self._bits = np.zeros(-(-length // 8), dtype=np.uint8)
        self._length = length

    def mark(self, components: Longs, offsets: Longs) -> Marked:
        """Sets the bits of the records that are in the window."""
        places = self._layout.places(components, offsets) - self._start
        rows = np.flatnonzero((places >= 0) & (places < self._length) & (components >= 0))
        rows = rows[np.argsort(places[rows], kind="stable")]
        bits = places[rows]
        is_repeated = np.concatenate(([False], bits[1:] == bits[:-1])) if len(bits) else np.zeros(0, dtype=bool)
        masks = np.left_shift(np.uint8(1), (bits & 7).astype(np.uint8))
        is_repeated |= (self._bits[bits >> 3] & masks) != 0
        np.bitwise_or.at(self._bits, bits >> 3, masks)
        return Marked(rows[~is_repeated], components[rows[~is_repeated]], rows[is_repeated])

    def test(self, components: Longs, offsets: Longs) -> npt.NDArray[np.bool_]:
        """Whether the bits of the records are set; not for those outside of the window."""
        places = self._layout.places(components, offsets) - self._start
        is_in = (components >= 0) & (places >= 0) & (places < self._length)
        bits = np.where(is_in, places, 0)
        masks = np.left_shift(np.uint8(1), (bits & 7).astype(np.uint8))
        if not self._length:
            return is_in
        found: npt.NDArray[np.bool_] = is_in & ((self._bits[bits >> 3] & masks) != 0)
        return found

    def read(self, start: int, end: int) -> npt.NDArray[np.bool_]:
        """The bits of the places `[start, end)`, which are in the window."""
        start, end = start - self._start, end - self._start
        found = np.unpackbits(self._bits[start >> 3 : -(-end // 8)], bitorder="little")
        return found[start & 7 : (start & 7) + end - start].astype(bool)
