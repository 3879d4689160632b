"""SIGTERM and SIGINT: graceful shutdown within a deadline.

A signal handler runs between any two instructions of the main thread, possibly while that thread holds a lock. It
therefore only puts the signal into a queue. A second thread runs the shutdown steps, each after its delay. It exits the
process at the deadline or at a second signal. Exiting is safe at any moment: the next run ignores everything that is
not recorded in the ledger.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Self

from sink_job.api.errors import TransientError

DEADLINE_S = 10.0
"""Deadline of a graceful shutdown. The default grace period of Kubernetes is 30 s."""

STARTING_DEADLINE_S = 2.0
"""Deadline before `begin`: the ledger is not claimed yet, and a starting JVM does not react to signals."""

_log = logging.getLogger(__name__)


class StopSignals:
    """Runs the steps of `on_stop` at SIGTERM and SIGINT while the context is active. Use it in the main thread."""

    def __init__(self, *, deadline_s: float = DEADLINE_S, exit_at_once: Callable[[int], object] = os._exit) -> None:
        self._deadline_s = deadline_s
        self._exit = exit_at_once
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._steps: list[tuple[float, Callable[[], object]]] = []
        self._lock = threading.Lock()
        self._requested = False
        self._started = False
        self._previous: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """True after a signal."""
        return self._requested

    def begin(self) -> bool:
        """Marks the start of work that needs a graceful shutdown. Returns False after a signal."""
        with self._lock:
            self._started = not self._requested
            return self._started

    def on_stop(self, step: Callable[[], object], *, after_s: float = 0.0) -> None:
        """Registers `step` to run in another thread, `after_s` seconds after the first signal.

        It runs immediately if a signal has already been received. `step` must be callable at any time.
        """
        with self._lock:
            self._steps.append((after_s, step))
            late = self._requested
        if late:
            _run(step)

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, name="s3sink-signals", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signals.put(0)
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals.put(number)

    def _watch(self) -> None:
        number = self._signals.get()
        if not number:
            return
        with self._lock:
            self._requested = True
            deadline_s = self._deadline_s if self._started else min(STARTING_DEADLINE_S, self._deadline_s)
            steps = sorted([*self._steps, (deadline_s, self._deadline_exceeded)], key=lambda step: step[0])
        _log.info("received %s: stopping; send it again to exit immediately", signal.Signals(number).name)
        received_at = time.monotonic()
        for after_s, step in steps:
            try:
                again = self._signals.get(timeout=max(0.0, received_at + after_s - time.monotonic()))
            except Empty:
                _run(step)
                continue
            if again:
                _log.warning("received %s again: exiting; the next run recovers", signal.Signals(again).name)
                self._exit(TransientError.exit_code)
            return

    def _deadline_exceeded(self) -> None:
        if self._started:
            _log.warning("graceful shutdown exceeded %d s: exiting; the next run recovers", self._deadline_s)
        else:
            _log.info("stopped during start-up, before the ledger was claimed")
        if _log.isEnabledFor(logging.DEBUG):
            faulthandler.dump_traceback(all_threads=True)
        self._exit(0)


def _run(step: Callable[[], object]) -> None:
    try:
        step()
    except Exception as error:
        _log.info("while stopping: %s", error)
