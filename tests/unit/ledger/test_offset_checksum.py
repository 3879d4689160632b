"""Tallies of disjoint sets add up, and a wrong set does not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.offset_checksum import CHUNK, checksum, checksum_range, gap_checksum
from sink_job.ledger.state import OffsetChecksum

OFFSETS = st.sets(st.integers(0, 2**62), min_size=1, max_size=50)


def of(offsets: set[int]) -> OffsetChecksum:
    return checksum(np.array(sorted(offsets), dtype=np.int64))


@given(OFFSETS, st.data())
def test_the_tallies_of_two_halves_add_up_to_that_of_the_whole(offsets: set[int], data: st.DataObject) -> None:
    half = {offset for offset in offsets if data.draw(st.booleans())}
    assert of(half) + of(offsets - half) == of(offsets)


@given(OFFSETS, st.integers(0, 2**62))
def test_another_offset_in_place_of_one_shows(offsets: set[int], other: int) -> None:
    changed = {other} | set(sorted(offsets)[1:])
    assert (of(changed) == of(offsets)) is (changed == offsets)


def test_a_range_longer_than_a_chunk_is_tallied_whole() -> None:
    assert checksum_range(7, 7 + 2 * CHUNK + 3) == checksum(np.arange(7, 7 + 2 * CHUNK + 3, dtype=np.int64))


@given(st.integers(0, 1000), st.sets(st.integers(0, 99)))
def test_holes_are_the_rest_of_the_range(start: int, written: set[int]) -> None:
    inside = {start + offset for offset in written}
    rest = set(range(start, start + 100)) - inside
    expected = of(rest) if rest else OffsetChecksum()
    assert gap_checksum(start, start + 100, of(inside) if inside else OffsetChecksum()) == expected
