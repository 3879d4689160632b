"""SIGTERM and Ctrl-C end a run in order, and for certain."""

from __future__ import annotations

import logging
import os
import signal
import threading
from queue import SimpleQueue

import pytest

from sink_job.driver import signals as module
from sink_job.driver.signals import StopSignals

PATIENCE_S = 20


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_runs_the_steps(number: int) -> None:
    stopped = threading.Event()
    with StopSignals() as signals:
        signals.on_stop(stopped.set)
        send(number)
        assert stopped.wait(PATIENCE_S)
        assert signals.requested


def test_without_a_signal_nothing_happens() -> None:
    steps: list[str] = []
    with StopSignals() as signals:
        signals.on_stop(lambda: steps.append("stop"))
    assert not signals.requested
    assert steps == []


def test_a_step_that_comes_too_late_runs_at_once() -> None:
    stopped = threading.Event()
    steps: list[str] = []
    with StopSignals() as signals:
        signals.on_stop(stopped.set)
        send(signal.SIGTERM)
        assert stopped.wait(PATIENCE_S)
        signals.on_stop(lambda: steps.append("late"), after_s=60)
    assert steps == ["late"]


def test_a_step_that_fails_does_not_keep_the_next_from_running() -> None:
    stopped = threading.Event()

    def fails() -> None:
        raise RuntimeError("gone already")

    with StopSignals() as signals:
        signals.on_stop(fails)
        signals.on_stop(stopped.set)
        send(signal.SIGTERM)
        assert stopped.wait(PATIENCE_S)


def test_a_second_signal_ends_the_process_at_once_with_75() -> None:
    codes: SimpleQueue[int] = SimpleQueue()
    stopped = threading.Event()
    with StopSignals(exit_at_once=codes.put) as signals:
        signals.on_stop(stopped.set)
        send(signal.SIGTERM)
        assert stopped.wait(PATIENCE_S)
        send(signal.SIGTERM)
        assert codes.get(timeout=PATIENCE_S) == 75


def test_a_process_that_does_not_end_in_order_is_ended_at_the_deadline_with_0(
    caplog: pytest.LogCaptureFixture,
) -> None:
    codes: SimpleQueue[int] = SimpleQueue()
    with StopSignals(deadline_s=0.01, exit_at_once=codes.put) as signals:
        assert signals.begin()
        send(signal.SIGTERM)
        assert codes.get(timeout=PATIENCE_S) == 0
    assert "not ended in order" in caplog.text


def test_a_process_that_has_not_begun_is_ended_soon_and_without_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STARTING_DEADLINE_S", 0.01)
    codes: SimpleQueue[int] = SimpleQueue()
    with caplog.at_level(logging.INFO), StopSignals(deadline_s=3_600, exit_at_once=codes.put) as signals:
        signals.on_stop(lambda: pytest.fail("too late"), after_s=3_600)
        send(signal.SIGTERM)
        assert codes.get(timeout=PATIENCE_S) == 0
        assert not signals.begin()
    assert "ended while starting" in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_handlers_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
