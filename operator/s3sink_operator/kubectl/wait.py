"""Waits until an action is completed, has failed, or times out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from s3sink_operator.kubectl.actions import Action
from s3sink_operator.kubectl.view import condition, condition_text
from s3sink_operator.types import Json

POLL_S: Final = 0.5


class WaitResult(IntEnum):
    """The result of waiting, as an exit code."""

    DONE = 0
    TIMED_OUT = 3
    FAILED = 4


@dataclass(frozen=True, kw_only=True)
class WaitOutcome:
    """`message`: why the action is not done; `sink`: as it was observed last."""

    result: WaitResult
    message: str
    sink: Json


def wait_for(
    action: Action,
    before: Json,
    poll: Callable[[], tuple[Json, Json | None] | None],
    *,
    timeout_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    report: Callable[[str], None],
) -> WaitOutcome:
    """Polls the sink and its driver pod until the action is done, has failed, or `timeout_s` have passed.

    A failure in the status of `before` is not of this action: the status has to be written since. `poll` returns None
    while the API server does not answer. `clock` in seconds. `report` receives each new reason and message.
    """
    end = clock() + timeout_s
    reported, sink = "", before
    while True:
        observed = poll()
        if observed is None:
            if clock() >= end:
                message = f"unknown after {timeout_s:g} s: the API server does not answer"
                return WaitOutcome(result=WaitResult.TIMED_OUT, message=message, sink=sink)
            sleep(POLL_S)
            continue
        sink, driver = observed
        if action.is_done(sink, driver):
            return WaitOutcome(result=WaitResult.DONE, message="", sink=sink)
        is_new = sink.get("status") != before.get("status")
        failure = action.failure_reason(sink) if is_new else None
        if failure is not None:
            return WaitOutcome(result=WaitResult.FAILED, message=failure, sink=sink)
        ready = condition(sink, "Ready")
        current = "no operator has reconciled the sink" if ready is None else condition_text(ready)
        if is_new and ready is not None and current != reported:
            report(current)
            reported = current
        if clock() >= end:
            message = f"not done after {timeout_s:g} s; {current}"
            return WaitOutcome(result=WaitResult.TIMED_OUT, message=message, sink=sink)
        sleep(POLL_S)
