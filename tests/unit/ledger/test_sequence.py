"""Listings of a ledger: the newest state, whether a claim is the head, and the records to delete (P4, P10)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.sequence import Chain, chain, droppable, is_head, superseded_snapshots

numbers = st.sets(st.integers(1, 40))


def test_an_empty_ledger_has_no_records_to_read() -> None:
    assert chain([], []) == Chain(0, 0)


def test_without_a_snapshot_all_records_are_read() -> None:
    assert list(Chain(0, 3).records) == [1, 2, 3]
    assert chain({1, 2, 3}, ()) == Chain(0, 3)


def test_records_that_the_newest_snapshot_covers_are_not_read() -> None:
    assert chain({1, 4, 5, 6, 7}, {3, 5}) == Chain(5, 7)


def test_a_snapshot_above_all_records_is_the_state() -> None:
    assert chain({1}, {5}) == Chain(5, 5)


def test_a_missing_number_means_list_again() -> None:
    assert chain({1, 3}, ()) is None
    assert chain({1, 7}, {5}) is None


def test_a_missing_number_below_the_snapshot_does_not_matter() -> None:
    assert chain({1, 3, 6}, {5}) == Chain(5, 6)


@given(numbers, numbers)
def test_a_chain_has_no_gap_after_the_newest_snapshot(records: set[int], snapshots: set[int]) -> None:
    found = chain(records, snapshots)
    if found is None:
        newest = max(snapshots, default=0)
        assert set(range(newest + 1, max(records) + 1)) - records
    else:
        assert found.snapshot == max(snapshots, default=0)
        assert set(found.records) == {n for n in records if n > found.snapshot}


def test_a_claim_with_nothing_above_it_is_the_head() -> None:
    assert is_head(7, {1, 6, 7}, {5})


def test_a_claim_below_another_record_is_not_the_head() -> None:
    assert not is_head(7, {1, 7, 8}, {5})


def test_a_claim_on_records_that_two_snapshots_cover_is_not_the_head() -> None:
    assert is_head(9, {1, 7, 8, 9}, {5, 6}, 5)
    assert not is_head(9, {1, 7, 8, 9}, {6, 8}, 5)


def test_a_claim_with_the_number_of_a_deleted_record_is_not_the_head() -> None:
    assert not is_head(7, {1, 7}, {7})
    assert not is_head(7, {1, 7}, {9})


def test_records_are_deleted_only_when_two_snapshots_cover_them() -> None:
    assert droppable({1, 2, 3}, {3}, [1], 4) == []
    assert droppable({1, 2, 3, 4, 5}, {2, 4}, [], 6) == [1, 2]


def test_claims_are_never_deleted() -> None:
    assert droppable({1, 2, 3, 4}, {3, 4}, [2], 5) == [1, 3]


def test_records_from_the_first_unacknowledged_object_on_are_kept() -> None:
    assert droppable({1, 2, 3, 4}, {4, 5}, [], 3) == [1, 2]


def test_the_two_newest_snapshots_are_kept() -> None:
    assert superseded_snapshots({1, 9, 5}) == [1]
    assert superseded_snapshots({9, 5}) == []


@given(numbers, numbers, numbers, st.integers(1, 41))
def test_deleted_records_are_never_needed(
    records: set[int], snapshots: set[int], claims: set[int], unacknowledged: int
) -> None:
    """The deletion changes the chain of neither of the two newest snapshots."""
    left = records - set(droppable(records, snapshots, claims, unacknowledged))
    kept = snapshots - set(superseded_snapshots(snapshots))
    assert chain(left, kept) == chain(records, snapshots)
    assert chain(left, kept - {max(kept, default=0)}) == chain(records, snapshots - {max(snapshots, default=0)})
    assert records & claims <= left
