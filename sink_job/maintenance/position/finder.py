"""Finds the position of the writer before a sink: its group's offsets, its objects, and whether they are Kafka's
records. It changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sink_job.api.enums import SchemaInference
from sink_job.api.errors import ConfigurationError, LedgerLost
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.types import Engine
from sink_job.ledger.first_claim.checks import objects_of, uploads_of
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.maintenance.position.cases import (
    Case,
    FoundObject,
    PartitionFacts,
    PartitionPosition,
    compared_from,
    decide,
    to_compare,
)
from sink_job.maintenance.position.comparison import ObjectRange, compare_objects, comparison_name, not_comparable
from sink_job.maintenance.position.other_connectors import beside, other_connectors
from sink_job.registry.base import SchemaRegistry
from sink_job.s3 import S3Client, S3Settings
from sink_job.verify.previous.previous_objects import PreviousResult

MAX_REPORTED = 3
"""Maximum number of topic-partitions in a message."""


@dataclass(frozen=True)
class ConnectorPosition:
    """The position of the previous writer. `members` is the number of active members of its group, `comparison` how
    objects were compared. `unchecked`: why nothing is known of the objects before the committed offsets, as a clause
    (None: they were compared)."""

    group: str
    members: int
    comparison: str
    partitions: tuple[PartitionPosition, ...]
    unchecked: str | None = None

    @property
    def rejected(self) -> list[PartitionPosition]:
        """The topic-partitions that cannot start."""
        return [each for each in self.partitions if not each.case.starts]

    @property
    def exit_code(self) -> int:
        """0 if a sink can start, else that of the error."""
        return ConfigurationError.exit_code if self.members or self.rejected else 0

    def summary(self) -> str:
        """What a start does, as a clause."""
        objects = [o for p in self.partitions for o in p.accepted]
        accepted = f"{len(objects):,} objects with {sum(o.records for o in objects):,} records beyond them are accepted"
        committed = sum(p.facts.committed is not None for p in self.partitions)
        return (
            f"consumer group {self.group}: {committed:,} of {len(self.partitions):,} topic-partitions have a committed "
            f"offset; {accepted}{f' (compared by {self.comparison})' if objects else ''}"
        )

    def notes(self) -> list[str]:
        """What a start reports of topic-partitions that start, as sentences without a period."""
        noted = [f"{each.tp}: {each.message}" for each in self.partitions if each.message]
        more = [f"{len(noted) - MAX_REPORTED:,} more topic-partitions have notes: see s3sink run --dry-run"]
        return [*noted[:MAX_REPORTED], *(more if len(noted) > MAX_REPORTED else ())]

    def previous_writer(self) -> PreviousWriter:
        """What the first claim records.

        Raises ConfigurationError for active members, LedgerLost if a topic-partition cannot start.
        """
        if self.members:
            raise ConfigurationError(
                f"consumer group {self.group} has {self.members} active members: the connector is still running. "
                "Nothing was written. Stop it (PUT /connectors/NAME/stop, or --stop-connector URL) and start again."
            )
        if rejected := self.rejected:
            shown = "; ".join(f"{each.tp} ({each.case}): {each.message}" for each in rejected[:MAX_REPORTED])
            more = f"; and {len(rejected) - MAX_REPORTED:,} more" if len(rejected) > MAX_REPORTED else ""
            advice = "Move such objects away, or set the group's offsets behind them"
            if all(each.case is Case.AHEAD_OF_OBJECTS for each in rejected):
                advice = "Correct the manifest, or set the group's offsets back"
            if all(each.can_start_at_objects for each in rejected):
                advice = (
                    "If the group is right, set its offsets, or start with --start-at-objects (existingObjects: "
                    "AcceptNewest)"
                )
            raise LedgerLost(
                f"{len(rejected):,} topic-partitions cannot continue consumer group {self.group}: {shown}{more}. "
                f"Nothing was written. {advice}. s3sink run --from-connector --dry-run lists all, with the commands."
            )
        return PreviousWriter(
            group=self.group,
            offsets={str(p.tp): p.facts.committed for p in self.partitions if p.facts.committed is not None},
            starts={str(p.tp): p.start for p in self.partitions if p.accepted and p.start is not None},
            comparison=self.comparison if any(p.accepted for p in self.partitions) else "",
            objects=tuple(o for p in self.partitions for o in p.accepted),
        )


def find_position(
    sink: Sink,
    s3: S3Client,
    s3_settings: S3Settings,
    admin: KafkaAdmin,
    engine: Engine,
    *,
    registry: SchemaRegistry | None = None,
    start_at_objects: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> ConnectorPosition:
    """The position of the group of a sink without a ledger. `registry` has the schemas of values. Raises the errors of
    Kafka, the store, the registry and the engine."""
    settings, discovery = sink.object_settings(), TopicDiscovery(sink, admin)
    topics = discovery.discover()
    tps = [TopicPartition(name, n) for name, info in sorted(topics.items()) for n in range(info.partitions)]
    members = admin.group_members(sink.group_id)
    committed = admin.group_offsets(sink.group_id, tps)
    begins, ends = admin.beginning_offsets(tps), discovery.end_offsets(tps)
    report("listing the objects")
    objects, uploads = _objects(s3, settings, set(tps)), _uploads(s3, settings, set(tps))
    facts = [PartitionFacts(tp, committed.get(tp), begins[tp], ends[tp], tuple(objects[tp]), uploads[tp]) for tp in tps]
    if members:
        running = tuple(PartitionPosition(each, Case.RUNNING) for each in facts)
        return ConnectorPosition(sink.group_id, members, comparison_name(settings), running)
    reason = not_comparable(settings)
    ranges = _ranges(facts if reason is None else _without_objects(facts, settings), all_objects=start_at_objects)
    report(f"comparing objects of {len(ranges):,} topic-partitions with Kafka")
    compared = compare_objects(ranges, engine, s3_settings, settings, sink.spec.errors, registry) if ranges else {}
    decided: list[PartitionPosition] = []
    for each in facts:
        result = compared.get(each.tp, PreviousResult([]))
        decided.append(
            decide(each, result.ends, reason=reason, start_at_objects=start_at_objects, uncovered=result.uncovered)
        )
    without_offset = {each.tp.topic for each in facts if each.committed is None}
    connectors = other_connectors(admin, sink.group_id, without_offset)
    decided = [beside(each, connectors.get(each.tp.topic, ())) for each in decided]
    unchecked = reason if any(each.committed is not None and each.objects for each in facts) else None
    return ConnectorPosition(sink.group_id, members, comparison_name(settings), tuple(decided), unchecked)


def _without_objects(facts: Collection[PartitionFacts], settings: ObjectSettings) -> list[PartitionFacts]:
    """Those of which only Kafka is read: for them it does not matter that objects cannot be compared."""
    if settings.format.inference is SchemaInference.ONCE:
        return []
    return [each for each in facts if not each.objects]


def _ranges(facts: Collection[PartitionFacts], *, all_objects: bool) -> dict[TopicPartition, ObjectRange]:
    found = ((each, to_compare(each, all_objects=all_objects)) for each in facts)
    return {
        each.tp: ObjectRange(objects, compared_from(each, objects), each.end)
        for each, objects in found
        if objects is not None
    }


def _objects(
    s3: S3Client, settings: ObjectSettings, tps: Collection[TopicPartition]
) -> Mapping[TopicPartition, list[FoundObject]]:
    """The objects at keys of the sink, ascending by their first offsets."""
    found: defaultdict[TopicPartition, list[FoundObject]] = defaultdict(list)
    for tp, first, listed in objects_of(s3, settings, tps):
        found[tp].append(FoundObject(listed.key, first, listed.size, listed.etag))
    for of_partition in found.values():
        of_partition.sort(key=lambda each: (each.first, each.key))
    return found


def _uploads(s3: S3Client, settings: ObjectSettings, tps: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
    found: defaultdict[TopicPartition, int] = defaultdict(int)
    for tp, _ in uploads_of(s3, settings, tps):
        found[tp] += 1
    return found
