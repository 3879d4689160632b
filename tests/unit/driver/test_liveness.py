"""A driver that works is alive, however slow; a silent one is not."""

from __future__ import annotations

from sink_job.driver.liveness import Heartbeat


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silence_is_counted_from_the_last_beat() -> None:
    clock = Clock()
    heart = Heartbeat(clock)
    clock.now = 30
    heart.beat()
    clock.now = 70
    assert heart.silence_s() == 40


def test_progress_inside_of_a_round_is_a_sign_of_life() -> None:
    clock = Clock()
    heart = Heartbeat(clock)
    heart.observed((1, 8))
    clock.now = 100
    heart.observed((2, 8))
    assert heart.silence_s() == 0


def test_the_same_progress_again_is_none() -> None:
    clock = Clock()
    heart = Heartbeat(clock)
    heart.observed((1, 8))
    clock.now = 100
    heart.observed((1, 8))
    assert heart.silence_s() == 100
