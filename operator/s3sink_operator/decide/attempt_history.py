"""The attempts and failures of a sink: read from the previous status, updated with what is observed now.

The status is the only memory. Each end is counted once: a failure carries the uid of its pod or the time of its
rejection. After the loss of a status, the labels of pods give the number of the next attempt; a back-off is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from s3sink_operator import names
from s3sink_operator.failures import backoff, pod_failures
from s3sink_operator.failures.pod_failures import OOM_KILLED, PodFailure
from s3sink_operator.names import Component
from s3sink_operator.objects import (
    RESTARTED_FOR_ANNOTATION,
    current_allocation,
    has_executors,
    memory_limit,
    sized_memory,
)
from s3sink_operator.reasons import Reason
from s3sink_operator.sizing import memory_sizing
from s3sink_operator.sizing.memory_sizing import Bounds, SizingState
from s3sink_operator.status.memory_status import sizing_state
from s3sink_operator.status.progress_model import MAX_MOST_LAGGING, SinkProgress
from s3sink_operator.status.status_model import Attempt, Position, Retry, S3SinkStatus
from s3sink_operator.status.status_update import MAX_MESSAGE
from s3sink_operator.types import (
    FINALIZERS_KIND,
    REPLACEMENT_KIND,
    Json,
    Observed,
    annotation,
    attempt_number,
    desired_state,
    is_terminating,
    to_ms,
    uid_of,
)
from sink_job.api import enums
from sink_job.api.errors import OutOfMemory
from sink_job.api.report import FinalReport, Report, RunState

_MAX_EXECUTOR_ATTEMPT = 10**9
"""Anyone may give a pod an executor's labels: a larger number is not an attempt's."""
_MAX_NAMED: Final = 3
"""Topic-partitions that the text of a resume point names."""
_NO_RETRY_KINDS = ("pods/resize", "S3Sink", FINALIZERS_KIND, REPLACEMENT_KIND, "Event")


@dataclass(frozen=True, kw_only=True)
class DriverRevision:
    """What a driver is started with: the hash of its settings and the text of the restart annotation."""

    spec_hash: str
    restart: str | None = None

    def matches(self, spec_hash: str | None, restart: str | None) -> bool:
        """Whether a driver with these needs no restart. A removed restart annotation requests no restart."""
        return spec_hash == self.spec_hash and self.restart in (None, restart)

    def requests_restart(self, pod: Json) -> bool:
        """Whether the restart annotation changed since the start of this driver."""
        return self.restart not in (None, annotation(pod, RESTARTED_FOR_ANNOTATION))

    def matches_pod(self, pod: Json) -> bool:
        return self.matches(annotation(pod, names.SPEC_HASH_ANNOTATION), annotation(pod, RESTARTED_FOR_ANNOTATION))


@dataclass(frozen=True, kw_only=True)
class ObservedFailure:
    """A failure that the previous status does not have. `attempt`: number of the driver's attempt, None for others."""

    reason: str
    message: str
    attempt: int | None = None
    exit_code: int | None = None


@dataclass(frozen=True, kw_only=True)
class AttemptHistory:
    """`attempts`, newest first, and `retry` as for the status; `sizing` of the memory; number of the next attempt.

    `new_failure`: the failure that this pass adds.
    """

    attempts: Sequence[Attempt]
    retry: Retry | None
    sizing: SizingState
    next_attempt: int
    new_failure: ObservedFailure | None = None

    @property
    def newest(self) -> Attempt | None:
        return self.attempts[0] if self.attempts else None

    def with_end(self, pod: Json, reason: str, message: str, progress: SinkProgress, now: int) -> AttemptHistory:
        """The history in which the operator terminates the attempt of `pod`, after this progress."""
        end = Attempt(end_time=now, reason=reason, message=message, **_resume_fields(None, progress))
        return replace(self, attempts=_update_newest(_with_attempt(self.attempts, pod), end))


def update_history(
    observed: Observed, status: S3SinkStatus, revision: DriverRevision | None, bounds: Bounds | None, now: int
) -> AttemptHistory:
    """The history after this pass. `observed.driver` and `observed.operation` are owned by the sink, or None."""
    attempts: Sequence[Attempt] = tuple(status.attempts or ())
    retry = _current_retry(status.retry, revision)
    sizing = sizing_state(status.memory)
    driver, new_failure = observed.driver, None
    if driver is not None:
        known = attempts[0] if attempts else Attempt()
        is_counted = known.number == _number(driver) and known.has_ended
        attempts = _with_driver(attempts, driver, now)
        failure = pod_failures.termination_failure(driver)
        if failure is not None and not is_terminating(driver) and not is_counted:
            attempts = _update_newest(attempts, _end_entry(failure, failure.ended_ms or now, status))
            new_failure = _failed_attempt(attempts[0])
            if revision is not None and revision.matches_pod(driver):
                retry = _driver_retry(retry, failure, driver, observed, revision, now)
            allocation = current_allocation(observed.config_map)
            current = allocation.memory if allocation is not None else sized_memory(driver) or 0
            sizing = _learn_from_oom(sizing, driver, failure, bounds, now, current=current)
        elif failure is None and retry is not None and _is_stable(driver, retry, observed, now):
            retry = None
    elif attempts and not attempts[0].has_ended:
        message = "the driver pod was deleted for an unknown reason"
        attempts = _update_newest(attempts, Attempt(end_time=now, reason=Reason.POD_DISAPPEARED, message=message))
        new_failure = _failed_attempt(attempts[0])
    known_ids = {each.failure_id for each in (status.retry, retry) if each is not None}
    retry = _with_operation(retry, observed, revision, now)
    retry = _with_rejection(retry, status.retry, observed, revision)
    if retry is not None and retry.failure_id not in known_ids:
        new_failure = ObservedFailure(reason=retry.reason, message=retry.message)
    return AttemptHistory(
        attempts=attempts,
        retry=retry,
        sizing=sizing,
        next_attempt=_next_attempt(attempts, observed),
        new_failure=new_failure,
    )


def backoff_left_ms(retry: Retry | None, component: Component, now: int) -> int | None:
    """Milliseconds until the next attempt of the driver or the operation; None without a back-off."""
    if retry is None or retry.component != component.value:
        return None
    return backoff.left_ms(retry.next_attempt_time, now)


def _with_driver(attempts: Sequence[Attempt], driver: Json, now: int) -> Sequence[Attempt]:
    """With the attempt of the driver, once it has run. A driver that never ran leaves no attempt."""
    phase = (driver.get("status") or {}).get("phase")
    if phase in (None, "Pending"):
        return attempts
    is_known = bool(attempts) and attempts[0].number == _number(driver)
    attempts = _with_attempt(attempts, driver)
    has_failed = pod_failures.termination_failure(driver) is not None
    if is_terminating(driver) and not attempts[0].has_ended:
        by = "by another client" if is_known else "as soon as it ran"
        message = f"the driver pod was deleted {by}"
        return _update_newest(attempts, Attempt(end_time=now, reason=Reason.DELETED, message=message))
    if not is_terminating(driver) and not has_failed and attempts[0].has_ended:
        # The operator recorded the end, and its deletion of the pod did not succeed.
        return (Attempt(number=attempts[0].number, start_time=attempts[0].start_time), *attempts[1:])
    return attempts


def _with_attempt(attempts: Sequence[Attempt], pod: Json) -> Sequence[Attempt]:
    number = _number(pod)
    if attempts and attempts[0].number == number:
        return attempts
    return (Attempt(number=number, start_time=to_ms(pod.get("metadata", {}).get("creationTimestamp"))), *attempts)


def _update_newest(attempts: Sequence[Attempt], end: Attempt) -> Sequence[Attempt]:
    known = {name: value for name, value in end if value is not None and name != "number"}
    return (attempts[0].model_copy(update=known), *attempts[1:])


def _failed_attempt(attempt: Attempt) -> ObservedFailure:
    return ObservedFailure(
        reason=attempt.reason or "Unknown",
        message=attempt.message or "",
        attempt=attempt.number,
        exit_code=attempt.exit_code,
    )


def _end_entry(failure: PodFailure, at: int, status: S3SinkStatus) -> Attempt:
    return Attempt(
        end_time=at,
        reason=failure.reason,
        message=failure.message[:MAX_MESSAGE],
        exit_code=failure.exit_code,
        **_resume_fields(failure.report, status.progress),
    )


def _resume_fields(final: FinalReport | None, progress: SinkProgress | None) -> Json:
    """The fields of an attempt about its successor."""
    found = _resume_point_of(final, progress)
    return {} if found is None else {"resumes_from": found.text, "positions": found.positions or None}


def _learn_from_oom(
    state: SizingState, driver: Json, failure: PodFailure, bounds: Bounds | None, now: int, *, current: int
) -> SizingState:
    """The state after an out-of-memory kill of the driver, or of the process that runs tasks with `current` bytes."""
    if failure.reason == OOM_KILLED and has_executors(driver):
        return memory_sizing.driver_after_oom(state, current=memory_limit(driver) or 0, now=now)
    if failure.reason in (OOM_KILLED, OutOfMemory.reason) and bounds is not None:
        return memory_sizing.after_oom(state, current=current, bounds=bounds, now=now)
    return state


def _driver_retry(
    retry: Retry | None, failure: PodFailure, driver: Json, observed: Observed, revision: DriverRevision, now: int
) -> Retry:
    started = to_ms(driver.get("metadata", {}).get("creationTimestamp"))
    ran_ms = 0 if started is None else max(0, (failure.ended_ms or now) - started)
    return _record_failure(
        retry,
        failure,
        failure_id=uid_of(driver),
        component=Component.DRIVER,
        ran_ms=ran_ms,
        now=now,
        observed=observed,
        revision=revision,
        pod=driver,
    )


def _record_failure(
    retry: Retry | None,
    failure: PodFailure,
    *,
    failure_id: str,
    component: Component,
    ran_ms: int,
    now: int,
    observed: Observed,
    revision: DriverRevision | None,
    pod: Json | None = None,
) -> Retry:
    """The back-off after one more failure. The same failure is counted once."""
    if retry is not None and retry.failure_id == failure_id:
        return retry
    before = retry.failures if retry is not None and retry.component == component.value else 0
    failures = backoff.failures_after(before, kind=failure.category, ran_ms=ran_ms)
    pause = backoff.pause_ms(failures, kind=failure.category, uid=uid_of(observed.sink))
    return Retry(
        failures=failures,
        next_attempt_time=(now + pause) // 1000 * 1000,  # as the status keeps it
        category=failure.category,
        reason=failure.reason,
        message=failure.message[:MAX_MESSAGE],
        component=component.value,
        failure_id=failure_id,
        spec_hash=None if revision is None else revision.spec_hash,
        restart=None if revision is None else revision.restart,
        owner=failure.owner,
        take_over=None if pod is None else annotation(pod, names.TAKE_OVER_ANNOTATION),
    )


def _with_operation(retry: Retry | None, observed: Observed, revision: DriverRevision | None, now: int) -> Retry | None:
    pod = observed.operation
    if pod is None or is_terminating(pod) or pod_failures.succeeded(pod):
        of_operation = retry is not None and retry.component == Component.OPERATION.value
        return None if of_operation and observed.driver is not None else retry  # the operation is no longer requested
    failure = pod_failures.termination_failure(pod)
    if failure is None:
        return retry
    digest = annotation(pod, names.SPEC_HASH_ANNOTATION)
    if retry is not None and retry.operation_hash != digest:
        retry = None  # each operation has a back-off of its own
    recorded = _record_failure(
        retry,
        failure,
        failure_id=uid_of(pod),
        component=Component.OPERATION,
        ran_ms=0,
        now=now,
        observed=observed,
        revision=revision,
        pod=pod,
    )
    return recorded.model_copy(update={"operation_hash": digest})


def _with_rejection(
    retry: Retry | None, previous: Retry | None, observed: Observed, revision: DriverRevision | None
) -> Retry | None:
    """The back-off after a rejected write. One that `previous` has, and `retry` not any more, was ended by the user."""
    rejections = [each for each in observed.rejections if each.kind not in _NO_RETRY_KINDS]
    if not rejections or observed.driver is not None:
        return retry
    last = max(rejections, key=lambda each: (each.at_ms, each.kind, each.name))
    failure_id = f"rejection at {last.at_ms}"
    if retry is None and previous is not None and previous.failure_id == failure_id:
        return None
    stopped = desired_state(observed.sink)[0] is enums.DesiredState.STOPPED
    return _record_failure(
        retry,
        pod_failures.api_rejection(last),
        failure_id=failure_id,
        component=Component.OPERATION if stopped or is_terminating(observed.sink) else Component.DRIVER,
        ran_ms=0,
        now=last.at_ms,
        observed=observed,
        revision=revision,
    )


def _current_retry(retry: Retry | None, revision: DriverRevision | None) -> Retry | None:
    """The back-off, unless the failures happened with other settings: new settings are tried at once."""
    if retry is None or (revision is not None and not revision.matches(retry.spec_hash, retry.restart)):
        return None
    return retry


def _is_stable(driver: Json, retry: Retry, observed: Observed, now: int) -> bool:
    if not isinstance(observed.report, Report) or observed.report.state is not RunState.RUNNING:
        return False
    started = to_ms(driver.get("metadata", {}).get("creationTimestamp"))
    return started is not None and now - started >= backoff.stable_after_ms(retry.failures, kind=retry.category)


def _number(pod: Json) -> int:
    return attempt_number(pod, names.ATTEMPT_LABEL)


def _next_attempt(attempts: Sequence[Attempt], observed: Observed) -> int:
    known = [each.number for each in attempts]
    of_executors = [number for number in map(_number, observed.executors) if number <= _MAX_EXECUTOR_ATTEMPT]
    return max([*known, *of_executors], default=0) + 1


@dataclass(frozen=True, kw_only=True)
class _ResumePoint:
    """Where the next attempt resumes: the round of the ledger, and the offsets of some topic-partitions.

    `text`: for `resumesFrom`. `positions`: of the topic-partition that failed first, then the largest lags.
    """

    text: str
    positions: list[Position]


def _resume_point_of(final: FinalReport | None, progress: SinkProgress | None) -> _ResumePoint | None:
    """From the final report of a driver; without one from the last progress, after which rounds may have been
    recorded. None if the round is unknown."""
    if final is not None and final.round is not None:
        found = [Position(topic=each.topic, partition=each.partition, offset=each.next) for each in final.positions]
        return _resume_point(final.round, found, final.partitions, is_exact=True)
    if progress is None or progress.round is None:
        return None
    assigned = (progress.partitions.assigned if progress.partitions else None) or 0
    found = [
        Position(topic=each.topic, partition=each.partition, offset=each.next)
        for each in progress.most_lagging or ()
        if each.next is not None
    ]
    return _resume_point(progress.round, found, assigned, is_exact=False)


def _resume_point(number: int, positions: list[Position], partitions: int, *, is_exact: bool) -> _ResumePoint:
    text = f"after round {number} of the ledger" + ("" if is_exact else " or a later one")
    named = [f"{each.topic}-{each.partition} at offset {each.offset}" for each in positions[:_MAX_NAMED]]
    if named:
        more = partitions - len(named)
        named += [f"{more} more"] if more > 0 else []
        text += ": " + ", ".join(named) + ("" if is_exact else ", or later offsets")
    return _ResumePoint(text=text, positions=positions[:MAX_MOST_LAGGING])
