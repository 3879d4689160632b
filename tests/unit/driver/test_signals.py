"""Graceful shutdown at SIGTERM and SIGINT, and its deadline."""

from __future__ import annotations

import logging
import os
import signal
import threading
from queue import SimpleQueue

import pytest

from sink_job.driver import signals as module
from sink_job.driver.signals import StopSignals

TIMEOUT_S = 20


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_runs_the_steps(number: int) -> None:
    stopped = threading.Event()
    with StopSignals() as signals:
        signals.on_stop(stopped.set)
        send(number)
        assert stopped.wait(TIMEOUT_S)
        assert signals.requested


def test_without_a_signal_no_step_runs() -> None:
    steps: list[str] = []
    with StopSignals() as signals:
        signals.on_stop(lambda: steps.append("stop"))
    assert not signals.requested
    assert steps == []


def test_a_step_registered_after_the_signal_runs_immediately() -> None:
    stopped = threading.Event()
    steps: list[str] = []
    with StopSignals() as signals:
        signals.on_stop(stopped.set)
        send(signal.SIGTERM)
        assert stopped.wait(TIMEOUT_S)
        signals.on_stop(lambda: steps.append("late"), after_s=60)
    assert steps == ["late"]


def test_a_failed_step_does_not_prevent_the_next() -> None:
    stopped = threading.Event()

    def fails() -> None:
        raise RuntimeError("already closed")

    with StopSignals() as signals:
        signals.on_stop(fails)
        signals.on_stop(stopped.set)
        send(signal.SIGTERM)
        assert stopped.wait(TIMEOUT_S)


def test_a_second_signal_exits_immediately_with_75() -> None:
    codes: SimpleQueue[int] = SimpleQueue()
    stopped = threading.Event()
    with StopSignals(exit_at_once=codes.put) as signals:
        signals.on_stop(stopped.set)
        send(signal.SIGTERM)
        assert stopped.wait(TIMEOUT_S)
        send(signal.SIGTERM)
        assert codes.get(timeout=TIMEOUT_S) == 75


def test_a_shutdown_beyond_the_deadline_exits_with_0(
    caplog: pytest.LogCaptureFixture,
) -> None:
    codes: SimpleQueue[int] = SimpleQueue()
    with StopSignals(deadline_s=0.01, exit_at_once=codes.put) as signals:
        assert signals.begin()
        send(signal.SIGTERM)
        assert codes.get(timeout=TIMEOUT_S) == 0
    assert "graceful shutdown exceeded" in caplog.text


def test_a_signal_during_start_up_exits_soon_and_without_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STARTING_DEADLINE_S", 0.01)
    codes: SimpleQueue[int] = SimpleQueue()
    with caplog.at_level(logging.INFO), StopSignals(deadline_s=3_600, exit_at_once=codes.put) as signals:
        signals.on_stop(lambda: pytest.fail("too late"), after_s=3_600)
        send(signal.SIGTERM)
        assert codes.get(timeout=TIMEOUT_S) == 0
        assert not signals.begin()
    assert "stopped during start-up" in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_signal_handlers_are_restored() -> None:
    previous = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) != previous[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == previous
