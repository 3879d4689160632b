"""Which missing objects count as removed by a lifecycle rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sink_job.ledger.state import LedgerState
from sink_job.verify.audit_input import BucketState, GenerationAudit
from sink_job.verify.removed_objects import LedgerTimes, with_removed
from tests.unit.verify.audit_builder import closed


@pytest.mark.parametrize(
    ("record", "at"),
    [(1, 100), (5, 100), (10, 100), (11, 1_000), (14, 1_000), (15, 1_400), (20, 1_400), (21, 2_000), (99, 2_000)],
)
def test_the_time_of_a_record_is_that_of_the_claim_or_the_published_file_before_it(record: int, at: int) -> None:
    times = LedgerTimes(claims={1: 100, 15: 1_400}, published_to={10: 1_000, 20: 2_000})
    assert times.earliest(record) == at


def test_without_claims_and_files_nothing_is_known() -> None:
    assert LedgerTimes({}, {}).earliest(5) is None
    assert LedgerTimes({7: 100}, {7: 100}).earliest(5) is None


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=30, unique=True), st.data())
def test_no_record_counts_as_later_than_it_is(clocks: list[int], data: st.DataObject) -> None:
    written = dict(enumerate(sorted(clocks), start=1))
    claims = data.draw(st.sets(st.sampled_from(sorted(written))))
    files = data.draw(st.sets(st.sampled_from(sorted(written))))
    times = LedgerTimes({n: written[n] for n in claims}, {n: written[n] for n in files})
    for number, at in written.items():
        earliest = times.earliest(number)
        assert earliest is None or earliest <= at


def test_a_clock_that_went_back_makes_no_record_older_than_the_one_before() -> None:
    assert LedgerTimes({1: 500, 2: 400}, {}).earliest(2) == 500


GENERATION = GenerationAudit(
    LedgerState(), [replace(closed(range(n, n + 10)), record=n + 1) for n in (0, 10, 20)], rotations=[]
)
KEYS = [o.key for o in GENERATION.published]
TIMES = LedgerTimes({1: 100, 11: 200, 21: 300}, {})


@pytest.mark.parametrize(("removed_before", "removed"), [(100, []), (101, KEYS[:1]), (300, KEYS[:1]), (None, [])])
def test_missing_objects_written_before_the_time_count_as_removed(
    removed_before: int | None, removed: list[str]
) -> None:
    bucket = BucketState(missing=frozenset([KEYS[0], KEYS[2]]))
    found = with_removed(GENERATION, bucket, TIMES, removed_before)
    assert found.removed == frozenset(removed)
    assert found.missing == bucket.missing


def test_an_object_that_is_there_is_not_removed() -> None:
    assert with_removed(GENERATION, BucketState(), TIMES, 1_000).removed == frozenset()
