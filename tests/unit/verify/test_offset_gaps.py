"""Location of missing and duplicate offsets by checksums."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import (
    OffsetChecksum,
)
from sink_job.verify.offset_gaps import find, overlap, uncovered
from tests.unit.verify.audit_builder import checksum_of, closed


@given(st.integers(0, 2**40), st.integers(1, 300), st.data())
def test_a_contiguous_range_is_located_by_its_checksum(start: int, length: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(start, start + length - 1))
    end = data.draw(st.integers(first + 1, start + length))
    assert find(start, start + length, checksum_range(first, end)) == first


def test_other_checksums_are_not_located() -> None:
    assert find(0, 100, checksum_of([3, 5])) is None
    assert find(0, 100, checksum_range(98, 103)) is None
    assert find(0, 2, checksum_range(0, 3)) is None
    assert find(0, 100, OffsetChecksum()) is None


def test_ranges_that_no_object_spans_are_returned_in_order() -> None:
    objects = [closed([12, 15]), closed([3, 8], "b"), closed([5, 6], "c")]
    assert list(uncovered(0, 20, objects)) == [(0, 3), (9, 12), (16, 20)]
    assert list(uncovered(4, 14, objects)) == [(9, 12)]


def test_the_first_overlap_is_returned() -> None:
    assert overlap([closed([0, 9]), closed([5, 20], "b"), closed([7], "c")]) == 5
    assert overlap([closed([0, 4]), closed([5, 20], "b")]) is None
