"""Comparison of records with the objects that the ledger lists."""

from __future__ import annotations

from sink_job.ledger.state import OffsetChecksum
from sink_job.verify.compare_task import ExpectedObject, most_open


def expected_object(first: int, last: int) -> ExpectedObject:
    return ExpectedObject("k", "p", first, last, OffsetChecksum(), (), 1)


def test_the_number_of_open_objects_is_the_maximum_that_spans_an_offset() -> None:
    assert most_open([]) == 0
    assert most_open([expected_object(0, 4), expected_object(5, 9)]) == 1
    assert most_open([expected_object(0, 5), expected_object(5, 9), expected_object(6, 7)]) == 2
    assert most_open([expected_object(0, 100), *(expected_object(n, n + 10) for n in range(10))]) == 11
