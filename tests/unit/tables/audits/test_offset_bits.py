"""A bit for each offset, in windows."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from sink_job.tables.audits.offset_bits import BitLayout, OffsetBits
from sink_job.tables.audits.offset_ranges import Components, OffsetRanges
from tests.unit.tables.parquet_objects import listed


def components(*bounds: tuple[int, int]) -> Components:
    found = OffsetRanges()
    for first, last in bounds:
        found.add(msgspec.structs.replace(listed("k", b"", 1), first=first, last=last), is_own=False)
    return found.components()


TWO = components((100, 119), (200, 219))


def marked(bits: OffsetBits, *offsets: int) -> tuple[list[int], list[int]]:
    """The offsets whose bits were set, and those whose bits were set before."""
    rows = np.array(offsets)
    found = bits.mark(TWO.of(np.zeros_like(rows), rows), rows)
    return sorted(rows[found.rows].tolist()), sorted(rows[found.repeated].tolist())


def test_a_second_row_of_an_offset_is_repeated_in_one_batch_and_in_another() -> None:
    bits = OffsetBits(BitLayout(TWO, np.ones(2, dtype=bool)), 0)
    assert marked(bits, 119, 100, 207, 100, 500) == ([100, 119, 207], [100])
    assert marked(bits, 118, 207, 119) == ([118], [119, 207])
    assert bits.read(0, 40).nonzero()[0].tolist() == [0, 18, 19, 27]
    assert bits.read(18, 21).tolist() == [True, True, False]
    offsets = np.array([118, 117, 207, 500])
    assert bits.test(TWO.of(np.zeros(4, dtype=np.int64), offsets), offsets).tolist() == [True, False, True, False]


@pytest.mark.parametrize("window", [1, 7, 8, 25, 40, 1000])
def test_each_offset_is_in_one_window(window: int) -> None:
    layout = BitLayout(TWO, np.ones(2, dtype=bool), window)
    every = [*range(100, 120), *range(200, 220)]
    found = [marked(OffsetBits(layout, number), *every)[0] for number in range(layout.windows)]
    assert [offset for each in found for offset in each] == every
    for number, offsets in enumerate(found):
        first, last = layout.range_of(number)
        assert {(offset - 100) // 100 for offset in offsets} == {first, last}


def test_components_without_bits_have_no_places() -> None:
    layout = BitLayout(TWO, np.array([False, True]))
    bits = OffsetBits(layout, 0)
    assert marked(bits, 100, 200, 219) == ([200, 219], [])
    assert layout.range_of(0) == (1, 1)
    none = BitLayout(TWO, np.zeros(2, dtype=bool))
    assert (none.windows, marked(OffsetBits(none, 0), 100)) == (1, ([], []))
