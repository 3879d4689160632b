"""What is remembered of a sink's attempts and failures, brought up to what is seen now.

The status is the only memory. Each end is counted once: a failure carries what it was of, a pod's uid or the time of a
refusal. What was lost with a status is found again in the labels of pods, or costs a pause that is not waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from s3sink_operator import backoff, memory_sizing, names, pod_failures
from s3sink_operator.decide.memory_status import state_of
from s3sink_operator.memory_sizing import Bounds, State
from s3sink_operator.names import Component
from s3sink_operator.objects import RESTARTED_FOR, has_executors, memory_of, size_of
from s3sink_operator.pod_failures import OOM_KILLED, Failure
from s3sink_operator.types import (
    FINALIZERS,
    Json,
    Kind,
    Observed,
    annotation,
    attempt_of,
    is_ending,
    to_ms,
    to_stamp,
    uid_of,
    wanted_state,
)
from sink_job.api import enums
from sink_job.api.errors import OutOfMemory
from sink_job.api.report import Report, RunState

GONE = "Gone"
_PLAUSIBLE = 10**9
"""Anyone may give a pod an executor's labels: a number so large is no attempt's."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """What a driver is started for: its settings, and the restart that was asked for."""

    spec_hash: str
    restart: str | None = None

    def is_met_by(self, spec_hash: str | None, restart: str | None) -> bool:
        """Whether a driver with these needs no restart. A restart annotation that is taken away asks for nothing."""
        return spec_hash == self.spec_hash and self.restart in (None, restart)

    def fits(self, pod: Json) -> bool:
        return self.is_met_by(annotation(pod, names.SPEC_HASH), annotation(pod, RESTARTED_FOR))


@dataclass(frozen=True, kw_only=True)
class Story:
    """`attempts` newest first and `retry` as the status tells them; `state` of the memory; `next` attempt's number."""

    attempts: Sequence[Json]
    retry: Json | None
    state: State
    next: int

    @property
    def number(self) -> int:
        """Of the newest attempt that is told; 0 before the first."""
        return int(self.attempts[0].get("number", 0)) if self.attempts else 0

    def ended(self, pod: Json, reason: str, message: str, now: int) -> Story:
        """The story in which the attempt of `pod` was ended by us."""
        entry = {"ended": to_stamp(now), "reason": reason, "message": message}
        return replace(self, attempts=_amended(_with_attempt(self.attempts, pod), entry))


def story_of(seen: Observed, status: Json, key: Key | None, bounds: Bounds | None, now: int) -> Story:
    """What is remembered, and what this look adds to it. `seen.driver` and `seen.task` are ours, or None."""
    attempts: Sequence[Json] = tuple(status.get("attempts") or ())
    retry = _current(status.get("retry"), key)
    state = state_of(status)
    driver = seen.driver
    if driver is not None:
        attempts = _seen(attempts, driver, now)
        failure = pod_failures.ended(driver)
        known: Json = (status.get("attempts") or ({},))[0]
        told = known.get("number") == _number(driver) and "ended" in known
        if failure is not None and not is_ending(driver) and not told:
            at = failure.ended_ms or now
            attempts = _amended(attempts, _end(failure, at, status))
            started = to_ms(driver.get("metadata", {}).get("creationTimestamp"))
            ran_ms = 0 if started is None else max(0, at - started)
            if key is not None and key.fits(driver):
                retry = _failed(
                    retry,
                    failure,
                    of=uid_of(driver),
                    component=Component.DRIVER,
                    ran_ms=ran_ms,
                    now=now,
                    seen=seen,
                    key=key,
                )
            state = _taught(state, driver, failure, bounds, now)
        elif failure is None and retry is not None and _is_stable(driver, retry, seen, now):
            retry = None
    elif attempts and "ended" not in attempts[0]:
        entry = {"ended": to_stamp(now), "reason": GONE, "message": "the driver pod is gone, and nobody said why"}
        attempts = _amended(attempts, entry)
    retry = _with_task(retry, seen, key, now)
    retry = _with_refusal(retry, seen, key, now)
    return Story(attempts=attempts, retry=retry, state=state, next=_next(attempts, seen))


def waits(retry: Json | None, component: Component, now: int) -> int | None:
    """Milliseconds until the next try of the driver or the task; None if there is nothing to wait for."""
    if retry is None or retry.get("pod") != component.value:
        return None
    return backoff.left_ms(to_ms(retry.get("nextTry")), now)


def _seen(attempts: Sequence[Json], driver: Json, now: int) -> Sequence[Json]:
    """With the driver's own attempt, once it has run: one that never did leaves no trace."""
    phase = (driver.get("status") or {}).get("phase")
    if phase in (None, "Pending"):
        return attempts
    seen_before = bool(attempts) and attempts[0].get("number") == _number(driver)
    attempts = _with_attempt(attempts, driver)
    ended = pod_failures.ended(driver) is not None
    if is_ending(driver) and "ended" not in attempts[0]:
        told = {
            "ended": to_stamp(now),
            "reason": "Deleted",
            "message": f"the driver pod was deleted, {'not by the operator' if seen_before else 'as soon as it ran'}",
        }
        return _amended(attempts, told)
    if not is_ending(driver) and not ended and "ended" in attempts[0]:  # we meant to end it, and did not come to it
        kept = {name: value for name, value in attempts[0].items() if name in ("number", "started")}
        return (kept, *attempts[1:])
    return attempts


def _with_attempt(attempts: Sequence[Json], pod: Json) -> Sequence[Json]:
    number = _number(pod)
    if attempts and attempts[0].get("number") == number:
        return attempts
    return ({"number": number, "started": pod.get("metadata", {}).get("creationTimestamp")}, *attempts)


def _amended(attempts: Sequence[Json], entry: Json) -> Sequence[Json]:
    return ({**attempts[0], **{name: value for name, value in entry.items() if value is not None}}, *attempts[1:])


def _end(failure: Failure, at: int, status: Json) -> Json:
    stood = failure.round if failure.round is not None else (status.get("connector") or {}).get("round")
    return {
        "ended": to_stamp(at),
        "reason": failure.reason,
        "message": failure.sentence,
        "exitCode": failure.exit_code,
        "next": None if stood is None else f"after round {stood} of the ledger",
    }


def _taught(state: State, driver: Json, failure: Failure, bounds: Bounds | None, now: int) -> State:
    """What a kill for want of memory teaches, of the process that was killed: the driver, or what runs tasks."""
    if failure.reason == OOM_KILLED and has_executors(driver):
        return memory_sizing.driver_killed(state, current=size_of(driver) or 0, now=now)
    if failure.reason in (OOM_KILLED, OutOfMemory.reason) and bounds is not None:
        return memory_sizing.killed(state, current=memory_of(driver) or 0, bounds=bounds, now=now)
    return state


def _failed(
    retry: Json | None,
    failure: Failure,
    *,
    of: str,
    component: Component,
    ran_ms: int,
    now: int,
    seen: Observed,
    key: Key | None,
) -> Json:
    """The retry section after one more failure. The same one is counted once."""
    if retry is not None and retry.get("of") == of:
        return retry
    if retry is not None and retry.get("pod") != component.value:
        retry = None
    before = int((retry or {}).get("failures") or 0)
    count = backoff.failures_after(before, kind=failure.kind, ran_ms=ran_ms)
    pause = backoff.pause_ms(count, kind=failure.kind, uid=uid_of(seen.sink))
    made: dict[str, Any] = {
        "failures": count,
        "nextTry": to_stamp(now + pause),
        "kind": failure.kind.value,
        "reason": failure.reason,
        "message": failure.sentence,
        "pod": component.value,
        "of": of,
    }
    if key is not None:
        made["specHash"] = key.spec_hash
        made |= {} if key.restart is None else {"restart": key.restart}
    return made


def _with_task(retry: Json | None, seen: Observed, key: Key | None, now: int) -> Json | None:
    if seen.task is None or is_ending(seen.task) or pod_failures.succeeded(seen.task):
        of_task = retry is not None and retry.get("pod") == Component.TASK.value
        return None if of_task and seen.driver is not None else retry  # nobody asks for it any more
    failure = pod_failures.ended(seen.task)
    if failure is None:
        return retry
    made_for = annotation(seen.task, names.SPEC_HASH)
    if retry is not None and retry.get("taskHash") != made_for:
        retry = None  # of another request: this one's failures are counted for themselves
    made = _failed(
        retry, failure, of=uid_of(seen.task), component=Component.TASK, ran_ms=0, now=now, seen=seen, key=key
    )
    return made | {"taskHash": made_for}


def _with_refusal(retry: Json | None, seen: Observed, key: Key | None, now: int) -> Json | None:
    refusals = [
        refusal for refusal in seen.refusals if refusal.kind not in ("pods/resize", "S3Sink", FINALIZERS, "Event")
    ]
    if not refusals or seen.driver is not None:
        return retry
    last = max(refusals, key=lambda refusal: (refusal.at_ms, refusal.kind, refusal.name))
    failure = pod_failures.refused(last)
    of_task = is_ending(seen.sink) or wanted_state(seen.sink)[0] is enums.DesiredState.STOPPED
    component = Component.TASK if of_task else Component.DRIVER
    return _failed(
        retry, failure, of=f"refusal at {last.at_ms}", component=component, ran_ms=0, now=last.at_ms, seen=seen, key=key
    )


def _current(retry: Any, key: Key | None) -> Json | None:
    """What was remembered of failures, unless it was under other settings: those are tried at once."""
    if not isinstance(retry, dict) or not retry:
        return None
    if key is not None and not key.is_met_by(retry.get("specHash"), retry.get("restart")):
        return None
    return retry


def _is_stable(driver: Json, retry: Json, seen: Observed, now: int) -> bool:
    if not isinstance(seen.report, Report) or seen.report.state is not RunState.RUNNING:
        return False
    started = to_ms(driver.get("metadata", {}).get("creationTimestamp"))
    kind = Kind(retry.get("kind", Kind.INFRASTRUCTURE))
    return started is not None and now - started >= backoff.spell_ms(int(retry.get("failures") or 1), kind=kind)


def _number(pod: Json) -> int:
    return attempt_of(pod, names.ATTEMPT)


def _next(attempts: Sequence[Json], seen: Observed) -> int:
    known = [int(each.get("number", 0)) for each in attempts]
    of_executors = [number for number in map(_number, seen.executors) if number <= _PLAUSIBLE]
    return max([*known, *of_executors], default=0) + 1
