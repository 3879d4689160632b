"""`verify --deep` compares a topic-partition chunk by chunk and skips records that Kafka no longer holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec
import pytest

from sink_job.api.errors import DataLoss
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import KafkaAdmin, TopicInfo
from sink_job.engine.types import Columns, ProcessorFactory, Range
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import ClosedObject, LedgerState, PartitionState
from sink_job.rotation.types import RotationState
from sink_job.s3 import S3Settings
from sink_job.verify import compare_job
from sink_job.verify.audit_input import BucketState, GenerationAudit, KafkaOffsets
from sink_job.verify.compare_task import CompareInput
from sink_job.verify.evidence import Evidence
from sink_job.verify.results import ComparisonResult, Finding, FindingType, PartitionResult

TP = TopicPartition("log", 0)


def closed(first: int, last: int) -> ClosedObject:
    return ClosedObject(
        key=f"key+{first}",
        topic=TP.topic,
        partition=TP.partition,
        path="a",
        first=first,
        last=last,
        bytes=100,
        crc=0,
        upload="u",
        parts=(),
        sources=(),
        offsets=checksum_range(first, last + 1),
        settings=1,
    )


@dataclass
class RecordingKafka:
    """An admin client, and an engine that records the requested comparisons."""

    held: list[int] = field(default_factory=lambda: [0])
    fails: list[bool] = field(default_factory=list)
    ran: list[tuple[int, int, list[tuple[int, bool]]]] = field(default_factory=list)
    skipped: list[tuple[int, ...]] = field(default_factory=list)

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        held = self.held.pop(0) if len(self.held) > 1 else self.held[0]
        return dict.fromkeys(partitions, held)

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        if self.fails and self.fails.pop(0):
            raise DataLoss("retention")
        for tp, (start, end) in ranges.items():
            given = msgspec.msgpack.decode(inputs[tp], type=CompareInput)
            self.ran.append((start, end, [(o.first, o.read) for o in given.objects]))
            self.skipped.append(given.skipped)
        comparison = ComparisonResult(
            objects=1, findings=[Finding(FindingType.RECORD_MISMATCH, 7, "m")] if len(self.ran) == 1 else []
        )
        return {tp: msgspec.msgpack.encode(comparison) for tp in ranges}

    def cancel(self) -> None: ...
    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {}

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        return {}

    def cluster_id(self) -> str:
        return ""

    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
    ) -> dict[TopicPartition, int]:
        return {}


def compared(
    kafka: RecordingKafka,
    *objects: ClosedObject,
    start: int = 0,
    missing: frozenset[str] = frozenset(),
    end: int | None = None,
    skipped: tuple[int, ...] = (),
) -> PartitionResult:
    committed = max(o.last for o in objects) + 1
    state = LedgerState(
        partitions={str(TP): PartitionState(RotationState.start(committed), rotation_start=committed, skipped=skipped)},
        settings={1: "{}"},
    )
    evidence = Evidence(
        current=GenerationAudit(state, objects, []),
        bucket=BucketState(missing=missing),
        kafka=KafkaOffsets(),
        settings_of_claims={1: ObjectSettings()},
        live=[TP],
        objects={o.key: o for o in objects},
    )
    result = PartitionResult(
        topic=TP.topic,
        partition=TP.partition,
        start=start,
        committed=committed,
        next=committed,
        objects=len(objects),
        records=0,
        bytes=0,
        pending_records=0,
        gaps=0,
        end=end,
    )
    context = compare_job.CompareContext(s3=S3Settings(bucket="b"), admin=cast("KafkaAdmin", kafka), engine=kafka)
    (compared_result,) = compare_job.compare(evidence, [result], context, ErrorsSpec())
    return compared_result


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two objects, unless a third one spans the end."""
    monkeypatch.setattr(compare_job, "CHUNK_BYTES", 150)


def test_chunks_follow_each_other_and_end_between_objects() -> None:
    kafka = RecordingKafka()
    compared(kafka, closed(5, 9), closed(10, 20), closed(15, 30), closed(40, 49), closed(50, 59), start=3)
    assert kafka.ran == [
        (3, 40, [(5, True), (10, True), (15, True)]),
        (40, 60, [(40, True), (50, True)]),
    ]


def test_a_chunk_has_the_skipped_offsets_in_it() -> None:
    kafka = RecordingKafka()
    compared(kafka, closed(5, 9), closed(10, 20), closed(40, 49), start=3, skipped=(2, 15, 30, 45, 60))
    assert [(start, end) for start, end, _ in kafka.ran] == [(3, 40), (40, 50)]
    assert kafka.skipped == [(15, 30), (45,)]


def test_the_results_of_chunks_add_up() -> None:
    result = compared(RecordingKafka(), closed(0, 9), closed(10, 19), closed(20, 29), closed(30, 39))
    assert result.compared == ComparisonResult(objects=2)
    assert [finding.offset for finding in result.findings] == [7]


def test_objects_that_kafka_no_longer_holds_completely_are_not_read() -> None:
    kafka = RecordingKafka(held=[15])
    result = compared(kafka, closed(0, 9), closed(10, 19), closed(20, 29))
    assert kafka.ran == [(15, 30, [(10, False), (20, True)])]
    assert result.compared
    assert result.compared.kafka_gone_objects == 2


def test_retention_between_two_chunks_is_detected() -> None:
    kafka = RecordingKafka(held=[0, 35])
    result = compared(kafka, closed(0, 9), closed(10, 19), closed(20, 29), closed(30, 39), closed(40, 49))
    assert kafka.ran == [(0, 20, [(0, True), (10, True)]), (35, 50, [(30, False), (40, True)])]
    assert result.compared
    assert result.compared.kafka_gone_objects == 2


def test_a_chunk_is_repeated_after_retention_deleted_its_records() -> None:
    kafka = RecordingKafka(held=[0, 10], fails=[True])
    compared(kafka, closed(0, 9), closed(10, 19))
    assert kafka.ran == [(10, 20, [(10, True)])]


def test_nothing_is_compared_after_retention_deleted_everything() -> None:
    kafka = RecordingKafka(held=[100])
    result = compared(kafka, closed(0, 9), closed(10, 19))
    assert kafka.ran == []
    assert result.compared == ComparisonResult(kafka_gone_objects=2)


def test_a_missing_object_still_accounts_for_its_records() -> None:
    kafka = RecordingKafka()
    result = compared(kafka, closed(0, 9), closed(10, 19), missing=frozenset({"key+10"}))
    assert kafka.ran == [(0, 20, [(0, True), (10, False)])]
    assert result.compared
    assert result.compared.kafka_gone_objects == 0


def test_nothing_is_read_after_the_end_of_the_log() -> None:
    kafka = RecordingKafka()
    compared(kafka, closed(0, 9), closed(10, 19), end=15)
    assert kafka.ran == [(0, 15, [(0, True), (10, True)])]
