"""Comparison of records with the content of an object."""

from __future__ import annotations

import pytest

from sink_job.ledger.state import OffsetChecksum
from sink_job.verify.compare_task import ExpectedObject, most_open
from sink_job.verify.object_content import first_difference


def expected_object(first: int, last: int) -> ExpectedObject:
    return ExpectedObject("k", "p", first, last, OffsetChecksum(), (), 1)


@pytest.mark.parametrize(
    ("expected", "stored", "index"),
    [
        (b"", b"", None),
        (b"abc", b"abc", None),
        (b"abc", b"abd", 2),
        (b"abc", b"xbc", 0),
        (b"abc", b"ab", 2),
        (b"abc", b"", 0),
    ],
)
def test_the_first_different_byte_is_located(expected: bytes, stored: bytes, index: int | None) -> None:
    assert first_difference(memoryview(expected), stored) == index


def test_the_number_of_open_objects_is_the_maximum_that_spans_an_offset() -> None:
    assert most_open([]) == 0
    assert most_open([expected_object(0, 4), expected_object(5, 9)]) == 1
    assert most_open([expected_object(0, 5), expected_object(5, 9), expected_object(6, 7)]) == 2
    assert most_open([expected_object(0, 100), *(expected_object(n, n + 10) for n in range(10))]) == 11
