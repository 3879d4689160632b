import random
from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from sink_job.s3 import RetryPolicy

DEFAULT = RetryPolicy()


def _pauses(policy: RetryPolicy, seed: int, *, try_s: float = 0.0, floor_s: float = 0.0) -> list[float]:
    """The pauses of a request that never succeeds, each try taking `try_s`."""
    jitter, since_first = random.Random(seed), 0.0
    pauses: list[float] = []
    for failures in count(1):
        pause = policy.pause(failures, since_first, jitter, floor_s)
        if pause is None:
            return pauses
        pauses.append(pause)
        since_first += pause + try_s
    raise AssertionError


@given(st.integers(), st.floats(min_value=0.0, max_value=10.0))
def test_a_request_outlasts_a_minute_of_slow_down_and_gives_up_before_five(seed: int, try_s: float) -> None:
    pauses = _pauses(DEFAULT, seed, try_s=try_s)
    assert 60 < sum(pauses) + try_s * len(pauses) < 300


@given(st.integers())
def test_a_minute_of_quick_refusals_costs_few_requests(seed: int) -> None:
    assert len(_pauses(DEFAULT, seed)) < 30


@given(st.integers())
def test_pauses_grow_up_to_the_cap(seed: int) -> None:
    pauses = _pauses(DEFAULT, seed)[:-1]
    assert all(earlier <= later for earlier, later in pairwise(pauses[:6]))
    assert max(pauses) <= DEFAULT.cap_s
    assert 0.1 <= pauses[0] <= 0.2


def test_two_clients_do_not_come_back_together() -> None:
    assert _pauses(DEFAULT, 1) != _pauses(DEFAULT, 2)


def test_the_last_try_begins_when_patience_ends() -> None:
    assert sum(_pauses(DEFAULT, 7)) == DEFAULT.patience_s


def test_the_pause_that_the_store_asks_for_is_kept() -> None:
    assert DEFAULT.pause(1, 0.0, random.Random(1), floor_s=5.0) == 5.0


def test_a_store_that_asks_for_an_hour_is_not_believed() -> None:
    assert DEFAULT.pause(1, 0.0, random.Random(1), floor_s=3600.0) == DEFAULT.cap_s


def test_a_store_that_hangs_is_not_tried_more_often_than_patience_allows() -> None:
    assert len(_pauses(DEFAULT, 3, try_s=60.0)) <= 3
