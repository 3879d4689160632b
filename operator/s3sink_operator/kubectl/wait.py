"""Waits until an action is done, and says honestly how that ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from s3sink_operator.kubectl.actions import Action
from s3sink_operator.kubectl.view import condition
from s3sink_operator.types import Json

POLL_S: Final = 0.5


class WaitResult(IntEnum):
    """How it ended, as the exit code."""

    DONE = 0
    TIMED_OUT = 3
    FAILED = 4


@dataclass(frozen=True, kw_only=True)
class WaitOutcome:
    """How it ended; `why` where it is not done, `sink` as it was seen last."""

    result: WaitResult
    message: str
    sink: Json


def wait_for(
    action: Action,
    before: Json,
    look: Callable[[], tuple[Json, Json | None] | None],
    *,
    timeout_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    tell: Callable[[str], None],
) -> WaitOutcome:
    """Looks at the sink and its driver pod until the action is done, has failed, or `timeout_s` are over.

    What a status of `before` says is no trouble of this action: it has to have been written since. `look` gives None
    where nothing can be seen for the moment. `clock` in seconds.
    """
    end = clock() + timeout_s
    said, sink = "", before
    while True:
        seen = look()
        if seen is None:
            if clock() >= end:
                why = f"not known after {timeout_s:g} s: the API server does not answer"
                return WaitOutcome(result=WaitResult.TIMED_OUT, message=why, sink=sink)
            sleep(POLL_S)
            continue
        sink, driver = seen
        if action.is_done(sink, driver):
            return WaitOutcome(result=WaitResult.DONE, message="", sink=sink)
        fresh = sink.get("status") != before.get("status")
        trouble = action.failure_reason(sink) if fresh else None
        if trouble is not None:
            return WaitOutcome(result=WaitResult.FAILED, message=trouble, sink=sink)
        ready = condition(sink, "Ready")
        now = f"{ready.get('reason')}: {ready.get('message')}"
        if fresh and ready and now != said:
            tell(now)
            said = now
        if clock() >= end:
            why = f"not done after {timeout_s:g} s; the last word is {now}" if ready else "no operator has looked at it"
            return WaitOutcome(result=WaitResult.TIMED_OUT, message=why, sink=sink)
        sleep(POLL_S)
