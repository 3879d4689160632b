"""The age of the lag, from samples of the timestamps of the first records behind."""

from __future__ import annotations

from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.lag_ages import MAX_BOUND_AGE_MS, LagAges, Lagging

NOW = 1_700_000_000_000
TP, OTHER = TopicPartition("flights", 0), TopicPartition("flights", 1)


def sampled(at: Lagging, time: int | None, *, now: int = NOW) -> LagAges:
    """The ages after one sample of `TP`."""
    ages = LagAges()
    sample(ages, at, time, now)
    return ages


def sample(ages: LagAges, at: Lagging, time: int | None, now: int) -> None:
    requested = ages.due({TP: at}, 10)
    ages.sampled({TP: at}, requested, {} if time is None else {TP: time}, now=now)


def age(ages: LagAges, committed: int, end: int, now: int) -> int | None:
    return ages.age_ms(TP, committed=committed, lag=end - committed, now=now)


def test_without_a_sample_the_age_is_unknown_and_without_a_lag_it_is_zero() -> None:
    ages = LagAges()
    assert age(ages, 5, 9, NOW) is None
    assert age(ages, 9, 9, NOW) == 0


def test_the_age_of_a_sampled_record_grows_with_time_and_is_not_requested_again() -> None:
    ages = sampled(Lagging(5, 9), NOW - 240_000)
    assert age(ages, 5, 9, NOW) == 240_000
    assert age(ages, 5, 20, NOW + 3_600_000) == 3_840_000
    assert ages.due({TP: Lagging(5, 20)}, 10) == {}


def test_after_the_committed_offset_has_moved_the_sample_is_a_bound_until_the_next_one() -> None:
    ages = sampled(Lagging(5, 9), NOW - 240_000)
    assert age(ages, 7, 9, NOW + 1_000) == 241_000
    assert ages.due({TP: Lagging(7, 9)}, 10) == {TP: 7}
    sample(ages, Lagging(7, 9), NOW - 3_000, NOW + 10_000)
    assert age(ages, 7, 9, NOW + 10_000) == 13_000


def test_a_bound_that_is_not_renewed_becomes_unknown() -> None:
    ages = sampled(Lagging(5, 9), NOW - 240_000)
    assert age(ages, 7, 9, NOW + MAX_BOUND_AGE_MS + 1) is None
    assert age(ages, 5, 9, NOW + MAX_BOUND_AGE_MS + 1) is not None


def test_records_after_a_sample_without_lag_are_younger_than_it() -> None:
    ages = sampled(Lagging(9, 9), None)
    assert age(ages, 9, 12, NOW + 4_000) == 4_000
    assert ages.due({TP: Lagging(9, 12)}, 10) == {TP: 9}


def test_a_record_that_is_not_found_has_no_age() -> None:
    """A range of control records, a record without a timestamp, or a timeout."""
    ages = sampled(Lagging(5, 9), None)
    assert age(ages, 5, 9, NOW) is None


def test_a_timestamp_in_the_future_counts_as_now() -> None:
    assert age(sampled(Lagging(5, 9), NOW + 60_000), 5, 9, NOW) == 0


def test_a_limit_leaves_the_most_recently_sampled_for_the_next_sample() -> None:
    ages = sampled(Lagging(5, 9), NOW - 1_000)
    partitions = {TP: Lagging(6, 9), OTHER: Lagging(5, 9)}
    assert ages.due(partitions, 1) == {OTHER: 5}
    assert ages.due(partitions, 2) == {OTHER: 5, TP: 6}


def test_a_partition_that_is_no_longer_read_is_forgotten() -> None:
    ages = sampled(Lagging(5, 9), NOW - 1_000)
    ages.sampled({OTHER: Lagging(1, 1)}, {}, {}, now=NOW)
    assert age(ages, 5, 9, NOW) is None
