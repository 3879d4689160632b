"""Builds the sections of an S3Sink's status, and decides when it is written. Pure.

The status is computed in each reconcile pass and written only if it differs. The lastTransitionTime of a condition
changes only with its status. Progress alone is written at most once in an interval.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from s3sink_operator.status_model import (
    MAX_ATTEMPTS,
    MAX_MOST_LAGGING,
    MAX_TOPICS,
    AssignedPartitions,
    Attempt,
    ConditionStatus,
    Lag,
    PartitionProgress,
    S3SinkStatus,
    SinkProgress,
    StatusCondition,
    TopicProgress,
)
from s3sink_operator.types import Json, to_ms, to_timestamp
from sink_job.api.report import FinalReport, PartitionReport, Report

MAX_INTEGER: Final = 2**63 - 1
"""The largest integer that the API server accepts."""
MAX_MESSAGE: Final = 4096
_UPDATE_TIME: Final = "updateTime"
_LOW_SINCE: Final = "lowSinceTime"
_MEMORY_PROGRESS: Final = ("recommended", "inputs", _LOW_SINCE)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One desired condition."""

    type: str
    status: ConditionStatus
    reason: str
    message: str


def conditions(
    old: Sequence[StatusCondition], desired: Iterable[Condition], *, generation: int, now: int
) -> list[StatusCondition]:
    """The conditions of the status. The time of the last transition is kept while the status is unchanged."""
    before = {each.type: each for each in old}
    found = []
    for condition in desired:
        previous = before.get(condition.type)
        since = previous.last_transition_time if previous and previous.status == condition.status else None
        found.append(
            StatusCondition(
                type=condition.type,
                status=condition.status,
                reason=sanitize_reason(condition.reason),
                message=condition.message[:MAX_MESSAGE],
                last_transition_time=now if since is None else since,
                observed_generation=generation,
            )
        )
    return found


def operator_error(old: Json, cause: str, *, now: int) -> Json | None:
    """The previous status with Ready Unknown, for a reconcile pass that failed. None if it is unchanged."""
    previous = S3SinkStatus.read(old)
    message = f"{cause}. Retried every minute; the rest of this status may be stale"
    ready = Condition(type="Ready", status=ConditionStatus.UNKNOWN, reason="OperatorError", message=message)
    before = [each for each in previous.conditions or () if each.type == ready.type]
    current = conditions(before, [ready], generation=previous.observed_generation or 0, now=now)
    if [each.document() for each in current] == [each.document() for each in before]:
        return None
    others = [each for each in previous.conditions or () if each.type != ready.type]
    return previous.model_copy(update={"conditions": [*current, *others]}).document()


def sanitize_reason(reason: str) -> str:
    """A reason as the CustomResourceDefinition allows it: some come from pods, which may send any text."""
    return re.sub(r"^[^A-Za-z]+|[^A-Za-z0-9_]", "", reason)[:128] or "Unknown"


def reason_of(status: Json, kind: str) -> str | None:
    """The reason of a condition in a status document; None without the condition."""
    return next((each.get("reason") for each in status.get("conditions") or () if each.get("type") == kind), None)


def progress(report: Report) -> SinkProgress:
    """The progress that a driver reports: sums, and the topic-partitions with the largest lag."""
    lags = [each.lag for each in report.partitions if each.lag is not None]
    ages = [each.lag_ms for each in report.partitions if each.lag_ms is not None]
    return SinkProgress(
        phase=report.state.value,
        partitions=AssignedPartitions(assigned=report.assigned_partitions, active=report.active_partitions),
        records=report.totals.records,
        objects=report.totals.objects,
        bytes=report.totals.bytes,
        last_publish_time=report.last_publish,
        lag=Lag(records=min(sum(lags), MAX_INTEGER), seconds=max(ages, default=0) // 1000) if lags else None,
        topics=_topics(report.partitions),
        most_lagging=_most_lagging(report.partitions),
        open_objects=report.memory.open_objects,
        epoch=report.epoch,
        round=report.round,
        lost_offsets=report.totals.lost or None,
    )


def progress_after_publish(previous: SinkProgress, report: FinalReport) -> SinkProgress:
    """The progress after the pod that published the open objects has terminated and nothing runs."""
    lag = None if report.lag is None else Lag(records=report.lag, seconds=None if report.lag else 0)
    return previous.model_copy(
        update={
            "topics": None,
            "most_lagging": None,
            "lag": lag,
            "records": report.totals.records,
            "objects": report.totals.objects,
            "bytes": report.totals.bytes,
            "open_objects": report.open_objects,
            "epoch": previous.epoch if report.epoch is None else report.epoch,
            "round": previous.round if report.round is None else report.round,
        }
    )


def newest_attempts(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts that the status lists."""
    return list(attempts[:MAX_ATTEMPTS])


def pending_write(old: Json, new: Json, *, now: int, interval_ms: int) -> tuple[Json | None, int | None]:
    """The status to write, None for none; and in how many ms delayed progress is due, None for none."""
    if _without_progress(old) == _without_progress(new) and not _ends_low(old, new):
        if _without_update_time(old) == _without_update_time(new):
            return None, None
        last = to_ms(_section(old, "progress").get(_UPDATE_TIME)) or 0
        if 0 <= now - last < interval_ms:  # a time in the future comes from a wrong clock
            return None, interval_ms - (now - last)
    written = copy.deepcopy(new)
    if len(_section(written, "progress")) > 1:
        written["progress"][_UPDATE_TIME] = to_timestamp(now)
    return written, None


def _ends_low(old: Json, new: Json) -> bool:
    """Whether less memory no longer suffices. The start of such a time may be written late, the end may not."""
    return _LOW_SINCE in _section(old, "memory") and _LOW_SINCE not in _section(new, "memory")


def _without_progress(status: Json) -> Json:
    """The status without the figures that change in every pass."""
    rest = _without_update_time(status)
    rest["progress"] = {"phase": _section(status, "progress").get("phase")}
    memory = _section(status, "memory")
    rest["memory"] = {key: value for key, value in memory.items() if key not in _MEMORY_PROGRESS}
    return rest


def _without_update_time(status: Json) -> Json:
    section = {key: value for key, value in _section(status, "progress").items() if key != _UPDATE_TIME}
    return {**status, "progress": section}


def _section(status: Json, name: str) -> dict[str, Any]:
    section = status.get(name)
    return section if isinstance(section, dict) else {}


def _topics(partitions: Sequence[PartitionReport]) -> list[TopicProgress]:
    by_topic: dict[str, list[PartitionReport]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each)
    found = [
        TopicProgress(
            topic=topic,
            partitions=len(members),
            lag=min(sum(each.lag or 0 for each in members), MAX_INTEGER),
            lag_seconds=max(0, *((each.lag_ms or 0) // 1000 for each in members)),
        )
        for topic, members in by_topic.items()
    ]
    return sorted(found, key=lambda topic: (-(topic.lag or 0), topic.topic))[:MAX_TOPICS]


def _most_lagging(partitions: Sequence[PartitionReport]) -> list[PartitionProgress]:
    behind = sorted(partitions, key=lambda each: (-(each.lag or 0), each.topic, each.partition))[:MAX_MOST_LAGGING]
    return [
        PartitionProgress(
            topic=each.topic,
            partition=each.partition,
            committed=each.committed,
            end=each.end,
            lag=each.lag,
            lag_seconds=None if each.lag_ms is None else each.lag_ms // 1000,
        )
        for each in behind
    ]
