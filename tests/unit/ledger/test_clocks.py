"""Comparison of the host's clock with the store's clock, a monotonic clock and the ledger's clock."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from sink_job.api.errors import ClockSkew
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.clocks import JUMP_MS, MAX_CLOCK_SKEW_MS, HostClock, checked_now, without_clock
from sink_job.ledger.state import LedgerState, OffsetChecksum, OpenObject, PartitionState, Record
from sink_job.ledger.transitions import apply
from sink_job.rotation.types import OpenObjectState, RotationState

NOW = 1_700_000_000_000
YEAR = 31_536_000_000
TP = TopicPartition("log", 0)


class Store:
    """A store with the clock of its last response; `then` is its clock after the next request."""

    url = "s3://archive"

    def __init__(self, clock: int | None, then: int | None = None) -> None:
        self.clock = clock
        self.then = then
        self.asked = 0

    def check_access(self) -> None:
        self.asked += 1
        if self.then is not None:
            self.clock = self.then


def clock_of(now: int, store: Store) -> int:
    return checked_now(lambda: now, lambda: store.clock, store)


@pytest.mark.parametrize("apart", [0, MAX_CLOCK_SKEW_MS, -MAX_CLOCK_SKEW_MS])
def test_a_host_clock_within_the_bound_is_used_without_a_request(apart: int) -> None:
    store = Store(NOW)
    assert clock_of(NOW + apart, store) == NOW + apart
    assert store.asked == 0


@pytest.mark.parametrize("apart", [MAX_CLOCK_SKEW_MS + 1, -MAX_CLOCK_SKEW_MS - 1, YEAR])
def test_a_host_clock_outside_the_bound_is_rejected_with_both_times(apart: int) -> None:
    with pytest.raises(ClockSkew) as skew:
        clock_of(NOW + apart, Store(NOW))
    assert skew.value.exit_code == 7
    assert "the clock of s3://archive at 2023-11-14T22:13:20Z" in str(skew.value)
    assert "Synchronize the clock that is wrong (NTP, chrony)" in str(skew.value)


def test_a_response_from_before_a_suspension_of_the_host_is_not_compared() -> None:
    store = Store(NOW - YEAR, then=NOW)
    assert clock_of(NOW, store) == NOW
    assert store.asked == 1


def test_the_error_has_both_times_when_the_store_rejects_requests_with_skewed_clocks() -> None:
    class SkewedStore(Store):
        def check_access(self) -> None:
            raise ClockSkew("RequestTimeTooSkewed")

    with pytest.raises(ClockSkew, match="2023-11-14T22:13:20Z"):
        clock_of(NOW + YEAR, SkewedStore(NOW))


def test_a_store_without_a_date_is_not_compared() -> None:
    assert clock_of(NOW + YEAR, Store(None)) == NOW + YEAR


# -- jumps -----------------------------------------------------------------------------------------------------------


def steps(*pairs: tuple[int, int]) -> tuple[HostClock, Callable[[], None]]:
    """A host's clock with these successive pairs of host clock and monotonic clock, and a function that takes a
    step."""
    at = [0]
    host = HostClock(lambda: pairs[at[0]][0], lambda: None, Store(None), lambda: pairs[at[0]][1])

    def step() -> None:
        host.now()
        at[0] += 1

    return host, step


@pytest.mark.parametrize("by", [JUMP_MS + 1, -JUMP_MS - 1])
def test_a_clock_jump_is_logged_once_with_both_times(by: int, caplog: pytest.LogCaptureFixture) -> None:
    host, step = steps((NOW, 0), (NOW + 10_000, 10_000), (NOW + 20_000 + by, 20_000), (NOW + 30_000 + by, 30_000))
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            step()
    assert host.jumps == 1
    (line,) = caplog.messages
    assert f"jumped by {by / 1000:+.1f} s" in line
    assert "should be at 2023-11-14T22:13:40Z" in line


def test_a_clock_drift_is_not_logged() -> None:
    host, step = steps((NOW, 0), (NOW + 14_000, 10_000), (NOW + 28_000, 20_000), (NOW + 42_000, 30_000))
    for _ in range(4):
        step()
    assert host.jumps == 0


# -- a ledger clock that is ahead --------------------------------------------------------------------------------------


def host_at(now: int, store: int | None) -> HostClock:
    return HostClock(lambda: now, lambda: store, Store(store))


def test_a_ledger_clock_that_is_far_ahead_is_set_back_to_the_host_clock() -> None:
    assert host_at(NOW, NOW).to_set_back(NOW + MAX_CLOCK_SKEW_MS + 1) == NOW


def test_a_ledger_clock_within_the_bound_is_not_set_back(caplog: pytest.LogCaptureFixture) -> None:
    assert host_at(NOW, NOW).to_set_back(NOW + MAX_CLOCK_SKEW_MS) is None
    assert "the ledger's clock is 300 s ahead of this host's" in caplog.text


def test_the_ledger_clock_is_not_set_back_without_confirmation_by_a_store(caplog: pytest.LogCaptureFixture) -> None:
    assert host_at(NOW, None).to_set_back(NOW + YEAR) is None
    assert "ahead of this host's" in caplog.text


def test_the_clock_is_not_set_back_while_objects_are_open() -> None:
    o = OpenObject(
        OpenObjectState(path="p", first=0, last=0, count=1, size=1, opened_at=NOW),
        settings=1,
        offsets=OffsetChecksum(1, 1),
    )
    p = PartitionState(RotationState(next=1, committable=0, open_records=1), rotation_start=0, open=(o,))
    with pytest.raises(ValueError, match="while objects are open"):
        without_clock({TP: p})


def test_the_clock_values_of_partitions_are_removed() -> None:
    without = PartitionState(RotationState.start(5), rotation_start=5, accepted_end=5, settings=1)
    with_values = PartitionState(
        RotationState(next=5, committable=5, last_time=NOW + YEAR, current_path="p", next_schedule=NOW + YEAR),
        rotation_start=5,
        accepted_end=5,
        settings=1,
        path_clock=NOW + YEAR,
    )
    assert without_clock({TP: with_values, TopicPartition("log", 1): without}) == {TP: without}


def test_only_a_record_with_the_flag_sets_the_ledger_clock_back() -> None:
    state = LedgerState(number=1, clock=NOW)
    record = Record(number=2, epoch=1, attempt="a", kind="round", clock=NOW - 1)
    assert apply(state, record).clock == NOW
    with_flag = Record(number=2, epoch=1, attempt="a", kind="round", clock=NOW - 1, sets_clock_back=True)
    assert apply(state, with_flag).clock == NOW - 1
