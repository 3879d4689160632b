"""Comparing records with an object's body: what differs is found at its record."""

from __future__ import annotations

import pytest

from sink_job.ledger.state import OffsetChecksum
from sink_job.verify.compare_task import ExpectedObject, first_difference, most_open


def claimed(first: int, last: int) -> ExpectedObject:
    return ExpectedObject("k", "p", first, last, OffsetChecksum(), (), 1)


@pytest.mark.parametrize(
    ("wanted", "stored", "index"),
    [
        (b"", b"", None),
        (b"abc", b"abc", None),
        (b"abc", b"abd", 2),
        (b"abc", b"xbc", 0),
        (b"abc", b"ab", 2),
        (b"abc", b"", 0),
    ],
)
def test_the_first_different_byte_is_found(wanted: bytes, stored: bytes, index: int | None) -> None:
    assert first_difference(memoryview(wanted), stored) == index


def test_as_many_bodies_are_open_at_once_as_objects_span_an_offset() -> None:
    assert most_open([]) == 0
    assert most_open([claimed(0, 4), claimed(5, 9)]) == 1
    assert most_open([claimed(0, 5), claimed(5, 9), claimed(6, 7)]) == 2
    assert most_open([claimed(0, 100), *(claimed(n, n + 10) for n in range(10))]) == 11
