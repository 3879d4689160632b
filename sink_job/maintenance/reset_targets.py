"""Resolves a reset request to start offsets. Pure functions of the request, Kafka's offsets and the ledger's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sink_job.api.enums import ResetTo
from sink_job.api.errors import InvalidSpec
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.topic_partition import TopicPartition

_FIELD = "spec.offsets.reset"


@dataclass(frozen=True)
class LogBounds:
    """The bounds of each topic-partition's log: `first` is the first offset that Kafka holds, `end` the offset after
    the last record that a consumer can read."""

    first: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]


@dataclass(frozen=True, kw_only=True)
class ResetContext:
    """The offsets that a request can refer to.

    `at`: the offsets of the requested timestamp. `reached`: the first offset that is in no visible object, for
    topic-partitions with the same log as in the ledger, and for those that the sink no longer reads. `now`: ms since
    the epoch.
    """

    logs: LogBounds
    at: Mapping[TopicPartition, int]
    reached: Mapping[TopicPartition, int]
    now: int


def request_digest(request: OffsetResetSpec) -> str:
    """A digest of the request, which distinguishes requests with the same nonce. It does not depend on the order of the
    partitions."""
    partitions = sorted(request.partitions or (), key=lambda each: (each.topic, each.partition))
    same = request.model_copy(update={"partitions": partitions or None})
    return hashlib.sha256(same.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:16]


def resolve_targets(request: OffsetResetSpec, context: ResetContext) -> dict[TopicPartition, int]:
    """The first offset to copy of each topic-partition. Raises InvalidSpec with all errors of the request.

    Topic-partitions that are not in the request keep their offset. New ones start at the first offset of their log.
    """
    errors = _field_errors(request, context)
    if errors:
        raise InvalidSpec(errors)
    logs = context.logs
    requested = {TopicPartition(each.topic, each.partition): each.offset for each in request.partitions or ()}
    starts = {}
    for tp, first in logs.first.items():
        if request.to is ResetTo.EARLIEST:
            starts[tp] = first
        elif request.to is ResetTo.LATEST:
            starts[tp] = logs.end[tp]
        elif request.to is ResetTo.TIMESTAMP:
            starts[tp] = min(context.at[tp], logs.end[tp])
        else:
            starts[tp] = requested.get(tp, context.reached.get(tp, first))
    return {**context.reached, **starts}


def _field_errors(request: OffsetResetSpec, context: ResetContext) -> list[str]:
    if request.timestamp is not None and request.timestamp > context.now:
        when = _time(request.timestamp)
        return [
            f"{_FIELD}.timestamp: {request.timestamp} ({when}) is in the future; to start after the last record, use "
            "to: Latest"
        ]
    errors = []
    counts: dict[str, int] = {}
    for tp in context.logs.first:
        counts[tp.topic] = max(counts.get(tp.topic, 0), tp.partition + 1)
    for index, each in enumerate(request.partitions or ()):
        field, tp = f"{_FIELD}.partitions[{index}]", TopicPartition(each.topic, each.partition)
        if each.topic not in counts:
            errors.append(f"{field}.topic: this sink does not read {each.topic}; it reads {_some(sorted(counts))}")
        elif each.partition >= counts[each.topic]:
            errors.append(
                f"{field}.partition: {each.partition} does not exist; {each.topic} has partitions 0 to "
                f"{counts[each.topic] - 1}"
            )
        elif not context.logs.first[tp] <= each.offset <= context.logs.end[tp]:
            first, end = context.logs.first[tp], context.logs.end[tp]
            errors.append(
                f"{field}.offset: {each.offset} is not between {first} and {end}, the bounds of the log of {tp}"
            )
    return errors


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return "after the year 9999"
