"""What is shown of S3Sinks: a line for each, all of one, or JSON. Pure, from the objects as the API server gives them.

It is the status that is shown, as the operator wrote it last: where the spec has been edited since, or no operator has
looked at all, that is said first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from s3sink_operator.kubectl.formatting import (
    NONE,
    format_age,
    format_bytes,
    format_count,
    format_duration,
    format_table,
    format_until,
    pluralize,
)
from s3sink_operator.types import Json, is_terminating

PLANNED_RESTARTS: Final = frozenset(
    {"SpecChanged", "RestartAsked", "MemoryChanged", "Pausing", "Stopping", "Deleting", "Restarting"}
)
"""Reasons for which the operator itself ends an attempt: no failures."""
_ALWAYS: Final = ("Ready", "Reconciling", "Stalled")


def condition(sink: Json, kind: str) -> Json:
    """One condition of the status; empty where it is not there."""
    found = (sink.get("status") or {}).get("conditions") or ()
    return next((dict(each) for each in found if each.get("type") == kind), {})


def stale_reason(sink: Json) -> str | None:
    """Why the status does not speak of the sink as it is now; None if it does."""
    meta, status = sink["metadata"], sink.get("status") or {}
    seen = status.get("observedGeneration")
    if seen is None:
        return (
            "no operator has looked at this sink yet: is one running, and does it look after this namespace and these "
            "labels?"
        )
    if seen != meta.get("generation"):
        return f"the spec was edited (generation {meta.get('generation')}), and the status is still of {seen}"
    return None


def last_failure(sink: Json) -> Json | None:
    """The last attempt that ended though it should not, or what is waited out now; None if there was none."""
    status = sink.get("status") or {}
    retry = status.get("retry") or {}
    told = next(
        (
            each
            for each in status.get("attempts") or ()
            if "ended" in each and each.get("reason") not in PLANNED_RESTARTS
        ),
        None,
    )
    if retry.get("message") and (told is None or told.get("message") != retry.get("message")):
        return {"reason": retry.get("reason"), "message": retry["message"]}
    return None if told is None else dict(told)


def as_data(sink: Json) -> Json:
    """The JSON of one sink: its name, the status as it is, and what is worked out of it."""
    meta = sink["metadata"]
    return {
        "namespace": meta.get("namespace"),
        "name": meta["name"],
        "generation": meta.get("generation"),
        "upToDate": stale_reason(sink) is None,
        "lastFailure": last_failure(sink),
        "status": sink.get("status") or {},
    }


def overview(sinks: Sequence[Json], now: int, *, everywhere: bool) -> str:
    """A line for each sink."""
    head = ["NAME", "READY", "STATE", "PARTITIONS", "LAG", "BEHIND", "MEMORY", "FAILURES", "AGE", "REASON"]
    rows = []
    for sink in sinks:
        meta, status = sink["metadata"], sink.get("status") or {}
        told = status.get("connector") or {}
        lag, ready = told.get("lag") or {}, condition(sink, "Ready")
        seconds = lag.get("seconds")
        row = [
            meta["name"],
            ready.get("status", "Unknown"),
            told.get("phase") or NONE,
            format_count((told.get("partitions") or {}).get("assigned")),
            format_count(lag.get("records")),
            NONE if seconds is None else format_duration(seconds),
            (status.get("memory") or {}).get("current") or NONE,
            str((status.get("retry") or {}).get("failures") or 0),
            format_age(meta.get("creationTimestamp"), now),
            "NotSeenYet" if stale_reason(sink) else ready.get("reason") or NONE,
        ]
        rows.append([meta.get("namespace", ""), *row] if everywhere else row)
    return format_table(["NAMESPACE", *head] if everywhere else head, rows)


def detail(sink: Json, now: int) -> str:
    """All of one sink."""
    return "\n\n".join(section for section in _sections(sink, now) if section)


def _sections(sink: Json, now: int) -> Iterator[str]:
    meta, status = sink["metadata"], sink.get("status") or {}
    told = status.get("connector") or {}
    yield "\n".join([f"{meta.get('namespace')}/{meta['name']}: {told.get('phase') or 'Unknown'}", *_facts(sink, now)])
    rows = [
        [
            each["type"],
            each["status"],
            each["reason"],
            format_age(each.get("lastTransitionTime"), now),
            each.get("message", ""),
        ]
        for each in status.get("conditions") or ()
        if each.get("message") and each["type"] not in _ALWAYS
    ]
    yield format_table(["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"], rows) if rows else ""
    behind = [
        [
            str(each.get("topic", NONE)),
            str(each.get("partition", NONE)),
            *(format_count(each.get(name)) for name in ("committed", "end", "lag")),
            _behind(each),
        ]
        for each in told.get("worst") or ()
    ]
    yield format_table(["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "BEHIND"], behind) if behind else ""
    attempts = [
        [
            str(each.get("number", NONE)),
            format_age(each.get("started"), now),
            format_age(each.get("ended"), now) if "ended" in each else "runs",
            each.get("reason") or NONE,
            str(each.get("exitCode", NONE)),
            each.get("message") or NONE,
        ]
        for each in status.get("attempts") or ()
    ]
    yield format_table(["ATTEMPT", "STARTED", "ENDED", "REASON", "EXIT", "MESSAGE"], attempts) if attempts else ""


def _facts(sink: Json, now: int) -> Iterator[str]:
    def fact(name: str, text: str) -> str:
        return f"  {name + ':':<14}{text}"

    status = sink.get("status") or {}
    if is_terminating(sink):
        yield fact(
            "Deleted", f"{format_age(sink['metadata'].get('deletionTimestamp'), now)} ago, and held by its finalizers"
        )
    if (old := stale_reason(sink)) is not None:
        yield fact("Careful", old)
    if not status:
        return
    ready = condition(sink, "Ready")
    said = f": {ready['message']}" if ready.get("message") else ""
    since = format_age(ready.get("lastTransitionTime"), now)
    yield fact("Ready", f"{ready.get('status', 'Unknown')} for {since}, {ready.get('reason', 'Unknown')}{said}")
    state = status.get("state") or {}
    yield fact("Wanted", f"{state.get('wanted', 'Unknown')}, by {state.get('by', 'Unknown')}")
    told = status.get("connector") or {}
    if told.get("partitions"):
        yield fact("Partitions", _partitions(told))
        yield fact("Lag", _lag(told))
        yield fact("Written", _written(told, now))
    if memory := status.get("memory"):
        yield fact("Memory", _memory(memory, now))
    if failed := last_failure(sink):
        yield fact("Last failure", _failure(failed, now))
    if retry := status.get("retry"):
        failures = pluralize(retry.get("failures"), "failure")
        if told.get("phase") == "Failed":
            yield fact("Next try", f"{format_until(retry.get('nextTry'), now)}, after {failures} in a row")
        else:
            yield fact("Before", f"{failures} in a row, forgotten once it has run for a while")
    if offsets := status.get("offsets"):
        yield fact("Offsets", _offsets(offsets, now))


def _partitions(told: Json) -> str:
    found = told["partitions"]
    return (
        f"{format_count(found.get('assigned'))} assigned, {format_count(found.get('active'))} active in the last round"
    )


def _lag(told: Json) -> str:
    lag = told.get("lag") or {}
    if lag.get("records") is None:
        return "not known"
    oldest = f", the oldest {format_duration(lag['seconds'])} old" if lag["records"] and lag.get("seconds") else ""
    return pluralize(lag["records"], "record") + oldest


def _written(told: Json, now: int) -> str:
    records, objects = pluralize(told.get("records"), "record"), pluralize(told.get("objects"), "object")
    parts = [
        f"{records}, {objects}, {format_bytes(told.get('bytes'))} by this attempt",
        f"{pluralize(told.get('openObjects', 0), 'open object')}",
    ]
    if told.get("lastPublishTime"):
        parts.append(f"last published {format_age(told['lastPublishTime'], now)} ago")
    return "; ".join(parts)


def _memory(memory: Json, now: int) -> str:
    parts = [str(memory.get("current", NONE))]
    if memory.get("wanted") not in (None, memory.get("current")):
        parts.append(f"{memory['wanted']} would be right")
    if change := memory.get("lastChange"):
        why = f"{change.get('from')} to {change.get('to')}, {change.get('reason')}"
        parts.append(f"changed {format_age(change.get('time'), now)} ago: {why}")
    if memory.get("nextAllowed"):
        parts.append(f"next change {format_until(memory['nextAllowed'], now)}")
    return "; ".join(parts)


def _failure(failed: Json, now: int) -> str:
    text = f"{failed.get('reason')}: {failed.get('message')}"
    if "number" in failed:
        code = f", exit code {failed['exitCode']}" if failed.get("exitCode") is not None else ""
        text = f"attempt {failed['number']}, {format_age(failed.get('ended'), now)} ago{code}: {text}"
    return text + (f". It goes on {failed['next']}" if failed.get("next") else "")


def _offsets(offsets: Json, now: int) -> str:
    message = f": {offsets['message']}" if offsets.get("message") else ""
    asked = f"reset to {offsets.get('to')}, nonce {offsets.get('nonce')}"
    return f"{asked}, {offsets.get('result')} {format_age(offsets.get('time'), now)} ago{message}"


def _behind(partition: Json) -> str:
    seconds = partition.get("lagSeconds")
    return NONE if seconds is None else format_duration(seconds)
