"""Two sequences of records are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.compare import sequence_diff
from sink_job.compare.sequence_diff import (
    SequenceDifference,
    TooManyRecords,
    difference_between,
    digests,
    equal_records,
)

RECORDS = st.lists(st.integers(0, 5), max_size=12)


def batches(records: Sequence[int], size: int) -> Iterator[list[bytes]]:
    rows = [str(each).encode() for each in records]
    yield []
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


@given(RECORDS, RECORDS, st.integers(1, 5), st.integers(1, 5))
def test_sequences_are_compared_in_batches_of_any_size(one: list[int], other: list[int], a: int, b: int) -> None:
    equal = next((n for n, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other)))
    assert equal_records(batches(one, a), batches(other, b), bytes) == (equal, one == other)


def test_records_of_other_bytes_are_equal_by_their_value() -> None:
    assert equal_records(iter([[b"A", b"b"]]), iter([[b"a", b"B"]]), bytes.lower) == (2, True)


@given(RECORDS, RECORDS)
def test_the_difference_accounts_for_each_record(one: list[int], other: list[int]) -> None:
    found = difference_between(np.array(one, np.int64), np.array(other, np.int64))
    assert {one[n] for n in found.sink_only}.isdisjoint(other)
    assert {other[n] for n in found.other_only}.isdisjoint(one)
    surplus = Counter(one[n] for n in (*found.sink_only, *found.sink_repeated))
    assert surplus == Counter(one) - Counter(other)
    assert Counter(other[n] for n in (*found.other_only, *found.other_repeated)) == Counter(other) - Counter(one)
    assert found.count == surplus.total() + (Counter(other) - Counter(one)).total()
    is_reordered = Counter(one) == Counter(other) and one != other
    assert (found.reordered is not None) is is_reordered


def test_equal_sequences_have_no_difference() -> None:
    assert difference_between(np.array([1, 1, 2]), np.array([1, 1, 2])) == SequenceDifference()


def test_the_digests_of_equal_records_are_equal() -> None:
    one, two, three = digests(iter([[b"a", b"A"], [b"b"]]), bytes.lower).tolist()
    assert one == two != three
    assert digests(iter(()), bytes).tolist() == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_diff, "MAX_DIGESTS", 3)
    with pytest.raises(TooManyRecords):
        digests(batches([1, 2, 3, 4], 2), bytes)
