"""Checksums of disjoint sets add up; different sets have different checksums."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.offset_checksum import CHUNK, checksum, checksum_range, gap_checksum
from sink_job.ledger.state import OffsetChecksum

OFFSETS = st.sets(st.integers(0, 2**62), min_size=1, max_size=50)


def checksum_of(offsets: set[int]) -> OffsetChecksum:
    return checksum(np.array(sorted(offsets), dtype=np.int64))


@given(OFFSETS, st.data())
def test_checksums_of_disjoint_sets_add_up(offsets: set[int], data: st.DataObject) -> None:
    half = {offset for offset in offsets if data.draw(st.booleans())}
    assert checksum_of(half) + checksum_of(offsets - half) == checksum_of(offsets)


@given(OFFSETS, st.integers(0, 2**62))
def test_a_different_offset_changes_the_checksum(offsets: set[int], other: int) -> None:
    changed = {other} | set(sorted(offsets)[1:])
    assert (checksum_of(changed) == checksum_of(offsets)) is (changed == offsets)


def test_the_checksum_covers_a_range_longer_than_a_chunk() -> None:
    assert checksum_range(7, 7 + 2 * CHUNK + 3) == checksum(np.arange(7, 7 + 2 * CHUNK + 3, dtype=np.int64))


@given(st.integers(0, 1000), st.sets(st.integers(0, 99)))
def test_the_gap_checksum_is_that_of_the_remaining_offsets(start: int, accepted: set[int]) -> None:
    inside = {start + offset for offset in accepted}
    rest = set(range(start, start + 100)) - inside
    expected = checksum_of(rest) if rest else OffsetChecksum()
    assert gap_checksum(start, start + 100, checksum_of(inside) if inside else OffsetChecksum()) == expected
