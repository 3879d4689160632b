"""Driver side of the comparison of another writer's objects with Kafka: reads as far as the newest object goes.

Its end is not known, so a range begins with as many records as one object of this sink has, and grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from sink_job.api.enums import OutputFormat, PartitionerType, SchemaInference
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import required_columns
from sink_job.coordinator.schemas.round_schemas import SchemaUse
from sink_job.engine.types import Engine, Range, stateless
from sink_job.maintenance.position.registry_schemas import RegistrySchemas
from sink_job.registry.base import SchemaRegistry
from sink_job.s3 import S3Settings
from sink_job.verify.previous.previous_objects import (
    ObjectEnd,
    PreviousObjects,
    PreviousResult,
    PreviousSettings,
    compare_previous,
)

FIRST_RECORDS: Final = 10_000
"""Records to read behind the first offset of the newest object, if the manifest has no flushSize."""

GROWTH: Final = 8
"""Factor by which the records of a range grow while the object has more."""

BY_VALUE: Final = "values of JSON"
BY_BYTES: Final = "bytes"


def not_comparable(settings: ObjectSettings) -> str | None:
    """Why objects with these settings cannot be compared with Kafka before there is a ledger, as a clause."""
    kind = settings.partitioner.type
    if kind is not PartitionerType.DEFAULT:
        return f"with partitioner {kind} the records of several objects interleave, so no offset divides them"
    if settings.format.inference is SchemaInference.ONCE:
        return "no other writer has the schemas that this sink infers"
    if settings.format.envelope:
        return "no other writer has the envelope of this sink"
    return None


def comparison_name(settings: ObjectSettings) -> str:
    """How objects with these settings are compared."""
    output = settings.format.output
    if output.has_datums:
        return f"rows of {output}"
    return BY_VALUE if output is OutputFormat.JSON else BY_BYTES


@dataclass(frozen=True)
class ObjectRange:
    """The objects of a topic-partition, the first offset to read, and the end of the log (exclusive)."""

    objects: PreviousObjects
    start: int
    end: int

    def end_of(self, records: int) -> int:
        """The end of a range of so many records from the newest object on (exclusive)."""
        newest = max((each.first for each in self.objects.objects), default=self.start)
        return max(self.start + 1, min(self.end, max(newest, self.start) + records))

    def needs_more(self, result: PreviousResult, end: int) -> bool:
        """Whether the result of a range up to `end` needs a longer one: the newest object has more records, or a
        record below the committed offset may be in none."""
        if end >= self.end or result.uncovered is not None:
            return False
        last = result.ends[-1].status if result.ends else "Equal"
        return last == "Incomplete" or (end < self.objects.committed and not self._is_rejected(result))

    def _is_rejected(self, result: PreviousResult) -> bool:
        required = {each.key for each in self.objects.objects if each.is_required}
        return any(each.key in required and each.status == "Different" for each in result.ends)


def compare_objects(
    ranges: Mapping[TopicPartition, ObjectRange],
    engine: Engine,
    s3: S3Settings,
    settings: ObjectSettings,
    errors: ErrorsSpec,
    registry: SchemaRegistry | None = None,
) -> dict[TopicPartition, PreviousResult]:
    """The result for the objects of each topic-partition. `registry` has the schemas of values. Raises DataLoss when
    retention deletes the records meanwhile, and the errors of the engine and of the registry."""
    schemas = RegistrySchemas(registry, SchemaUse.of(settings).reason_against)
    found = {tp: _beyond_log(each) for tp, each in ranges.items() if each.start >= each.end}
    remaining = {tp: each for tp, each in ranges.items() if tp not in found}
    records = settings.rotation.flush_size or FIRST_RECORDS
    while remaining:
        ends = {tp: each.end_of(records) for tp, each in remaining.items()}
        given = PreviousSettings(s3, settings.model_dump_json(), errors, schemas.given)
        encoded = engine.run(
            ranges={tp: Range(each.start, ends[tp]) for tp, each in remaining.items()},
            idle=(),
            inputs={tp: msgspec.msgpack.encode(each.objects) for tp, each in remaining.items()},
            columns=required_columns(settings),
            factory=stateless(partial(compare_previous, given)),
        )
        results = {tp: msgspec.msgpack.decode(each, type=PreviousResult) for tp, each in encoded.items()}
        found |= results
        unresolved = {tp: each.unresolved for tp, each in results.items() if each.unresolved}
        for tp, ids in unresolved.items():
            schemas.ask(tp.topic, ids)
        longer = {
            tp: each for tp, each in remaining.items() if tp not in unresolved and each.needs_more(found[tp], ends[tp])
        }
        remaining = {**{tp: remaining[tp] for tp in unresolved}, **longer}
        records *= GROWTH if longer else 1
    return found


def _beyond_log(each: ObjectRange) -> PreviousResult:
    """The result without any record to read."""
    first = next((each for each in each.objects.objects if each.is_required), None)
    if first is None:
        return PreviousResult([])
    message = f"it begins at offset {first.first}, and Kafka's log ends at {each.end}"
    return PreviousResult([ObjectEnd(first.key, "Different", message=message)])
