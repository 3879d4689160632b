"""The round clock: only `set_back` makes it go back."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import ClockSkew
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.round_clock import RoundClock
from sink_job.ledger.clocks import JUMP_MS, MAX_CLOCK_SKEW_MS, HostClock
from tests.support.memory_s3 import NOW
from tests.unit.api.manifests import accepted


class Times:
    """The host's, the store's and the monotonic clock."""

    def __init__(self) -> None:
        self.host = NOW
        self.store: int | None = None
        self.steady = 0
        self.progress = Progress(accepted(), lambda: NOW)

    def clock(self, ledger_ms: int) -> RoundClock:
        class Store:
            url = "s3://archive"

            def check_access(self) -> None:
                pass

        host = HostClock(lambda: self.host, lambda: self.store, Store(), lambda: self.steady)
        return RoundClock(host, self.progress, ledger_ms)


@pytest.mark.parametrize(("ledger", "first"), [(0, NOW), (NOW, NOW), (NOW + 1, NOW + 1), (NOW - 1, NOW)])
def test_the_first_time_is_the_later_one_of_ledger_and_host(ledger: int, first: int) -> None:
    assert Times().clock(ledger).ms == first


def test_the_clock_does_not_advance_until_the_host_has_caught_up() -> None:
    times = Times()
    clock = times.clock(0)
    passed = []
    for host in (NOW + 5, NOW + 3, NOW + 5, NOW + 6):
        times.host = host
        passed.append(clock.advance())
    assert passed == [NOW + 5, NOW + 5, NOW + 5, NOW + 6]
    assert clock.ms == NOW + 6


def test_a_clock_that_was_set_back_follows_the_host_again() -> None:
    times = Times()
    clock = times.clock(NOW + 1_000)
    clock.set_back(NOW)
    assert clock.ms == NOW
    times.host = NOW + 1
    assert clock.advance() == NOW + 1


def test_the_ledgers_clock_is_to_be_set_back_where_the_store_confirms_the_host() -> None:
    times = Times()
    clock = times.clock(0)
    times.store = NOW
    ledger = NOW + MAX_CLOCK_SKEW_MS + 1
    assert (clock.to_set_back(ledger), clock.to_set_back(ledger - 1)) == (NOW, None)


def test_a_start_with_a_skewed_host_is_rejected() -> None:
    times = Times()
    times.store = NOW + MAX_CLOCK_SKEW_MS + 1
    with pytest.raises(ClockSkew):
        times.clock(0)


def test_jumps_of_the_host_are_in_the_report() -> None:
    times = Times()
    clock = times.clock(0)
    times.host += JUMP_MS + 1
    clock.advance()
    report: Any = times.progress.report()
    assert report.totals.clock_jumps == 1
