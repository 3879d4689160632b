"""The fetch size of consumers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.spark.fetch import CONSUMER_BYTES, SIZES, FetchSize, fetch_bytes, pool_group

MIB = 1 << 20
ROUNDS = st.lists(st.sets(st.integers(0, 100)), max_size=20)


def test_the_fetch_size_decreases_with_the_number_of_partitions() -> None:
    assert [fetch_bytes(n) // MIB for n in (1, 16, 17, 32, 33, 64, 65, 10_000)] == [4, 4, 2, 2, 1, 1, 1, 1]


@given(st.integers(1, 64))
def test_the_consumers_of_up_to_64_partitions_fit_into_their_part_of_the_heap(partitions: int) -> None:
    assert 2 * partitions * fetch_bytes(partitions) <= CONSUMER_BYTES


@given(ROUNDS)
def test_the_fetch_size_never_increases_and_changes_at_most_twice(rounds: list[set[int]]) -> None:
    sizes = sizes_of(rounds)
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) <= set(SIZES)


@given(ROUNDS)
def test_partitions_of_earlier_rounds_count_for_the_fetch_size(rounds: list[set[int]]) -> None:
    every = set().union(*rounds)
    assert sizes_of([*rounds, set()])[-1] == fetch_bytes(len(every))


@given(ROUNDS)
def test_consumers_of_one_group_id_always_have_one_fetch_size(rounds: list[set[int]]) -> None:
    sizes = sizes_of(rounds)
    assert len({(pool_group("g", size), size) for size in sizes}) == len({pool_group("g", size) for size in sizes})


def sizes_of(rounds: list[set[int]]) -> list[int]:
    size = FetchSize()
    return [size.reading(TopicPartition("t", n) for n in numbers) for numbers in rounds]
