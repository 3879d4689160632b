"""The pauses between the attempts of a request."""

from __future__ import annotations

import random
from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from sink_job.engine.retry import RetryPolicy

DEFAULT = RetryPolicy()


def _pauses(policy: RetryPolicy, seed: int, *, attempt_s: float = 0.0, retry_after_s: float = 0.0) -> list[float]:
    """The pauses of a request that never succeeds. Each attempt takes `attempt_s` seconds."""
    jitter, since_first = random.Random(seed), 0.0
    pauses: list[float] = []
    for failures in count(1):
        pause = policy.pause(failures, since_first, jitter, retry_after_s)
        if pause is None:
            return pauses
        pauses.append(pause)
        since_first += pause + attempt_s
    raise AssertionError


@given(st.integers(), st.floats(min_value=0.0, max_value=10.0))
def test_a_request_is_retried_for_more_than_one_minute_and_less_than_five(seed: int, attempt_s: float) -> None:
    pauses = _pauses(DEFAULT, seed, attempt_s=attempt_s)
    assert 60 < sum(pauses) + attempt_s * len(pauses) < 300


@given(st.integers())
def test_immediate_failures_lead_to_few_retries(seed: int) -> None:
    assert len(_pauses(DEFAULT, seed)) < 30


@given(st.integers())
def test_pauses_grow_up_to_the_cap(seed: int) -> None:
    pauses = _pauses(DEFAULT, seed)[:-1]
    assert all(earlier <= later for earlier, later in pairwise(pauses[:6]))
    assert max(pauses) <= DEFAULT.cap_s
    assert 0.1 <= pauses[0] <= 0.2


def test_two_clients_have_different_pauses() -> None:
    assert _pauses(DEFAULT, 1) != _pauses(DEFAULT, 2)


def test_the_last_attempt_starts_at_the_end_of_the_retry_time() -> None:
    assert sum(_pauses(DEFAULT, 7)) == DEFAULT.max_elapsed_s


def test_the_pause_that_the_store_requests_is_honoured() -> None:
    assert DEFAULT.pause(1, 0.0, random.Random(1), retry_after_s=5.0) == 5.0


def test_the_pause_that_the_store_requests_is_limited_by_the_cap() -> None:
    assert DEFAULT.pause(1, 0.0, random.Random(1), retry_after_s=3600.0) == DEFAULT.cap_s


def test_slow_attempts_do_not_extend_the_retry_time() -> None:
    assert len(_pauses(DEFAULT, 3, attempt_s=60.0)) <= 3
