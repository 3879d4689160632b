"""What is remembered of a sink's attempts and failures, brought up to what is seen now.

The status is the only memory. Each end is counted once: a failure carries what it was of, a pod's uid or the time of a
refusal. What was lost with a status is found again in the labels of pods, or costs a pause that is not waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from s3sink_operator import backoff, memory_sizing, names, pod_failures
from s3sink_operator.decide.memory_status import sizing_state
from s3sink_operator.memory_sizing import Bounds, SizingState
from s3sink_operator.names import Component
from s3sink_operator.objects import RESTARTED_FOR_ANNOTATION, has_executors, memory_limit, sized_memory
from s3sink_operator.pod_failures import OOM_KILLED, PodFailure
from s3sink_operator.types import (
    FINALIZERS_KIND,
    FailureCategory,
    Json,
    Observed,
    annotation,
    attempt_number,
    desired_state,
    is_terminating,
    to_ms,
    to_timestamp,
    uid_of,
)
from sink_job.api import enums
from sink_job.api.errors import OutOfMemory
from sink_job.api.report import Report, RunState

POD_DISAPPEARED = "Gone"
_MAX_EXECUTOR_ATTEMPT = 10**9
"""Anyone may give a pod an executor's labels: a number so large is no attempt's."""


@dataclass(frozen=True, kw_only=True)
class DriverRevision:
    """What a driver is started for: its settings, and the restart that was asked for."""

    spec_hash: str
    restart: str | None = None

    def matches(self, spec_hash: str | None, restart: str | None) -> bool:
        """Whether a driver with these needs no restart. A restart annotation that is taken away asks for nothing."""
        return spec_hash == self.spec_hash and self.restart in (None, restart)

    def matches_pod(self, pod: Json) -> bool:
        return self.matches(annotation(pod, names.SPEC_HASH_ANNOTATION), annotation(pod, RESTARTED_FOR_ANNOTATION))


@dataclass(frozen=True, kw_only=True)
class AttemptHistory:
    """`attempts` newest first and `retry` as the status tells them; `state` of the memory; `next` attempt's number."""

    attempts: Sequence[Json]
    retry: Json | None
    sizing: SizingState
    next_attempt: int

    @property
    def number(self) -> int:
        """Of the newest attempt that is told; 0 before the first."""
        return int(self.attempts[0].get("number", 0)) if self.attempts else 0

    def with_end(self, pod: Json, reason: str, message: str, now: int) -> AttemptHistory:
        """The story in which the attempt of `pod` was ended by us."""
        entry = {"ended": to_timestamp(now), "reason": reason, "message": message}
        return replace(self, attempts=_update_newest(_with_attempt(self.attempts, pod), entry))


def update_history(
    seen: Observed, status: Json, key: DriverRevision | None, bounds: Bounds | None, now: int
) -> AttemptHistory:
    """What is remembered, and what this look adds to it. `seen.driver` and `seen.task` are ours, or None."""
    attempts: Sequence[Json] = tuple(status.get("attempts") or ())
    retry = _current_retry(status.get("retry"), key)
    state = sizing_state(status)
    driver = seen.driver
    if driver is not None:
        attempts = _with_driver(attempts, driver, now)
        failure = pod_failures.termination_failure(driver)
        known: Json = (status.get("attempts") or ({},))[0]
        told = known.get("number") == _number(driver) and "ended" in known
        if failure is not None and not is_terminating(driver) and not told:
            at = failure.ended_ms or now
            attempts = _update_newest(attempts, _end_entry(failure, at, status))
            started = to_ms(driver.get("metadata", {}).get("creationTimestamp"))
            ran_ms = 0 if started is None else max(0, at - started)
            if key is not None and key.matches_pod(driver):
                retry = _record_failure(
                    retry,
                    failure,
                    of=uid_of(driver),
                    component=Component.DRIVER,
                    ran_ms=ran_ms,
                    now=now,
                    seen=seen,
                    key=key,
                )
            state = _learn_from_oom(state, driver, failure, bounds, now)
        elif failure is None and retry is not None and _is_stable(driver, retry, seen, now):
            retry = None
    elif attempts and "ended" not in attempts[0]:
        entry = {
            "ended": to_timestamp(now),
            "reason": POD_DISAPPEARED,
            "message": "the driver pod is gone, and nobody said why",
        }
        attempts = _update_newest(attempts, entry)
    retry = _with_operation(retry, seen, key, now)
    retry = _with_rejection(retry, seen, key, now)
    return AttemptHistory(attempts=attempts, retry=retry, sizing=state, next_attempt=_next_attempt(attempts, seen))


def backoff_left_ms(retry: Json | None, component: Component, now: int) -> int | None:
    """Milliseconds until the next try of the driver or the task; None if there is nothing to wait for."""
    if retry is None or retry.get("pod") != component.value:
        return None
    return backoff.left_ms(to_ms(retry.get("nextTry")), now)


def _with_driver(attempts: Sequence[Json], driver: Json, now: int) -> Sequence[Json]:
    """With the driver's own attempt, once it has run: one that never did leaves no trace."""
    phase = (driver.get("status") or {}).get("phase")
    if phase in (None, "Pending"):
        return attempts
    seen_before = bool(attempts) and attempts[0].get("number") == _number(driver)
    attempts = _with_attempt(attempts, driver)
    ended = pod_failures.termination_failure(driver) is not None
    if is_terminating(driver) and "ended" not in attempts[0]:
        told = {
            "ended": to_timestamp(now),
            "reason": "Deleted",
            "message": f"the driver pod was deleted, {'not by the operator' if seen_before else 'as soon as it ran'}",
        }
        return _update_newest(attempts, told)
    if (
        not is_terminating(driver) and not ended and "ended" in attempts[0]
    ):  # we meant to end it, and did not come to it
        kept = {name: value for name, value in attempts[0].items() if name in ("number", "started")}
        return (kept, *attempts[1:])
    return attempts


def _with_attempt(attempts: Sequence[Json], pod: Json) -> Sequence[Json]:
    number = _number(pod)
    if attempts and attempts[0].get("number") == number:
        return attempts
    return ({"number": number, "started": pod.get("metadata", {}).get("creationTimestamp")}, *attempts)


def _update_newest(attempts: Sequence[Json], entry: Json) -> Sequence[Json]:
    return ({**attempts[0], **{name: value for name, value in entry.items() if value is not None}}, *attempts[1:])


def _end_entry(failure: PodFailure, at: int, status: Json) -> Json:
    stood = failure.round if failure.round is not None else (status.get("connector") or {}).get("round")
    return {
        "ended": to_timestamp(at),
        "reason": failure.reason,
        "message": failure.message,
        "exitCode": failure.exit_code,
        "next": None if stood is None else f"after round {stood} of the ledger",
    }


def _learn_from_oom(
    state: SizingState, driver: Json, failure: PodFailure, bounds: Bounds | None, now: int
) -> SizingState:
    """What a kill for want of memory teaches, of the process that was killed: the driver, or what runs tasks."""
    if failure.reason == OOM_KILLED and has_executors(driver):
        return memory_sizing.driver_after_oom(state, current=memory_limit(driver) or 0, now=now)
    if failure.reason in (OOM_KILLED, OutOfMemory.reason) and bounds is not None:
        return memory_sizing.after_oom(state, current=sized_memory(driver) or 0, bounds=bounds, now=now)
    return state


def _record_failure(
    retry: Json | None,
    failure: PodFailure,
    *,
    of: str,
    component: Component,
    ran_ms: int,
    now: int,
    seen: Observed,
    key: DriverRevision | None,
) -> Json:
    """The retry section after one more failure. The same one is counted once."""
    if retry is not None and retry.get("of") == of:
        return retry
    if retry is not None and retry.get("pod") != component.value:
        retry = None
    before = int((retry or {}).get("failures") or 0)
    count = backoff.failures_after(before, kind=failure.category, ran_ms=ran_ms)
    pause = backoff.pause_ms(count, kind=failure.category, uid=uid_of(seen.sink))
    made: dict[str, Any] = {
        "failures": count,
        "nextTry": to_timestamp(now + pause),
        "kind": failure.category.value,
        "reason": failure.reason,
        "message": failure.message,
        "pod": component.value,
        "of": of,
    }
    if key is not None:
        made["specHash"] = key.spec_hash
        made |= {} if key.restart is None else {"restart": key.restart}
    return made


def _with_operation(retry: Json | None, seen: Observed, key: DriverRevision | None, now: int) -> Json | None:
    if seen.operation is None or is_terminating(seen.operation) or pod_failures.succeeded(seen.operation):
        of_task = retry is not None and retry.get("pod") == Component.OPERATION.value
        return None if of_task and seen.driver is not None else retry  # nobody asks for it any more
    failure = pod_failures.termination_failure(seen.operation)
    if failure is None:
        return retry
    made_for = annotation(seen.operation, names.SPEC_HASH_ANNOTATION)
    if retry is not None and retry.get("operationHash") != made_for:
        retry = None  # of another request: this one's failures are counted for themselves
    made = _record_failure(
        retry, failure, of=uid_of(seen.operation), component=Component.OPERATION, ran_ms=0, now=now, seen=seen, key=key
    )
    return made | {"operationHash": made_for}


def _with_rejection(retry: Json | None, seen: Observed, key: DriverRevision | None, now: int) -> Json | None:
    refusals = [
        refusal
        for refusal in seen.rejections
        if refusal.kind not in ("pods/resize", "S3Sink", FINALIZERS_KIND, "Event")
    ]
    if not refusals or seen.driver is not None:
        return retry
    last = max(refusals, key=lambda refusal: (refusal.at_ms, refusal.kind, refusal.name))
    failure = pod_failures.api_rejection(last)
    of_task = is_terminating(seen.sink) or desired_state(seen.sink)[0] is enums.State.STOPPED
    component = Component.OPERATION if of_task else Component.DRIVER
    return _record_failure(
        retry, failure, of=f"refusal at {last.at_ms}", component=component, ran_ms=0, now=last.at_ms, seen=seen, key=key
    )


def _current_retry(retry: Any, key: DriverRevision | None) -> Json | None:
    """What was remembered of failures, unless it was under other settings: those are tried at once."""
    if not isinstance(retry, dict) or not retry:
        return None
    if key is not None and not key.matches(retry.get("specHash"), retry.get("restart")):
        return None
    return retry


def _is_stable(driver: Json, retry: Json, seen: Observed, now: int) -> bool:
    if not isinstance(seen.report, Report) or seen.report.state is not RunState.RUNNING:
        return False
    started = to_ms(driver.get("metadata", {}).get("creationTimestamp"))
    kind = FailureCategory(retry.get("kind", FailureCategory.INFRASTRUCTURE))
    return started is not None and now - started >= backoff.stable_after_ms(int(retry.get("failures") or 1), kind=kind)


def _number(pod: Json) -> int:
    return attempt_number(pod, names.ATTEMPT_LABEL)


def _next_attempt(attempts: Sequence[Json], seen: Observed) -> int:
    known = [int(each.get("number", 0)) for each in attempts]
    of_executors = [number for number in map(_number, seen.executors) if number <= _MAX_EXECUTOR_ATTEMPT]
    return max([*known, *of_executors], default=0) + 1
