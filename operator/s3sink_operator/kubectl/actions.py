"""What an action writes, and when it is done. Pure.

The annotations are those of `names`; Argo CD's actions write the same ones. A sink's own spec is never written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from s3sink_operator import names
from s3sink_operator.kubectl.view import condition, stale_reason
from s3sink_operator.objects import RESTARTED_FOR_ANNOTATION
from s3sink_operator.types import Json, annotation, desired_state, is_terminating
from sink_job.api.enums import ResetTo, State
from sink_job.api.errors import SpecError
from sink_job.api.spec import parse_sink

_RESET = "spec.offsets.reset"


class ActionNotAllowed(Exception):
    """An action that would do nothing, or not what it says."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """`annotations` to set (None: to take away); `said`: what is under way then.

    `is_done(sink, driver)`: whether it is so, by the sink and its driver pod, if there is one. `trouble(sink)`: why it
    will not be done as things are, or None. `result(sink)`: what came of it, where that is more than that it is done.
    """

    annotations: Mapping[str, str | None]
    progress_message: str
    is_done: Callable[[Json, Json | None], bool]
    failure_reason: Callable[[Json], str | None]
    result: Callable[[Json], str] = lambda _: ""


def restart(sink: Json, stamp: str) -> Action:
    """Another attempt, from where the ledger says. Raises RefusedError."""
    _check_allowed(sink)
    state, by = desired_state(sink)
    if state is not State.RUNNING:
        raise ActionNotAllowed(f"it is {state} by {by}, so there is nothing to restart: resume starts it")

    def is_done(now: Json, driver: Json | None) -> bool:
        return driver is not None and annotation(driver, RESTARTED_FOR_ANNOTATION) == stamp and _is_ready(now)

    return Action(
        annotations={names.RESTART_ANNOTATION: stamp},
        progress_message="is restarted: it goes on after the last round in its ledger",
        is_done=is_done,
        failure_reason=_stalled,
    )


def pause(sink: Json) -> Action:
    """The driver is ended, uploads stay open. Raises RefusedError."""
    return _halt(sink, State.PAUSED, "is being paused: what is open stays open")


def stop(sink: Json) -> Action:
    """What is open is published, and no driver runs. Raises RefusedError."""
    return _halt(sink, State.STOPPED, "is being stopped: what is open is published first")


def resume(sink: Json) -> Action:
    """The override goes; where the spec itself says Paused or Stopped, it is overridden. Raises RefusedError."""
    _check_allowed(sink)
    written = (sink.get("spec") or {}).get("state", State.RUNNING.value)
    return Action(
        annotations={names.STATE_ANNOTATION: None if written == State.RUNNING else State.RUNNING.value},
        progress_message="is being resumed"
        if written == State.RUNNING
        else f"is being resumed, though its spec.state is {written}",
        is_done=lambda now, driver: driver is not None and _is_ready(now) and _has_desired_state(now, State.RUNNING),
        failure_reason=_stalled,
    )


def reset_offsets(sink: Json, request: Json) -> Action:
    """A request about offsets, as spec.offsets.reset has it. Raises RefusedError, with all that is wrong with it."""
    _check_allowed(sink)
    state, by = desired_state(sink)
    if state is not State.STOPPED:
        name = sink["metadata"]["name"]
        raise ActionNotAllowed(
            f"it is {state} by {by}, and offsets are reset only while it is Stopped: kubectl s3sink stop {name} --wait"
        )
    mistakes = _request_errors(sink, request)
    if mistakes:
        raise ActionNotAllowed("; ".join(mistakes))
    nonce = request["nonce"]

    def is_done(now: Json, _: Json | None) -> bool:
        told = (now.get("status") or {}).get("offsets") or {}
        return told.get("nonce") == nonce and told.get("result") == "Done"

    def trouble(now: Json) -> str | None:
        """What the API server or the operator finds wrong, or what a person has to mend; the rest is tried again."""
        told = condition(now, "OffsetsReset")
        if told.get("reason") == "InvalidRequest" or (told and _stalled(now)):
            return f"{told.get('reason')}: {told.get('message')}"
        return _stalled(now)

    return Action(
        annotations={names.RESET_OFFSETS_ANNOTATION: json.dumps(request)},
        progress_message="gets other offsets",
        is_done=is_done,
        failure_reason=trouble,
        result=lambda now: str(((now.get("status") or {}).get("offsets") or {}).get("message") or ""),
    )


def reset_request(nonce: str, *, to: ResetTo, on_existing: str, timestamp: str | None, offsets: Sequence[str]) -> Json:
    """The JSON of a request. `timestamp`: milliseconds since 1970, or a time with its zone; `offsets`:
    TOPIC:PARTITION:OFFSET each. Raises RefusedError."""
    request: Json = {"nonce": nonce, "to": to.value, "onExisting": on_existing}
    if timestamp is not None:
        request["timestamp"] = _milliseconds(timestamp)
    if offsets:
        request["partitions"] = [_partition(each) for each in offsets]
    return request


def _halt(sink: Json, state: State, said: str) -> Action:
    _check_allowed(sink)

    def is_done(now: Json, driver: Json | None) -> bool:
        reason = condition(now, "Ready").get("reason")
        return driver is None and reason == state.value and _has_desired_state(now, state)

    return Action(
        annotations={names.STATE_ANNOTATION: state.value},
        progress_message=said,
        is_done=is_done,
        failure_reason=_stalled,
    )


def _check_allowed(sink: Json) -> None:
    """Raises RefusedError for a sink that no action reaches."""
    if is_terminating(sink):
        raise ActionNotAllowed("it is being deleted")
    if (annotation(sink, names.RECONCILE_PAUSED_ANNOTATION) or "").lower() == "true":
        raise ActionNotAllowed(
            f"the annotation {names.RECONCILE_PAUSED_ANNOTATION} pauses the operator: remove it first"
        )


def _is_ready(sink: Json) -> bool:
    return stale_reason(sink) is None and condition(sink, "Ready").get("status") == "True"


def _has_desired_state(sink: Json, state: State) -> bool:
    told = (sink.get("status") or {}).get("state") or {}
    return told.get("wanted") == state.value


def _stalled(sink: Json) -> str | None:
    stalled = condition(sink, "Stalled")
    return f"{stalled.get('reason')}: {stalled.get('message')}" if stalled.get("status") == "True" else None


def _request_errors(sink: Json, request: Json) -> list[str]:
    """What the parser finds wrong with the request; what is wrong with the rest of the spec is not said here."""
    meta = {name: sink["metadata"].get(name) for name in ("name", "namespace")}
    spec = {**(sink.get("spec") or {}), "offsets": {"reset": request}}
    try:
        parse_sink({"apiVersion": sink["apiVersion"], "kind": sink["kind"], "metadata": meta, "spec": spec})
    except SpecError as error:
        return [each.removeprefix(f"{_RESET}.") for each in error.mistakes if each.startswith(_RESET)]
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
    said = f"{text[:100]} is neither milliseconds since 1970 nor like 2025-11-03T10:00:00Z"
    raise ActionNotAllowed(f"--timestamp: {said}")


def _partition(text: str) -> Json:
    topic, _, rest = text.rpartition(":")
    topic, _, partition = topic.rpartition(":")
    if not (topic and all(map(_is_number, (partition, rest)))):
        raise ActionNotAllowed(f"--offset: {text[:300]} is not TOPIC:PARTITION:OFFSET")
    return {"topic": topic, "partition": int(partition), "offset": int(rest)}


def _is_number(text: str) -> bool:
    """Whether it is a number of as many digits as Kafka's largest offset, at most."""
    return text.isascii() and text.isdigit() and len(text) <= 19
