"""SIGTERM and Ctrl-C: an orderly end within seconds, and a certain one.

A signal handler runs between any two steps of the main thread, maybe while that holds a lock, so it only drops the
signal into a queue. A thread takes it from there: it runs the steps of the end, each after its delay, and when the
process is still there at the deadline, or a second signal comes, ends it at once. That is safe at any moment: what is
not recorded in the ledger never happened.
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
"""How long an orderly end may take; Kubernetes gives 30 s before it kills."""

STARTING_DEADLINE_S = 2.0
"""How long it may take before `begin`: nothing is claimed yet, and a JVM that starts does not listen."""

_log = logging.getLogger(__name__)


class StopSignals:
    """While it is entered, SIGTERM and SIGINT run the steps of `on_stop`. To be used in the main thread."""

    def __init__(self, *, deadline_s: float = DEADLINE_S, exit_at_once: Callable[[int], object] = os._exit) -> None:
        self._deadline_s = deadline_s
        self._exit = exit_at_once
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._steps: list[tuple[float, Callable[[], object]]] = []
        self._lock = threading.Lock()
        self._requested = False
        self._begun = False
        self._before: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self._requested

    def begin(self) -> bool:
        """From here on there is something to end in order; False when a signal has come before."""
        with self._lock:
            self._begun = not self._requested
            return self._begun

    def on_stop(self, step: Callable[[], object], *, after_s: float = 0.0) -> None:
        """`step` runs, in another thread, `after_s` seconds behind the first signal; at once if that is past.

        It must bear being called at any time from now on.
        """
        with self._lock:
            self._steps.append((after_s, step))
            late = self._requested
        if late:
            _run(step)

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._caught)
        threading.Thread(target=self._watch, name="s3sink-signals", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signals.put(0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self._signals.put(number)

    def _watch(self) -> None:
        number = self._signals.get()
        if not number:
            return
        with self._lock:
            self._requested = True
            deadline_s = self._deadline_s if self._begun else min(STARTING_DEADLINE_S, self._deadline_s)
            steps = sorted([*self._steps, (deadline_s, self._overdue)], key=lambda step: step[0])
        _log.info("%s: stopping; once more ends at once", signal.Signals(number).name)
        begun = time.monotonic()
        for after_s, step in steps:
            try:
                again = self._signals.get(timeout=max(0.0, begun + after_s - time.monotonic()))
            except Empty:
                _run(step)
                continue
            if again:
                _log.warning("%s again: ended at once; the next start tidies up", signal.Signals(again).name)
                self._exit(TransientError.exit_code)
            return

    def _overdue(self) -> None:
        if self._begun:
            _log.warning("not ended in order within %d s: ended at once; the next start tidies up", self._deadline_s)
        else:
            _log.info("ended while starting: nothing was begun")
        if _log.isEnabledFor(logging.DEBUG):
            faulthandler.dump_traceback(all_threads=True)
        self._exit(0)


def _run(step: Callable[[], object]) -> None:
    try:
        step()
    except Exception as error:
        _log.info("while stopping: %s", error)
