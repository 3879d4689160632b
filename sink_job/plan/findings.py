"""What a user should know of a plan before the settings are applied. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sink_job.api.enums import RotationScope, Tolerance
from sink_job.api.spec import Spec
from sink_job.api.units.quantities import format_duration, format_size
from sink_job.plan.resources import PlannedResources
from sink_job.plan.sample import Sample
from sink_job.plan.statistics import PlanFigures, TopicFigures, time_limit
from sink_job.rotation.types import CloseReason

MANY_A_DAY = 1_000
"""Small objects of a topic in a day that are many."""

MAX_NAMED = 10
"""Partitions that a sentence names."""


def findings(spec: Spec, sample: Sample, planned: PlanFigures, given: PlannedResources) -> list[str]:
    """The sentences, those about the sample first."""
    found = [sentence for topic in planned.topics for sentence in _of_sample(topic, sample)]
    limit = time_limit(spec.rotation)
    if limit is not None and any(topic.estimated and topic.records for topic in planned.topics):
        found.append(
            f"The sample of {format_duration(planned.span)} is shorter than twice the shortest time limit of the "
            f"rotation ({format_duration(limit)}): closes by time are estimated, one for each path and limit. Use "
            f"--sample {format_duration(2 * limit)} to count them."
        )
    found += [sentence for topic in planned.topics for sentence in _of_topic(topic, spec)]
    if given.recommended > given.memory:
        found.append(
            f"Memory: {format_size(given.recommended)} are recommended, and spec.executor.memory.max is "
            f"{format_size(given.memory)}: tasks will spill to local disk. Raise it, or lower partSize."
        )
    return found


def _of_sample(topic: TopicFigures, sample: Sample) -> Iterator[str]:
    read = sample.topics[topic.topic]
    if not topic.partitions:
        yield f"{topic.topic}: has no partitions."
    elif not topic.value_bytes and not topic.records and not topic.ignored and not topic.rejected:
        yield (
            f"{topic.topic}: no record in the sample. Use --from TIME with a time at which it has records, a longer "
            "--sample, or --records N for its last ones."
        )
        return
    if topic.read < topic.partitions:
        named = ", ".join(map(str, read.read[:MAX_NAMED])) + (", …" if len(read.read) > MAX_NAMED else "")
        yield (
            f"{topic.topic}: {topic.read} of {topic.partitions:,} partitions were read ({named}); the others are "
            "counted as these on average."
        )
    if topic.cut:
        yield (
            f"{topic.topic}: the samples of {topic.cut} partitions ended at the limit of bytes, so a day has more of "
            "everything than is shown. Use a shorter --sample."
        )


def _of_topic(topic: TopicFigures, spec: Spec) -> Iterator[str]:
    if topic.rejected:
        seen = topic.records + topic.ignored + topic.filtered + topic.rejected
        stops = spec.errors.tolerance is Tolerance.NONE
        what = "the sink stops at the first one (errors.tolerance: None)" if stops else "they are rejected"
        count = f"{topic.rejected:,} of {seen:,} records"
        yield f"{topic.topic}: {count} cannot be written; {what}: {topic.first_rejected}."
    if topic.records and not topic.closed and not topic.estimated:
        yield f"{topic.topic}: no object closed in the sample; a longer --sample shows when they do."
    small = topic.small / topic.closed if topic.closed else 0
    if small > 0.5 and topic.objects_a_day > MANY_A_DAY:
        yield f"{topic.topic}: {small:.0%} of the objects are smaller than 1 MiB{_advice(topic, spec)}."


def _advice(topic: TopicFigures, spec: Spec) -> str:
    """Why most objects close, and what to change."""
    reason = max(topic.reasons, key=lambda name: topic.reasons[name], default="")
    if topic.late and reason in (CloseReason.PATH_CHANGE, CloseReason.INTERVAL):
        late = f"{topic.late:,} records are older than one before them"
        if spec.rotation.scope is RotationScope.PARTITION:
            return f", because {late}, which closes all open objects: set rotation.scope: Object"
        return f": {late}, and each time they return to an older path it opens again"
    if reason == CloseReason.SCHEMA:
        return ", because schemas alternate: set schemaCompatibility: Separate or Backward"
    if reason == CloseReason.FLUSH_SIZE:
        return ": raise rotation.flushSize"
    if reason in (CloseReason.SCHEDULE_INTERVAL, CloseReason.INTERVAL, CloseReason.MAX_OPEN_TIME):
        return ": raise the interval, or use a partitioner with fewer paths"
    if reason == CloseReason.MAX_OPEN_OBJECTS:
        return ": raise rotation.maxOpenObjects"
    return ""
