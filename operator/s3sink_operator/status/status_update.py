"""The conditions of an S3Sink's status, and when the status is written. Pure.

The status is computed in each reconcile pass and written only if it differs. The lastTransitionTime of a condition
changes only with its status. Progress alone is written at most once in an interval.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from s3sink_operator.reasons import Reason
from s3sink_operator.status.status_model import MAX_ATTEMPTS, Attempt, ConditionStatus, S3SinkStatus, StatusCondition
from s3sink_operator.types import Json, one_line, sanitize_reason, to_ms, to_timestamp

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
    tables = status.get("tables")
    if isinstance(tables, list):
        rest["tables"] = [[each.get("name"), each.get("error")] for each in tables if isinstance(each, dict)]
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
