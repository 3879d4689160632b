"""When a sink that failed is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.failures.backoff import MAX_PAUSE, MIN_STABLE, MINUTE, failures_after, pause_ms, stable_after_ms
from s3sink_operator.types import FailureCategory

kinds = st.sampled_from(list(FailureCategory))
counts = st.integers(1, 1000)


def test_pauses_grow_as_n_squared_plus_n_up_to_an_hour() -> None:
    pauses = [pause_ms(n, kind=FailureCategory.USER) // MINUTE for n in range(1, 10)]
    assert pauses == [2, 6, 12, 20, 30, 42, 56, 60, 60]


@pytest.mark.parametrize("kind", [FailureCategory.INFRASTRUCTURE, FailureCategory.SCHEDULING])
@given(counts, st.text(max_size=40))
def test_a_failure_without_required_action_is_retried_after_ten_minutes_at_the_latest(
    kind: FailureCategory, count: int, uid: str
) -> None:
    assert pause_ms(count, kind=kind, uid=uid) <= 10 * MINUTE


def test_an_infrastructure_failure_is_retried_at_once_the_first_time() -> None:
    assert pause_ms(1, kind=FailureCategory.INFRASTRUCTURE, uid="u") == 0
    assert pause_ms(2, kind=FailureCategory.INFRASTRUCTURE) == 2 * MINUTE


@given(counts, kinds, st.text(max_size=40))
def test_pauses_never_shrink_and_are_spread_by_a_tenth_at_most(count: int, kind: FailureCategory, uid: str) -> None:
    plain = pause_ms(count, kind=kind)
    assert plain <= pause_ms(count, kind=kind, uid=uid) <= plain * 1.1
    assert pause_ms(count, kind=kind, uid=uid) <= pause_ms(count + 1, kind=kind, uid=uid) <= MAX_PAUSE[kind] * 1.1


def test_two_sinks_are_not_tried_again_at_the_same_time() -> None:
    assert len({pause_ms(3, kind=FailureCategory.USER, uid=str(uid)) for uid in range(100)}) > 90


@given(counts, kinds)
def test_failures_are_forgotten_after_a_spell_as_long_as_the_last_pause(count: int, kind: FailureCategory) -> None:
    spell = stable_after_ms(count, kind=kind)
    assert spell == max(MIN_STABLE, pause_ms(count, kind=kind))
    assert failures_after(count, kind=kind, ran_ms=spell - 1) == count + 1
    assert failures_after(count, kind=kind, ran_ms=spell) == 1


@pytest.mark.parametrize(
    ("kind", "most"),
    [(FailureCategory.USER, 32), (FailureCategory.INFRASTRUCTURE, 170), (FailureCategory.SCHEDULING, 170)],
)
def test_a_sink_that_fails_at_every_start_has_few_attempts_a_day(kind: FailureCategory, most: int) -> None:
    now, failures, tries = 0, 0, 0
    while now < 24 * 60 * MINUTE:
        failures = failures_after(failures, kind=kind, ran_ms=1000)
        now += pause_ms(failures, kind=kind) + 1000
        tries += 1
    assert tries <= most
