"""The annotations that an action writes, and how its completion is recognized. Pure.

The annotations are those of `names`; the actions of Argo CD write the same ones. The spec is never written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from s3sink_operator import names
from s3sink_operator.kubectl.view import condition, condition_text, stale_reason, status_of
from s3sink_operator.objects import RESTARTED_FOR_ANNOTATION
from s3sink_operator.reasons import Reason
from s3sink_operator.status.status_model import ConditionStatus
from s3sink_operator.types import Json, annotation, desired_state, is_terminating
from sink_job.api.enums import DesiredState, ResetTo
from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from sink_job.api.sections import skip_section

_RESET = "spec.offsets.reset"


class ActionNotAllowed(Exception):
    """An action that would have no effect in the current state of the sink."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """`annotations` to set, None removes one. `progress_message`: describes the action while it runs.

    `is_done(sink, driver)`: whether the action is completed, from the sink and its driver pod, if there is one.
    `failure_reason(sink)`: why the action will not complete, or None. `result(sink)`: the result of a completed action.
    """

    annotations: Mapping[str, str | None]
    progress_message: str
    is_done: Callable[[Json, Json | None], bool]
    failure_reason: Callable[[Json], str | None]
    result: Callable[[Json], str] = lambda _: ""


def restart(sink: Json, stamp: str) -> Action:
    """Starts another attempt, which resumes from the ledger. Raises ActionNotAllowed."""
    _check_allowed(sink)
    state, source = desired_state(sink)
    if state is not DesiredState.RUNNING:
        raise ActionNotAllowed(f"{source} is {state}, there is no driver to restart; use resume to start it")

    def is_done(now: Json, driver: Json | None) -> bool:
        return driver is not None and annotation(driver, RESTARTED_FOR_ANNOTATION) == stamp and _is_ready(now)

    return Action(
        annotations={names.RESTART_ANNOTATION: stamp},
        progress_message="is restarting; it resumes after the last round in its ledger",
        is_done=is_done,
        failure_reason=_stalled,
    )


def pause(sink: Json) -> Action:
    """Terminates the driver; open objects stay open. Raises ActionNotAllowed."""
    return _halt(sink, DesiredState.PAUSED, "is pausing; open objects stay open")


def stop(sink: Json) -> Action:
    """Terminates the driver and publishes the open objects. Raises ActionNotAllowed."""
    return _halt(sink, DesiredState.STOPPED, "is stopping; open objects are published first")


def resume(sink: Json) -> Action:
    """Removes the override, or overrides a spec.state of Paused or Stopped. Raises ActionNotAllowed."""
    _check_allowed(sink)
    written = (sink.get("spec") or {}).get("state", DesiredState.RUNNING.value)
    overrides = written != DesiredState.RUNNING
    return Action(
        annotations={names.STATE_ANNOTATION: DesiredState.RUNNING.value if overrides else None},
        progress_message=f"is resuming; this overrides spec.state: {written}" if overrides else "is resuming",
        is_done=lambda now, driver: (
            driver is not None and _is_ready(now) and _has_desired_state(now, DesiredState.RUNNING)
        ),
        failure_reason=_stalled,
    )


def reset_offsets(sink: Json, request: Json) -> Action:
    """Requests an offset reset, in the format of spec.offsets.reset. Raises ActionNotAllowed with all errors in it."""
    _check_allowed(sink)
    state, source = desired_state(sink)
    if state is not DesiredState.STOPPED:
        name = sink["metadata"]["name"]
        raise ActionNotAllowed(
            f"{source} is {state}, and an offset reset requires Stopped: run kubectl s3sink stop {name} --wait"
        )
    errors = _request_errors(sink, request)
    if errors:
        raise ActionNotAllowed("; ".join(errors))
    nonce = request["nonce"]

    def is_done(now: Json, _: Json | None) -> bool:
        reset = status_of(now).offset_reset
        return reset is not None and reset.nonce == nonce and reset.phase == "Completed"

    def failure_reason(now: Json) -> str | None:
        """What the API server, the operator or the user has to fix; other failures are retried."""
        found = condition(now, "OffsetsReset")
        if found is not None and (found.reason == Reason.INVALID_REQUEST or _stalled(now)):
            return condition_text(found)
        return _stalled(now)

    def result(now: Json) -> str:
        reset = status_of(now).offset_reset
        return (reset.message if reset else None) or ""

    return Action(
        annotations={names.RESET_OFFSETS_ANNOTATION: json.dumps(request)},
        progress_message="is resetting its offsets",
        is_done=is_done,
        failure_reason=failure_reason,
        result=result,
    )


def reset_request(nonce: str, *, to: ResetTo, on_existing: str, timestamp: str | None, offsets: Sequence[str]) -> Json:
    """The JSON of a request. `timestamp`: milliseconds since 1970, or a time with its zone; `offsets`:
    TOPIC:PARTITION:OFFSET each. Raises ActionNotAllowed."""
    request: Json = {"nonce": nonce, "to": to.value, "onExisting": on_existing}
    if timestamp is not None:
        request["timestamp"] = _milliseconds(timestamp)
    if offsets:
        request["partitions"] = [_partition(each) for each in offsets]
    return request


def skip(sink: Json, records: Sequence[str]) -> Action:
    """Passes over records, topic-partition@offset each, in addition to those of the annotation. The driver restarts.
    Raises ActionNotAllowed, also for a topic that the sink does not read."""
    _check_allowed(sink)
    before = annotation(sink, names.SKIP_ANNOTATION)
    text = _merged_skips(sink, before or "", records)
    edition = names.edition(int(sink["metadata"].get("generation", 0)), text)

    def is_done(now: Json, driver: Json | None) -> bool:
        started_with = None if driver is None else annotation(driver, names.GENERATION_ANNOTATION)
        return started_with is not None and started_with.endswith(edition[edition.index("/") :]) and _is_ready(now)

    def failure_reason(now: Json) -> str | None:
        """The sink may have stopped at the next invalid record."""
        found = condition(now, "InvalidAnnotation")
        return condition_text(found) if found is not None and names.SKIP_ANNOTATION in found.message else _stalled(now)

    return Action(
        annotations={names.SKIP_ANNOTATION: text},
        progress_message=f"will pass over {', '.join(records)}; its driver restarts",
        is_done=is_done,
        failure_reason=failure_reason,
    )


def _merged_skips(sink: Json, before: str, records: Sequence[str]) -> str:
    """The text of the annotation with further records. Raises ActionNotAllowed."""
    try:
        added = skip_section.parse_records(" ".join(records))
    except ValueError as error:
        raise ActionNotAllowed(str(error)) from None
    try:
        listed = skip_section.parse_records(before)
    except ValueError as error:
        raise ActionNotAllowed(f"the annotation {names.SKIP_ANNOTATION} is invalid: {error}; remove it first") from None
    spec = sink.get("spec") or {}
    in_spec = [each for each in (spec.get("errors") or {}).get("skip") or () if each in added]
    if all(each in listed or each in in_spec for each in added):
        raise ActionNotAllowed("these records are listed already: nothing was changed")
    text = skip_section.as_text([*listed, *(each for each in added if each not in listed and each not in in_spec)])
    try:
        skip_section.with_records(spec, text)
    except ValueError as error:
        raise ActionNotAllowed(str(error)) from None
    topics = (spec.get("kafka") or {}).get("topics")
    for each in added:
        if topics and each["topic"] not in topics:
            raise ActionNotAllowed(f"the sink does not read the topic {each['topic']}: it is not in spec.kafka.topics")
    return text


def _halt(sink: Json, state: DesiredState, progress_message: str) -> Action:
    _check_allowed(sink)

    def is_done(now: Json, driver: Json | None) -> bool:
        ready = condition(now, "Ready")
        is_halted = ready is not None and ready.reason == state.value
        return driver is None and is_halted and _has_desired_state(now, state)

    return Action(
        annotations={names.STATE_ANNOTATION: state.value},
        progress_message=progress_message,
        is_done=is_done,
        failure_reason=_stalled,
    )


def _check_allowed(sink: Json) -> None:
    """Raises ActionNotAllowed for a sink on which no action has an effect."""
    if is_terminating(sink):
        raise ActionNotAllowed("the sink is being deleted")
    if (annotation(sink, names.RECONCILE_PAUSED_ANNOTATION) or "").lower() == "true":
        name = names.RECONCILE_PAUSED_ANNOTATION
        raise ActionNotAllowed(f"the annotation {name} pauses the operator for this sink: remove it first")


def _is_ready(sink: Json) -> bool:
    ready = condition(sink, "Ready")
    return stale_reason(sink) is None and ready is not None and ready.status is ConditionStatus.TRUE


def _has_desired_state(sink: Json, state: DesiredState) -> bool:
    return status_of(sink).desired_state is state


def _stalled(sink: Json) -> str | None:
    stalled = condition(sink, "Stalled")
    return condition_text(stalled) if stalled is not None and stalled.status is ConditionStatus.TRUE else None


def _request_errors(sink: Json, request: Json) -> list[str]:
    """The errors of the request. Errors of the rest of the spec are left out."""
    meta = {name: sink["metadata"].get(name) for name in ("name", "namespace")}
    spec = {**(sink.get("spec") or {}), "offsets": {"reset": request}}
    try:
        parse_sink({"apiVersion": sink["apiVersion"], "kind": sink["kind"], "metadata": meta, "spec": spec})
    except InvalidSpec as error:
        return [each.removeprefix(f"{_RESET}.") for each in error.errors if each.startswith(_RESET)]
    return []


def _milliseconds(text: str) -> int:
    if _is_number(text):
        return int(text)
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return round(at.astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    formats = "neither milliseconds since 1970 nor like 2025-11-03T10:00:00Z"
    raise ActionNotAllowed(f"--timestamp: {text[:100]} is {formats}")


def _partition(text: str) -> Json:
    topic, _, rest = text.rpartition(":")
    topic, _, partition = topic.rpartition(":")
    if not (topic and all(map(_is_number, (partition, rest)))):
        raise ActionNotAllowed(f"--offset: {text[:300]} is not TOPIC:PARTITION:OFFSET")
    return {"topic": topic, "partition": int(partition), "offset": int(rest)}


def _is_number(text: str) -> bool:
    """Whether the text is a number with at most as many digits as the largest Kafka offset."""
    return text.isascii() and text.isdigit() and len(text) <= 19
