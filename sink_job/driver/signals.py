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
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Self

from sink_job.api.enums import StopAction
from sink_job.api.errors import TransientError

DEADLINE_S = 10.0
"""Deadline of a graceful shutdown. The default grace period of Kubernetes is 30 s."""

PUBLISH_DEADLINE_S = 45.0
"""Deadline of a shutdown that publishes. With the wait for the operator's answer it is below the grace period of 60 s
that the operator sets."""

STARTING_DEADLINE_S = 2.0
"""Deadline before `begin`: the ledger is not claimed yet, and a starting JVM does not react to signals."""

ANSWER_TIMEOUT_S = 10.0
"""Maximum time after SIGTERM without an answer of the operator. The driver then stops without publishing."""

_ANSWER_POLL_S = 0.2

_log = logging.getLogger(__name__)


class StopInstruction:
    """What the driver does at SIGTERM: the last instruction of the operator, which sets it with its polls of `/report`.
    Thread-safe.

    A deleted namespace ends the driver at once, and no other pod can be created in it. Only the operator knows why the
    pod ends, and the driver has no permissions to ask the API server. So with deletionPolicy Publish the driver
    continues after SIGTERM until the operator has answered, for at most `ANSWER_TIMEOUT_S`.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._action = StopAction.EXIT
        self._stopping = False

    def set(self, text: str) -> None:
        """Sets the action. Unknown text is ignored, so is anything after the answer."""
        if text not in list(StopAction):
            return
        with self._changed:
            if self._stopping and self._action is not StopAction.ASK:
                return
            self._action = StopAction(text)
            self._changed.notify_all()

    def answered(self, timeout_s: float) -> StopAction:
        """The action at SIGTERM; waits for the answer for up to `timeout_s` seconds. ASK without an answer."""
        with self._changed:
            self._stopping = True
            self._changed.wait_for(lambda: self._action is not StopAction.ASK, timeout_s)
            return self._action


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
        self._instruction: StopInstruction | None = None
        self._publish: Callable[[], object] | None = None
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

    def publish_if(self, instruction: StopInstruction, publish: Callable[[], object]) -> None:
        """Registers `publish`, which replaces the steps of `on_stop` if `instruction` is Publish at a signal."""
        with self._lock:
            self._instruction, self._publish = instruction, publish

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
        publish = self._publish_requested()
        if publish is not None:
            self._run_steps([(0.0, publish), (PUBLISH_DEADLINE_S, self._deadline_exceeded)])
            return
        with self._lock:
            self._requested = True
            deadline_s = self._deadline_s if self._started else min(STARTING_DEADLINE_S, self._deadline_s)
            steps = sorted([*self._steps, (deadline_s, self._deadline_exceeded)], key=lambda step: step[0])
        _log.info("received %s: stopping; send it again to exit immediately", signal.Signals(number).name)
        self._run_steps(steps)

    def _publish_requested(self) -> Callable[[], object] | None:
        """The step that publishes, if the operator has asked for that; None otherwise, and before `begin`."""
        with self._lock:
            instruction, publish, started = self._instruction, self._publish, self._started
        if instruction is None or publish is None or not started:
            return None
        until = time.monotonic() + ANSWER_TIMEOUT_S
        while (action := instruction.answered(_ANSWER_POLL_S)) is StopAction.ASK and time.monotonic() < until:
            if not self._signals.empty():
                return None
        if action is not StopAction.PUBLISH:
            return None
        with self._lock:
            self._requested = True
        return publish

    def _run_steps(self, steps: Sequence[tuple[float, Callable[[], object]]]) -> None:
        """Runs each step after its delay in seconds; a second signal exits the process."""
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
            _log.warning("graceful shutdown exceeded its deadline: exiting; the next run recovers")
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
