"""Figures of a replay for each topic, and what they mean for a day. Pure.

A day has as many of everything as the sample has for its length, and as many for partitions that were not read. Where
the sample is shorter than twice a time limit of the rotation, a close by time is rarer or more frequent in it by
chance: then each path that has records counts as one object for each such limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sink_job.api.sections.job_sections import RotationSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.plan.planned_object import PlannedObject
from sink_job.plan.replay import Replay
from sink_job.plan.sample import Sample
from sink_job.rotation.types import CloseReason

DAY_MS: Final = 86_400_000
SMALL_BYTES: Final = 1 << 20
"""Objects below this size are counted as small."""

BY_TIME: Final = (CloseReason.INTERVAL, CloseReason.SCHEDULE_INTERVAL, CloseReason.MAX_OPEN_TIME)


@dataclass(frozen=True)
class Spread:
    """The 5th, 50th and 95th percentile."""

    p5: int
    p50: int
    p95: int

    @classmethod
    def of(cls, values: Iterable[tuple[float, int]]) -> Spread | None:
        """The percentiles of values with weights; None without any."""
        ordered = sorted(values)
        total = sum(weight for _, weight in ordered)
        return None if not total else cls(*(round(_at(ordered, total * share)) for share in (0.05, 0.5, 0.95)))


def _at(ordered: Sequence[tuple[float, int]], position: float) -> float:
    """The first value at which the sum of weights reaches `position`."""
    passed = 0
    for value, weight in ordered:
        passed += weight
        if passed >= position:
            return value
    return ordered[-1][0]


@dataclass(frozen=True)
class TopicFigures:
    """The figures of one topic. Sizes are bytes, times ms. `partitions` are all, `read` those in the sample, `cut`
    those whose sample ended at the limit of bytes. `late` are records older than one before them. `delay` is the time
    from the arrival of a record until its object is visible. `paths` are the distinct paths of objects.
    `estimated`: closes by time are estimated by their limits instead of counted."""

    topic: str
    partitions: int
    read: int
    cut: int
    records: int
    value_bytes: int
    late: int
    ignored: int
    filtered: int
    rejected: int
    first_rejected: str | None
    closed: int
    small: int
    open: int
    peak_open: int
    paths: int
    reasons: Mapping[str, int]
    size: Spread | None
    delay: Spread | None
    records_a_day: int
    bytes_a_day: int
    stored_a_day: int
    objects_a_day: int
    estimated: bool


@dataclass(frozen=True)
class PlanFigures:
    """The figures of a plan. `span` is the length of the sample in ms. `requests_a_day` are S3 requests by operation,
    those of the ledger included. `required` are bytes of memory of an executor, or of the whole sink in Local mode."""

    topics: Sequence[TopicFigures]
    span: int
    rounds: int
    requests_a_day: Mapping[str, int]
    required: int
    active_partitions: int


def figures(sample: Sample, replay: Replay, rotation: RotationSpec) -> PlanFigures:
    """The figures of a replay over `sample`."""
    span = max(1, sample.end - sample.start)
    closed, opened = _by_topic(replay.closed), _by_topic(replay.open)
    topics = [
        _topic(topic, sample, replay, closed.get(topic, []), opened.get(topic, []), rotation, span)
        for topic in sorted(sample.topics)
    ]
    objects = sum(each.closed for each in topics)
    a_day = sum(each.objects_a_day for each in topics)
    return PlanFigures(
        topics=topics,
        span=span,
        rounds=replay.rounds,
        requests_a_day=_requests(replay, span, _factor(objects, a_day, span)),
        required=replay.required,
        active_partitions=replay.active,
    )


def _factor(objects: int, a_day: int, span: int) -> float:
    """How many requests of objects a day has for each of the sample."""
    return a_day / objects if objects else DAY_MS / span


OF_OBJECTS: Final = ("CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "PutObjectTagging")


def _requests(replay: Replay, span: int, of_objects: float) -> dict[str, int]:
    return {
        name: round(count * (of_objects if name in OF_OBJECTS else DAY_MS / span))
        for name, count in sorted(replay.requests.items())
    }


def _by_topic(objects: Iterable[PlannedObject]) -> dict[str, list[PlannedObject]]:
    found: dict[str, list[PlannedObject]] = {}
    for each in objects:
        found.setdefault(each.tp.topic, []).append(each)
    return found


def _topic(
    topic: str,
    sample: Sample,
    replay: Replay,
    closed: Sequence[PlannedObject],
    opened: Sequence[PlannedObject],
    rotation: RotationSpec,
    span: int,
) -> TopicFigures:
    of_topic = sample.topics[topic]
    tps = [TopicPartition(topic, number) for number in of_topic.read]
    found = [sample.partitions[tp] for tp in tps if tp in sample.partitions]
    scale = of_topic.partitions / len(of_topic.read) if of_topic.read else 1.0
    records, size = sum(replay.records[tp] for tp in tps), sum(replay.bytes[tp] for tp in tps)
    a_day, estimated = _objects_a_day(closed, opened, rotation, span)
    encoded, rows = sum(each.bytes for each in closed), sum(each.records for each in closed)
    per_record = encoded / rows if rows else (size / records if records else 0.0)
    rejected = next((f"{tp} offset {it.offset}: {it.message}" for tp in tps if (it := replay.rejected.get(tp))), None)
    return TopicFigures(
        topic=topic,
        partitions=of_topic.partitions,
        read=len(of_topic.read),
        cut=sum(1 for each in found if each.is_cut),
        records=records,
        value_bytes=sum(each.value_bytes for each in found),
        late=sum(each.late for each in found),
        ignored=sum(replay.ignored[tp] for tp in tps),
        filtered=sum(replay.filtered[tp] for tp in tps),
        rejected=sum(replay.rejected_count[tp] for tp in tps),
        first_rejected=rejected,
        closed=len(closed),
        small=sum(1 for each in closed if each.bytes < SMALL_BYTES),
        open=len(opened),
        peak_open=replay.peak_open[topic],
        paths=len({each.path for each in (*closed, *opened)}),
        reasons=dict(Counter(each.reason.value for each in closed if each.reason is not None).most_common()),
        size=Spread.of((each.bytes, 1) for each in closed),
        delay=Spread.of(delays(closed)),
        records_a_day=round(records * scale * DAY_MS / span),
        bytes_a_day=round(size * scale * DAY_MS / span),
        stored_a_day=round(records * per_record * scale * DAY_MS / span),
        objects_a_day=round(a_day * scale),
        estimated=estimated,
    )


def delays(closed: Iterable[PlannedObject]) -> Iterable[tuple[float, int]]:
    """Delays in ms of the records of each object, with their numbers: its records are taken as evenly spread between
    its first and its last one."""
    steps = 10
    for each in closed:
        assert each.visible is not None, "a closed object is visible"
        longest, shortest = each.visible - each.opened, each.visible - each.last_arrival
        for step in range(steps):
            yield shortest + (longest - shortest) * step / (steps - 1), max(1, each.records)


def _objects_a_day(
    closed: Sequence[PlannedObject], opened: Sequence[PlannedObject], rotation: RotationSpec, span: int
) -> tuple[float, bool]:
    """The objects of the read partitions in a day, and whether closes by time are estimated."""
    limit = time_limit(rotation)
    if limit is None or span >= 2 * limit:
        return len(closed) * DAY_MS / span, False
    others = sum(1 for each in closed if each.reason not in BY_TIME)
    slots = {(each.tp, each.path) for each in opened}
    slots |= {(each.tp, each.path) for each in closed if each.reason in BY_TIME}
    return others * DAY_MS / span + len(slots) * DAY_MS / limit, True


def time_limit(rotation: RotationSpec) -> int | None:
    """The shortest time after which the settings close an object, in ms; None if there is none."""
    limits = (rotation.interval, rotation.schedule_interval, rotation.max_open_time)
    return min((each for each in limits if each), default=None)
