"""The samples of the lag beside the rounds: what is requested, and that a failure is only an unknown age."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

import pytest

from sink_job.api.errors import TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.progress import Progress
from sink_job.driver.lag_sampler import LagSampler
from sink_job.ledger.state import LedgerState, PartitionState
from tests.unit.api.manifests import accepted

NOW = 1_700_000_000_000
TP = TopicPartition("flights", 0)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Times:
    """In the consumer's place: the records have a timestamp of a minute ago."""

    def __init__(self) -> None:
        self.requests: list[dict[TopicPartition, int]] = []
        self.fails = False
        self.called = threading.Event()
        self.is_closed = False

    def read(self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int) -> dict[TopicPartition, int]:
        self.requests.append(dict(offsets))
        self.called.set()
        if self.fails:
            raise TransientError("no broker answers")
        return dict.fromkeys(offsets, NOW - 60_000)

    def stop(self) -> None:
        """Nothing to end."""

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock) -> Progress:
    tracker = Progress(accepted(), clock)
    tracker.claimed(LedgerState(number=7, epoch=5, partitions={str(TP): PartitionState.start(100)}))
    return tracker


def sampler(progress: Progress, times: Times, clock: Clock, end: int = 150, interval_s: float = 10.0) -> LagSampler:
    def ends(partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, end)

    return LagSampler(progress, ends, times, clock, interval_s=interval_s)


def lag(progress: Progress) -> tuple[int | None, int | None]:
    """The lag of the topic-partition, and its age in ms."""
    (found,) = progress.report().partitions
    return found.lag, found.lag_ms


def test_nothing_is_requested_before_the_first_poll_of_the_log_ends(progress: Progress, clock: Clock) -> None:
    times = Times()
    sampler(progress, times, clock).sample()
    assert not times.requests
    assert lag(progress) == (None, None)


def test_the_age_is_that_of_the_first_record_behind(progress: Progress, clock: Clock) -> None:
    times = Times()
    progress.log_ends({TP: 120})
    assert lag(progress) == (20, None)
    sampler(progress, times, clock).sample()
    assert times.requests == [{TP: 100}]
    assert lag(progress) == (20, 60_000)


def test_a_partition_without_lag_is_not_requested(progress: Progress, clock: Clock) -> None:
    times = Times()
    progress.log_ends({TP: 100})
    sampler(progress, times, clock).sample()
    assert times.requests == [{}]
    assert lag(progress) == (0, 0)


def test_the_log_ends_are_observed_during_a_long_round(progress: Progress, clock: Clock) -> None:
    progress.log_ends({TP: 120})
    clock.now += 10_000
    sampler(progress, Times(), clock).sample()
    assert lag(progress) == (50, 70_000)
    assert progress.report().log_ends_at == clock.now


def test_an_observation_beside_the_rounds_is_no_progress_of_the_driver(clock: Clock) -> None:
    beats: list[None] = []
    progress = Progress(accepted(), clock, observer=lambda: beats.append(None))
    progress.observed_log_ends({TP: 120})
    assert not beats


def test_a_failure_is_logged_once_and_leaves_the_age_unknown(
    progress: Progress, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    times = Times()
    times.fails = True
    progress.log_ends({TP: 120})
    with sampler(progress, times, clock, interval_s=0.001), caplog.at_level(logging.WARNING):
        for _ in range(3):
            times.called.clear()
            assert times.called.wait(10)
    assert lag(progress) == (20, None)
    assert times.is_closed
    assert [each.message for each in caplog.records] == ["the age of the lag is unknown: no broker answers"]
