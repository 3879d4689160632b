"""Which objects Kafka can still restore, and the jobs that read their records. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject
from sink_job.maintenance.repair.damage import Suspect
from sink_job.tasks.rebuild import MissingRecords

MAX_JOB_BYTES = 1 << 30
"""Bytes of the objects of a topic-partition that one job writes: their last parts are on the local disk until its
end."""
MAX_UNUSED_OFFSETS = 10_000
"""Offsets between two objects that a job reads without need."""


class KafkaLogs(NamedTuple):
    """The offsets that Kafka holds of each topic-partition: from `starts` (inclusive) to `ends` (exclusive)."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


class Job(NamedTuple):
    """Objects of one generation and one claim's settings, by topic-partition."""

    generation: int
    settings: int
    objects: dict[TopicPartition, list[ClosedObject]]


def reason_not_held(o: ClosedObject, live: Collection[TopicPartition], logs: KafkaLogs) -> str | None:
    """Why Kafka does not hold all offsets of the object: what is left, and what would be lost. None if it does."""
    tp, records = o.topic_partition, f"{o.offsets.count:,} records (offsets {o.first} to {o.last})"
    if tp not in live or tp not in logs.starts:
        return (
            f"Kafka no longer holds {tp} as the ledger knows it: the topic was deleted or created again, or "
            f"spec.kafka.bootstrapServers are those of another cluster. All {records} would be lost"
        )
    start, end = logs.starts[tp], logs.ends[tp]
    if start > o.last or end <= o.first:
        return f"Kafka's log of {tp} has the offsets {start} to {end - 1}: all {records} would be lost"
    if start > o.first:
        return (
            f"Kafka's log of {tp} begins at offset {start}: the records from there to offset {o.last} are left, those "
            f"at offsets {o.first} to {start - 1} would be lost"
        )
    if end <= o.last:
        return (
            f"Kafka's log of {tp} ends at offset {end - 1}, it was truncated: the records from offset {o.first} to "
            f"there are left, those at offsets {end} to {o.last} would be lost"
        )
    return None


def reason_not_selected(missing: MissingRecords) -> str:
    """Why Kafka's records are not those of the object: what is left, and what would be lost."""
    found, expected = missing.found.count, missing.expected.count
    if missing.is_loss:
        return (
            f"Kafka holds {found:,} of its {expected:,} records: {expected - found:,} would be lost, which retention "
            "or compaction has deleted"
        )
    if missing.other_rules:
        recorded, installed = missing.other_rules
        return (
            f"this version of the sink selects {found:,} of its {expected:,} records; Kafka returns "
            f"{missing.returned:,}. No record is lost. The object was written with {recorded}; installed are "
            f"{installed}. Run this command with the recorded versions"
        )
    return (
        f"of the records that Kafka holds at its offsets {found:,} belong to it now, {expected:,} did. Was the topic "
        "created again, was the ledger's copy of a schema deleted (s3sink forget-schema), or is this another version "
        "of s3sink?"
    )


def reason_of_other_bytes(o: ClosedObject, rebuilt: ClosedObject, recorded: str | None, installed: str | None) -> str:
    """Why the records in Kafka do not give the recorded bytes. `recorded` and `installed` are the libraries that
    determine the bytes."""
    libraries = (
        f"The object was written with {recorded}; installed is {installed}. Run this command with the recorded version"
        if recorded != installed
        else "Was the topic created again, or is this another version of s3sink? Run the version that wrote it"
    )
    return (
        f"Kafka holds all of its {o.offsets.count:,} records, no record is lost. But this version of the sink writes "
        f"other bytes for them: {rebuilt.bytes:,} instead of {o.bytes:,}, with another checksum. {libraries}"
    )


def jobs(suspects: Iterable[Suspect]) -> Iterator[Job]:
    """The jobs that write these objects again. A job reads the topic-partitions side by side, and of each only the
    offsets of objects that follow each other."""
    groups: dict[tuple[int, int], dict[TopicPartition, list[ClosedObject]]] = {}
    for suspect in suspects:
        of_settings = groups.setdefault((suspect.generation, suspect.o.settings), {})
        of_settings.setdefault(suspect.o.topic_partition, []).append(suspect.o)
    for (generation, settings), partitions in groups.items():
        chunks = {tp: list(_chunks(objects)) for tp, objects in partitions.items()}
        for step in zip_longest(*chunks.values()):
            objects = {tp: chunk for tp, chunk in zip(chunks, step, strict=True) if chunk is not None}
            yield Job(generation, settings, objects)


def _chunks(objects: Sequence[ClosedObject]) -> Iterator[list[ClosedObject]]:
    chunk: list[ClosedObject] = []
    size, reached = 0, 0
    for o in sorted(objects, key=lambda o: (o.first, o.key)):
        if chunk and (size >= MAX_JOB_BYTES or o.first > reached + MAX_UNUSED_OFFSETS):
            yield chunk
            chunk, size = [], 0
        chunk.append(o)
        size, reached = size + o.bytes, max(reached if len(chunk) > 1 else 0, o.last)
    if chunk:
        yield chunk
