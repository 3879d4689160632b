"""Formats S3Sinks for people and as JSON: one line for each, or one in detail. Pure.

The views show the status that the operator wrote last. A status that does not belong to the current spec is marked.
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
    format_since,
    format_table,
    format_until,
    pluralize,
)
from s3sink_operator.reasons import Reason
from s3sink_operator.status.progress_model import AssignedPartitions, Lag, PartitionProgress, SinkProgress
from s3sink_operator.status.status_model import (
    Attempt,
    MemoryStatus,
    OffsetResetStatus,
    Retry,
    S3SinkStatus,
    ScalingStatus,
    StatusCondition,
    TableStatus,
)
from s3sink_operator.status.status_update import LAG_INTERVAL_MS
from s3sink_operator.types import Json, is_terminating
from sink_job.api.units.quantities import format_size

PLANNED_RESTARTS: Final = frozenset(
    {
        Reason.SPEC_CHANGED,
        Reason.RESTART_REQUESTED,
        Reason.MEMORY_CHANGED,
        Reason.PAUSING,
        Reason.STOPPING,
        Reason.DELETING,
        Reason.RESTARTING,
    }
)
"""Reasons for which the operator itself terminates an attempt. They are not failures."""
MAX_LAG_AGE_MS: Final = 2 * LAG_INTERVAL_MS
"""Age of a lag in ms after which it is not shown as the current one: a running operator renews it earlier."""
_ALWAYS: Final = ("Ready", "Reconciling", "Stalled")


def status_of(sink: Json) -> S3SinkStatus:
    """The status of a sink."""
    return S3SinkStatus.read(sink.get("status"))


def condition(sink: Json, kind: str) -> StatusCondition | None:
    """One condition of the status."""
    return status_of(sink).condition(kind)


def condition_text(found: StatusCondition) -> str:
    """Reason and message of a condition."""
    return f"{found.reason}: {found.message}"


def stale_reason(sink: Json) -> str | None:
    """Why the status does not belong to the current spec; None if it does."""
    generation, observed = sink["metadata"].get("generation"), status_of(sink).observed_generation
    if observed is None:
        return "no operator has reconciled this sink: check that one is running and watches this namespace"
    if observed != generation:
        return f"the status is of generation {observed}, the spec has generation {generation}"
    return None


def last_failure(status: S3SinkStatus) -> Attempt | Retry | None:
    """The last attempt that failed, or the failure of the current back-off; None without a failure."""
    failed = (each for each in status.attempts or () if each.has_ended and each.reason not in PLANNED_RESTARTS)
    attempt = next(failed, None)
    retry = status.retry
    if retry is not None and retry.message and (attempt is None or attempt.message != retry.message):
        return retry
    return attempt


def as_data(sink: Json) -> Json:
    """The JSON of one sink: its name, its status, whether that is up to date, and the last failure."""
    meta = sink["metadata"]
    failure = last_failure(status_of(sink))
    if isinstance(failure, Retry):
        described: Json | None = {"reason": failure.reason, "message": failure.message}
    else:
        described = None if failure is None else failure.document()
    return {
        "namespace": meta.get("namespace"),
        "name": meta["name"],
        "generation": meta.get("generation"),
        "upToDate": stale_reason(sink) is None,
        "lastFailure": described,
        "status": sink.get("status") or {},
    }


def overview(sinks: Sequence[Json], now: int, *, all_namespaces: bool) -> str:
    """One line for each sink. `now` in ms since the epoch."""
    head = ["NAME", "READY", "STATE", "PARTITIONS", "LAG", "BEHIND", "MEMORY", "FAILURES", "AGE", "REASON"]
    rows = []
    for sink in sinks:
        meta, status = sink["metadata"], status_of(sink)
        progress, ready = status.progress or SinkProgress(), status.condition("Ready")
        lag = _current_lag(progress, now) or Lag()
        row = [
            meta["name"],
            "Unknown" if ready is None else ready.status,
            progress.phase or NONE,
            format_count((progress.partitions or AssignedPartitions()).assigned),
            format_count(lag.records),
            NONE if lag.seconds is None else format_duration(lag.seconds),
            _size((status.memory or MemoryStatus()).current),
            str(status.retry.failures if status.retry else 0),
            format_age(meta.get("creationTimestamp"), now),
            Reason.NOT_RECONCILED if stale_reason(sink) else NONE if ready is None else ready.reason,
        ]
        rows.append([meta.get("namespace", ""), *row] if all_namespaces else row)
    return format_table(["NAMESPACE", *head] if all_namespaces else head, rows)


def detail(sink: Json, now: int, partitions: Sequence[PartitionProgress] | None = None) -> str:
    """One sink in detail, with these topic-partitions or those with the largest lag. `now` in ms since the epoch."""
    return "\n\n".join(section for section in _sections(sink, now, partitions) if section)


def _sections(sink: Json, now: int, shown: Sequence[PartitionProgress] | None) -> Iterator[str]:
    meta, status = sink["metadata"], status_of(sink)
    progress = status.progress or SinkProgress()
    title = f"{meta.get('namespace')}/{meta['name']}: {progress.phase or 'Unknown'}"
    yield "\n".join([title, *_facts(sink, status, now)])
    conditions = [
        [each.type, each.status, each.reason, format_since(each.last_transition_time, now), each.message]
        for each in status.conditions or ()
        if each.message and each.type not in _ALWAYS
    ]
    yield _section(["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"], conditions)
    partitions = [
        [
            each.topic,
            str(each.partition),
            *(NONE if number is None else str(number) for number in (each.committed, each.next, each.end)),
            format_count(each.lag),
            _behind(each),
        ]
        for each in (progress.most_lagging or () if shown is None else shown)
    ]
    yield _section(["TOPIC", "PARTITION", "COMMITTED", "NEXT", "END", "LAG", "BEHIND"], partitions)
    yield _tables(status.tables or (), now)
    attempts = [
        [
            str(each.number or NONE),
            format_since(each.start_time, now),
            format_since(each.end_time, now) if each.has_ended else "running",
            each.reason or NONE,
            NONE if each.exit_code is None else str(each.exit_code),
            each.message or NONE,
        ]
        for each in status.attempts or ()
    ]
    yield _section(["ATTEMPT", "STARTED", "ENDED", "REASON", "EXIT", "MESSAGE"], attempts)


def _tables(tables: Sequence[TableStatus], now: int) -> str:
    """The tables, with the objects that were left out if there are any."""
    skips = any(each.skipped_objects for each in tables)
    head = ["TABLE", "TOPIC", "COMMITTED", "MISSING", "BEHIND", *(["SKIPPED"] if skips else []), "ERROR"]
    return _section(head, [_table(each, now, skips=skips) for each in tables])


def _table(table: TableStatus, now: int, *, skips: bool) -> list[str]:
    return [
        table.name,
        table.topic or NONE,
        NONE if table.last_commit_time is None else f"{format_since(table.last_commit_time, now)} ago",
        format_count(table.lag_objects),
        NONE if not table.lag_seconds else format_duration(table.lag_seconds),
        *([format_count(table.skipped_objects)] if skips else []),
        NONE if table.error is None else table.error.reason or NONE,
    ]


def _section(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return format_table(head, rows) if rows else ""


def _facts(sink: Json, status: S3SinkStatus, now: int) -> Iterator[str]:
    def fact(name: str, text: str) -> str:
        return f"  {name + ':':<15}{text}"

    if is_terminating(sink):
        deleted = format_age(sink["metadata"].get("deletionTimestamp"), now)
        yield fact("Deleted", f"{deleted} ago, held by its finalizers")
    if (stale := stale_reason(sink)) is not None:
        yield fact("Stale status", stale)
    if not sink.get("status"):
        return
    ready = status.condition("Ready")
    if ready is not None:
        since = format_since(ready.last_transition_time, now)
        message = f": {ready.message}" if ready.message else ""
        yield fact("Ready", f"{ready.status} for {since}, {ready.reason}{message}")
    source = f" ({status.desired_state_source})" if status.desired_state_source else ""
    yield fact("Desired state", f"{status.desired_state or 'Unknown'}{source}")
    progress = status.progress or SinkProgress()
    if progress.partitions is not None:
        yield fact("Partitions", _partitions(progress.partitions))
        yield fact("Lag", _lag(progress, now))
        yield fact("Written", _written(progress, now))
    if status.memory is not None:
        yield fact("Memory", _memory(status.memory, now))
    if status.scaling is not None:
        yield fact("Executors", _scaling(status.scaling, status.replicas, now))
    if (failure := last_failure(status)) is not None:
        yield fact("Last failure", _failure(failure, now))
    if status.retry is not None:
        failures = pluralize(status.retry.failures, "consecutive failure")
        if progress.phase == "Failed":
            yield fact("Next attempt", f"{format_until(status.retry.next_attempt_time, now)}, after {failures}")
        else:
            yield fact("Failures", f"{failures}, reset after a stable run")
    if status.offset_reset is not None:
        yield fact("Offset reset", _offset_reset(status.offset_reset, now))


def _partitions(partitions: AssignedPartitions) -> str:
    active = format_count(partitions.active)
    return f"{format_count(partitions.assigned)} assigned, {active} active in the last round"


def _current_lag(progress: SinkProgress, now: int) -> Lag | None:
    """The lag, unless its observation is too old to be true: the operator or the driver does not renew it."""
    lag = progress.lag
    return None if lag is None or (lag.time is not None and now - lag.time > MAX_LAG_AGE_MS) else lag


def _lag(progress: SinkProgress, now: int) -> str:
    current = _current_lag(progress, now)
    lag = current or progress.lag or progress.last_known_lag
    if lag is None or lag.records is None:
        return "unknown"
    text = pluralize(lag.records, "record")
    if lag.records and lag.seconds is not None:
        text += f", the oldest {'is' if current else 'was'} {format_duration(lag.seconds)} old"
    if lag.time is not None:
        text += f"; observed {format_since(lag.time, now)} ago"
    return text if current else f"unknown; last known: {text}"


def _written(progress: SinkProgress, now: int) -> str:
    records, objects = pluralize(progress.records, "record"), pluralize(progress.objects, "object")
    parts = [
        f"{records}, {objects}, {format_bytes(progress.bytes)} by this attempt",
        pluralize(progress.open_objects or 0, "open object"),
    ]
    if progress.last_publish_time is not None:
        parts.append(f"last published {format_since(progress.last_publish_time, now)} ago")
    return "; ".join(parts)


def _memory(memory: MemoryStatus, now: int) -> str:
    parts = [_size(memory.current)]
    if memory.recommended not in (None, memory.current):
        parts.append(f"{_size(memory.recommended)} recommended")
    if memory.inputs is not None and memory.inputs.active_partitions:
        parts.append(pluralize(memory.inputs.active_partitions, "active topic-partition"))
    if (change := memory.last_change) is not None:
        sizes = f"{_size(change.from_)} to {_size(change.to)}"
        parts.append(f"changed {format_since(change.time, now)} ago: {sizes}, {change.reason}")
    if memory.next_change_time is not None:
        parts.append(f"next change {format_until(memory.next_change_time, now)}")
    return "; ".join(parts)


def _scaling(scaling: ScalingStatus, running: int | None, now: int) -> str:
    parts = [f"{running or 0} of {scaling.desired or 0} running, by active topic-partitions"]
    if (change := scaling.last_change) is not None:
        parts.append(f"changed {format_since(change.time, now)} ago: {change.from_} to {change.to}, {change.reason}")
    return "; ".join(parts)


def _failure(failure: Attempt | Retry, now: int) -> str:
    text = f"{failure.reason}: {failure.message}"
    if isinstance(failure, Retry):
        return text
    code = "" if failure.exit_code is None else f", exit code {failure.exit_code}"
    text = f"attempt {failure.number}, {format_since(failure.end_time, now)} ago{code}: {text}"
    return text + (f". Resumes {failure.resumes_from}" if failure.resumes_from else "")


def _offset_reset(reset: OffsetResetStatus, now: int) -> str:
    message = f": {reset.message}" if reset.message else ""
    request = f"to {reset.to}, nonce {reset.nonce}"
    return f"{request}, {reset.phase} {format_since(reset.time, now)} ago{message}"


def _behind(partition: PartitionProgress) -> str:
    return NONE if partition.lag_seconds is None else format_duration(partition.lag_seconds)


def _size(size: int | None) -> str:
    return NONE if size is None else format_size(size)
