"""Batches without the records to skip."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.ledger.state import PartitionState
from sink_job.rotation.types import RotationState
from sink_job.writer.skipped_records import SkippedRecords, last_skipped


def state(next_offset: int, *skipped: int) -> PartitionState:
    return PartitionState(RotationState.start(next_offset), rotation_start=0, skipped=skipped)


def batch(*offsets: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"offset": pa.array(offsets, pa.int64())})


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ([], [[4, 5, 7], [8, 9]]),
        ([5], [[4], [7], [8, 9]]),
        ([4, 9], [[5, 7], [8]]),
        ([4, 5, 7], [[8, 9]]),
        ([6, 12], [[4, 5, 7], [8, 9]]),
        ([4, 5, 7, 8, 9], []),
    ],
)
def test_a_batch_is_divided_at_each_record_to_skip(skip: list[int], expected: list[list[int]]) -> None:
    skipped = SkippedRecords(state(4), skip)
    found = skipped.without([batch(4, 5, 7), batch(8, 9)], lambda offset: None)
    assert [each.column("offset").to_pylist() for each in found] == expected
    assert skipped.passed(10) == [offset for offset in skip if offset in (4, 5, 7, 8, 9)]


def test_a_part_of_a_batch_is_no_copy() -> None:
    whole = batch(4, 5, 7)
    first, last = SkippedRecords(state(4), [5]).without([whole], lambda offset: None)
    address = whole.column("offset").buffers()[1].address
    assert {each.column("offset").buffers()[1].address for each in (first, last)} == {address}


def test_a_record_is_passed_after_those_before_it_and_before_those_after_it() -> None:
    events: list[object] = []
    for each in SkippedRecords(state(4), [5, 8]).without([batch(4, 5, 7), batch(8, 9)], events.append):
        events.append(each.column("offset").to_pylist())
    assert events == [[4], 5, [7], 8, [9]]


def test_an_empty_batch_stays_one() -> None:
    (found,) = SkippedRecords(state(4), [5]).without([batch()], lambda offset: None)
    assert len(found) == 0


def test_the_ledger_gets_the_records_that_were_passed_and_keeps_those_before() -> None:
    skipped = SkippedRecords(state(4, 1, 8), [5, 9])
    list(skipped.without([batch(4, 5, 7), batch(8, 9)], lambda offset: None))
    assert skipped.before(4) == (1, 8)
    assert skipped.before(6) == (1, 5, 8)
    assert skipped.before(10) == (1, 5, 8, 9)


def test_the_last_skipped_record_is_one_that_was_passed() -> None:
    assert last_skipped(state(6, 1, 4, 8)) == 4
    assert last_skipped(state(1, 1, 4)) is None
