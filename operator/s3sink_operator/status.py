"""The status of an S3Sink: what goes on, told so that kubectl, Argo CD and people can act on it.

It is put together anew at every look, and written only where it differs from what is there: a condition's
lastTransitionTime changes with its status alone, and figures that only tell of progress wait for each other.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from s3sink_operator.crd.status import MAX_ATTEMPTS, MAX_MOST_LAGGING
from s3sink_operator.types import Json, to_ms, to_timestamp
from sink_job.api.report import Ending, PartitionReport, Report

MAX_INTEGER: Final = 2**63 - 1
"""The largest number that the API server takes."""
MAX_TOPICS: Final = 1000
MAX_MESSAGE: Final = 4096
UPDATED: Final = "updatedTime"
_LOW_SINCE: Final = "lowSince"
_PROGRESS_OF_MEMORY: Final = ("wanted", "inputs", _LOW_SINCE)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition. `status` is True, False or Unknown, as text."""

    type: str
    status: str
    reason: str
    message: str


def conditions(old: Sequence[Json], wanted: Iterable[Condition], *, generation: int, now: int) -> list[Json]:
    """The conditions as they are written: the time of the last change is kept where the status did not change."""
    before = {each.get("type"): each for each in old}
    made = []
    for condition in wanted:
        known = before.get(condition.type, {})
        since = known.get("lastTransitionTime") if known.get("status") == condition.status else None
        made.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": sanitize_reason(condition.reason),
                "message": condition.message[:MAX_MESSAGE],
                "lastTransitionTime": since or to_timestamp(now),
                "observedGeneration": generation,
            }
        )
    return made


def operator_error(old: Json, what: str, *, now: int) -> Json | None:
    """The status of before, in which Ready is not known any more, since no look comes to its end; None: it says so."""
    message = f"{what}. It is tried again each minute; what is said besides is of before"
    told = Condition(type="Ready", status="Unknown", reason="OperatorError", message=message)
    before = [each for each in old.get("conditions") or () if each.get("type") == told.type]
    generation = int(old.get("observedGeneration") or 0)
    made = conditions(before, [told], generation=generation, now=now)
    if made == before:
        return None
    return {**old, "conditions": [*made, *(each for each in old.get("conditions") or () if each not in before)]}


def sanitize_reason(reason: str) -> str:
    """A reason as the CRD allows it: some come from pods, who may say anything."""
    return re.sub(r"^[^A-Za-z]+|[^A-Za-z0-9_]", "", reason)[:128] or "Unknown"


def reason_of(status: Json, kind: str) -> str | None:
    """The reason of a condition; None where there is no such condition."""
    return next((each.get("reason") for each in status.get("conditions") or () if each.get("type") == kind), None)


def progress(report: Report) -> Json:
    """What a driver tells of itself, for people: sums, and the topic-partitions that are furthest behind."""
    lags = [each.lag for each in report.partitions if each.lag is not None]
    ages = [each.lag_ms for each in report.partitions if each.lag_ms is not None]
    return without_none(
        {
            "phase": report.state.value,
            "partitions": {"assigned": report.assigned_partitions, "active": report.active_partitions},
            "records": report.totals.records,
            "objects": report.totals.objects,
            "bytes": report.totals.bytes,
            "lastPublishTime": None if report.last_publish is None else to_timestamp(report.last_publish),
            "lag": {"records": min(sum(lags), MAX_INTEGER), "seconds": max(ages, default=0) // 1000} if lags else None,
            "topics": _topics(report.partitions),
            "worst": _most_lagging(report.partitions),
            "openObjects": report.memory.open_objects,
            "epoch": report.epoch,
            "round": report.round,
            "lost": report.totals.lost or None,
        }
    )


def progress_after_publish(known: Json, ending: Ending) -> Json:
    """What is known of a connector when the pod that published what was open has ended, and nothing runs any more."""
    kept = {name: value for name, value in known.items() if name not in ("topics", "worst", "lag")}
    return kept | without_none(
        {
            "records": ending.totals.records,
            "objects": ending.totals.objects,
            "bytes": ending.totals.bytes,
            "lag": None if ending.lag is None else {"records": ending.lag, "seconds": None if ending.lag else 0},
            "openObjects": ending.open_objects,
            "epoch": ending.epoch,
            "round": ending.round,
        }
    )


def newest_attempts(entries: Sequence[Json]) -> list[Json]:
    """As many as are told."""
    return list(entries[:MAX_ATTEMPTS])


def pending_write(old: Json, new: Json, *, now: int, pause_ms: int) -> tuple[Json | None, int | None]:
    """What to write (None: nothing), and in how many milliseconds there may be something, if progress waits."""
    new = without_none(new)
    if _without_progress(old) == _without_progress(new) and not _ends_low(old, new):
        if _without_update_time(old) == _without_update_time(new):
            return None, None
        last = to_ms((old.get("connector") or {}).get(UPDATED)) or 0
        if 0 <= now - last < pause_ms:  # a time to come is of a clock that was wrong
            return None, pause_ms - (now - last)
    written = copy.deepcopy(new)
    if "connector" in written and len(written["connector"]) > 1:
        written["connector"][UPDATED] = to_timestamp(now)
    return written, None


def _ends_low(old: Json, new: Json) -> bool:
    """Whether less memory would do no more: that it would may be written late, for it counts from then on."""
    return _LOW_SINCE in (old.get("memory") or {}) and _LOW_SINCE not in (new.get("memory") or {})


def _without_progress(status: Json) -> Json:
    """The status without figures that change as a matter of course."""
    rest = _without_update_time(status)
    rest["connector"] = {"phase": (status.get("connector") or {}).get("phase")}
    memory_now = rest.get("memory") or {}
    rest["memory"] = {key: value for key, value in memory_now.items() if key not in _PROGRESS_OF_MEMORY}
    return rest


def _without_update_time(status: Json) -> Json:
    rest = dict(status)
    if isinstance(rest.get("connector"), dict):
        rest["connector"] = {key: value for key, value in rest["connector"].items() if key != UPDATED}
    return rest


def _topics(partitions: Sequence[PartitionReport]) -> list[Json]:
    found: dict[str, Json] = {}
    for each in partitions:
        topic = found.setdefault(each.topic, {"topic": each.topic, "partitions": 0, "lag": 0, "lagSeconds": 0})
        topic["partitions"] += 1
        topic["lag"] = min(topic["lag"] + (each.lag or 0), MAX_INTEGER)
        topic["lagSeconds"] = max(topic["lagSeconds"], (each.lag_ms or 0) // 1000)
    return sorted(found.values(), key=lambda topic: (-topic["lag"], topic["topic"]))[:MAX_TOPICS]


def _most_lagging(partitions: Sequence[PartitionReport]) -> list[Json]:
    behind = sorted(partitions, key=lambda each: (-(each.lag or 0), each.topic, each.partition))[:MAX_MOST_LAGGING]
    return [
        without_none(
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed": each.committed,
                "end": each.end,
                "lag": each.lag,
                "lagSeconds": None if each.lag_ms is None else each.lag_ms // 1000,
            }
        )
        for each in behind
    ]


def without_none(section: Json) -> Json:
    """The section without what is not known, at any depth."""
    return {key: _cleaned(value) for key, value in section.items() if value is not None}


def _cleaned(value: Any) -> Any:
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return without_none(value) if isinstance(value, dict) else value
