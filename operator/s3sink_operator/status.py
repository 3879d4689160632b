"""Builds the sections of an S3Sink's status, and decides when it is written. Pure.

The status is computed in each reconcile pass and written only if it differs. The lastTransitionTime of a condition
changes only with its status. Progress alone is written at most once in an interval.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from s3sink_operator.progress_model import (
    MAX_COMMITTED,
    MAX_MOST_LAGGING,
    MAX_TOPICS,
    AssignedPartitions,
    Lag,
    PartitionProgress,
    SinkProgress,
    TopicProgress,
)
from s3sink_operator.reasons import Reason
from s3sink_operator.status_model import MAX_ATTEMPTS, Attempt, ConditionStatus, S3SinkStatus, StatusCondition
from s3sink_operator.types import Json, one_line, sanitize_reason, to_ms, to_timestamp
from sink_job.api.report import FinalReport, PartitionReport, Report, TopicSum, max_lag_ms, sum_of_lags

MAX_INTEGER: Final = 2**63 - 1
"""The largest integer that the API server accepts."""
MAX_MESSAGE: Final = 4096
LAG_INTERVAL_MS: Final = 5 * 60_000
"""An unchanged lag is written again with its time after this many ms."""
_UPDATE_TIME: Final = "updateTime"
_LAG: Final = "lag"
_LAG_TIME: Final = "time"
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
                message=one_line(condition.message)[:MAX_MESSAGE],
                last_transition_time=now if since is None else since,
                observed_generation=generation,
            )
        )
    return found


def operator_error(old: Json, cause: str, *, now: int) -> Json | None:
    """The previous status with Ready Unknown, for a reconcile pass that failed. None if it is unchanged."""
    previous = S3SinkStatus.read(old)
    message = f"{cause}. Retried every minute; the rest of this status may be stale"
    ready = Condition(type="Ready", status=ConditionStatus.UNKNOWN, reason=Reason.OPERATOR_ERROR, message=message)
    before = [each for each in previous.conditions or () if each.type == ready.type]
    current = conditions(before, [ready], generation=previous.observed_generation or 0, now=now)
    if [each.document() for each in current] == [each.document() for each in before]:
        return None
    others = [each for each in previous.conditions or () if each.type != ready.type]
    return previous.model_copy(update={"conditions": [*current, *others]}).document()


def reason_of(status: Json, kind: str) -> str | None:
    """The reason of a condition in a status document; None without the condition."""
    return next((each.get("reason") for each in status.get("conditions") or () if each.get("type") == kind), None)


def progress(report: Report) -> SinkProgress:
    """The progress that a driver reports: sums, and the topic-partitions with the largest lag."""
    return SinkProgress(
        phase=report.state.value,
        partitions=AssignedPartitions(assigned=report.assigned_partitions, active=report.active_partitions),
        records=report.totals.records,
        objects=report.totals.objects,
        bytes=report.totals.bytes,
        last_publish_time=report.last_publish,
        lag=_lag(report),
        topics=_topics(report.partitions) if report.sums is None else _summed(report.sums.topics),
        most_lagging=_most_lagging(report.partitions),
        open_objects=report.memory.open_objects,
        epoch=report.epoch,
        round=report.round,
        lost_offsets=report.totals.lost or None,
    )


def without_report(previous: SinkProgress) -> SinkProgress:
    """The progress while no driver reports it: offsets in visible objects do not change, log ends do. The last lag is
    kept with the time of its observation."""
    topics = [each.model_copy(update={"lag": None, "lag_seconds": None}) for each in previous.topics or ()]
    unknown = {"end": None, "lag": None, "lag_seconds": None}
    partitions = [each.model_copy(update=unknown) for each in previous.most_lagging or ()]
    lag = last_known_lag(previous)
    return previous.model_copy(
        update={"lag": None, "last_known_lag": lag, "topics": topics or None, "most_lagging": partitions or None}
    )


def last_known_lag(previous: SinkProgress) -> Lag | None:
    """The last observed lag, with the time of its observation."""
    if previous.lag is None:
        return previous.last_known_lag
    return previous.lag.model_copy(update={"time": previous.lag.time or previous.update_time})


def progress_after_publish(previous: SinkProgress, report: FinalReport, at: int) -> SinkProgress:
    """The progress after the pod that published the open objects has terminated, at `at`, and nothing runs."""
    lag = last_known_lag(previous)
    if report.lag is not None:
        lag = Lag(records=report.lag, seconds=None if report.lag else 0, time=at)
    return previous.model_copy(
        update={
            "topics": None,
            "most_lagging": None,
            "lag": None,
            "last_known_lag": lag,
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
        if _without_update_time(old) == _without_update_time(new) and not _is_lag_outdated(old, new):
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
    if isinstance(section.get(_LAG), dict):
        section[_LAG] = {key: value for key, value in section[_LAG].items() if key != _LAG_TIME}
    return {**status, "progress": section}


def _is_lag_outdated(old: Json, new: Json) -> bool:
    """Whether an unchanged lag has to be written with the time of its last observation."""
    written, observed = (to_ms(_section(_section(each, "progress"), _LAG).get(_LAG_TIME)) for each in (old, new))
    return observed is not None and (written is None or abs(observed - written) >= LAG_INTERVAL_MS)


def _section(status: Json, name: str) -> dict[str, Any]:
    section = status.get(name)
    return section if isinstance(section, dict) else {}


def _lag(report: Report) -> Lag | None:
    """The lag of all topic-partitions whose log end is known."""
    sums = report.sums
    records = _records(report.partitions) if sums is None else _capped(sums.lag)
    if records is None:
        return None
    seconds = _seconds(report.partitions) if sums is None else _whole_seconds(sums.lag_ms)
    return Lag(records=records, seconds=seconds, time=report.log_ends_at or report.now)


def _records(partitions: Sequence[PartitionReport]) -> int | None:
    """The sum of the known lags; None if none is known, which is so for a deleted topic."""
    return _capped(sum_of_lags(partitions))


def _capped(records: int | None) -> int | None:
    return None if records is None else min(records, MAX_INTEGER)


def _seconds(partitions: Sequence[PartitionReport]) -> int | None:
    """The age in s of the oldest record that is not in a visible object, if it is known."""
    return _whole_seconds(max_lag_ms(partitions))


def _whole_seconds(age_ms: int | None) -> int | None:
    return None if age_ms is None else max(0, age_ms) // 1000


def _topics(partitions: Sequence[PartitionReport]) -> list[TopicProgress]:
    by_topic: dict[str, list[PartitionReport]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each)
    by_lag = sorted(by_topic.items(), key=lambda item: (-(_records(item[1]) or 0), item[0]))
    found, left = [], MAX_COMMITTED
    for topic, members in by_lag[:MAX_TOPICS]:
        offsets = _committed(members, left)
        left -= len(offsets or ())
        found.append(
            TopicProgress(
                topic=topic,
                partitions=len(members),
                lag=_records(members),
                lag_seconds=_seconds(members),
                committed=offsets,
            )
        )
    return found


def _summed(sums: Sequence[TopicSum]) -> list[TopicProgress]:
    """The topics of a report that does not list all topic-partitions: without their committed offsets."""
    return [
        TopicProgress(
            topic=each.topic,
            partitions=each.partitions,
            lag=_capped(each.lag),
            lag_seconds=_whole_seconds(each.lag_ms),
        )
        for each in sums[:MAX_TOPICS]
    ]


def _committed(partitions: Sequence[PartitionReport], most: int) -> list[int] | None:
    """The committed offsets of one topic by partition number; None if they are more than `most`."""
    count = max(each.partition for each in partitions) + 1
    if count > most:
        return None
    by_number = {each.partition: each.committed for each in partitions}
    return [by_number.get(number, -1) for number in range(count)]


def _most_lagging(partitions: Sequence[PartitionReport]) -> list[PartitionProgress]:
    behind = sorted(partitions, key=lambda each: (-(each.lag or 0), each.topic, each.partition))[:MAX_MOST_LAGGING]
    return [partition_progress(each) for each in behind]


def partition_progress(report: PartitionReport) -> PartitionProgress:
    """The progress of one topic-partition."""
    return PartitionProgress(
        topic=report.topic,
        partition=report.partition,
        committed=report.committed,
        next=report.next,
        end=report.end,
        lag=report.lag,
        lag_seconds=None if report.lag_ms is None else max(0, report.lag_ms) // 1000,
    )
