"""Where a request about offsets leads: pure, from the request and what Kafka and the ledger know."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sink_job.api.enums import ResetTo
from sink_job.api.errors import InvalidSpec
from sink_job.api.operator_sections import OffsetResetSpec
from sink_job.api.topic_partition import TopicPartition

_HERE = "spec.offsets.reset"


@dataclass(frozen=True)
class LogBounds:
    """Of each topic-partition that is read, the first offset that Kafka holds, and the one behind the last that a
    reader gets."""

    first: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]


@dataclass(frozen=True, kw_only=True)
class ResetContext:
    """`at`: with Timestamp, the offset of that time. `reached`: the first offset that is in no visible object, of those
    topic-partitions whose log is the one that the ledger knows, or that are not read any more. `now`: ms."""

    logs: LogBounds
    at: Mapping[TopicPartition, int]
    reached: Mapping[TopicPartition, int]
    now: int


def request_digest(request: OffsetResetSpec) -> str:
    """Tells this request from others of the same nonce. The order of topic-partitions means nothing."""
    partitions = sorted(request.partitions or (), key=lambda each: (each.topic, each.partition))
    same = request.model_copy(update={"partitions": partitions or None})
    return hashlib.sha256(same.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:16]


def resolve_targets(request: OffsetResetSpec, places: ResetContext) -> dict[TopicPartition, int]:
    """The first offset to copy of every topic-partition. Raises InvalidSpec with every mistake of the request.

    What the request does not name goes on where it is; what nobody knew yet starts at its beginning.
    """
    mistakes = _mistakes(request, places)
    if mistakes:
        raise InvalidSpec(mistakes)
    logs = places.logs
    named = {TopicPartition(each.topic, each.partition): each.offset for each in request.partitions or ()}
    starts = {}
    for tp, first in logs.first.items():
        if request.to is ResetTo.EARLIEST:
            starts[tp] = first
        elif request.to is ResetTo.LATEST:
            starts[tp] = logs.end[tp]
        elif request.to is ResetTo.TIMESTAMP:
            starts[tp] = min(places.at[tp], logs.end[tp])
        else:
            starts[tp] = named.get(tp, places.reached.get(tp, first))
    return {**places.reached, **starts}


def _mistakes(request: OffsetResetSpec, places: ResetContext) -> list[str]:
    if request.timestamp is not None and request.timestamp > places.now:
        when = _time(request.timestamp)
        return [
            f"{_HERE}.timestamp: {request.timestamp} ({when}) is in the future; to start behind all, write to: Latest"
        ]
    found = []
    counts: dict[str, int] = {}
    for tp in places.logs.first:
        counts[tp.topic] = max(counts.get(tp.topic, 0), tp.partition + 1)
    for index, each in enumerate(request.partitions or ()):
        here, tp = f"{_HERE}.partitions[{index}]", TopicPartition(each.topic, each.partition)
        if each.topic not in counts:
            found.append(f"{here}.topic: this sink does not read {each.topic}; it reads {_some(sorted(counts))}")
        elif each.partition >= counts[each.topic]:
            found.append(
                f"{here}.partition: {each.topic} has the partitions 0 to {counts[each.topic] - 1}, no {each.partition}"
            )
        elif not places.logs.first[tp] <= each.offset <= places.logs.end[tp]:
            first, end = places.logs.first[tp], places.logs.end[tp]
            found.append(
                f"{here}.offset: {each.offset} is not between {first} and {end}, where the log of {tp} begins and ends"
            )
    return found


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return "far away"
