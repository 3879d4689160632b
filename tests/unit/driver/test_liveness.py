"""The heartbeat of the driver."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from sink_job.coordinator.progress import Progress
from sink_job.driver.liveness import Heartbeat
from sink_job.ledger.state import LedgerState
from tests.unit.api.manifests import accepted


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silence_is_the_time_since_the_last_beat() -> None:
    clock = Clock()
    heartbeat = Heartbeat(clock)
    clock.now = 30
    heartbeat.beat()
    clock.now = 70
    assert heartbeat.silence_s() == 40


def test_progress_within_a_round_is_a_beat() -> None:
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observed((1, 8))
    clock.now = 100
    heartbeat.observed((2, 8))
    assert heartbeat.silence_s() == 0


def test_unchanged_progress_is_not_a_beat() -> None:
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observed((1, 8))
    clock.now = 100
    heartbeat.observed((1, 8))
    assert heartbeat.silence_s() == 100


def test_the_claim_each_poll_of_log_ends_each_round_and_the_end_are_beats() -> None:
    clock = Clock()
    heartbeat = Heartbeat(clock)
    progress = Progress(accepted(), lambda: 0, observer=heartbeat.beat)
    commits: Any = types.SimpleNamespace(state=LedgerState(), committed={}, published=0, published_of_topics={})
    steps: list[Callable[[], object]] = [
        lambda: progress.claimed(LedgerState()),
        lambda: progress.recovered(commits),
        lambda: progress.log_ends({}),
        lambda: progress.round_completed({}, commits, started=0, recorded=1, ended=2),
        lambda: progress.ended(None),
    ]
    silence = []
    for step in steps:
        clock.now += 100
        step()
        silence.append(heartbeat.silence_s())
    assert silence == [0] * len(steps)
