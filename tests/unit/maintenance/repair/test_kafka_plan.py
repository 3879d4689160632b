"""What Kafka can restore, and in which jobs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject, OffsetChecksum
from sink_job.maintenance.repair import kafka_plan
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.kafka_plan import (
    KafkaLogs,
    jobs,
    reason_not_held,
    reason_not_selected,
    reason_of_other_bytes,
)
from sink_job.tasks.rebuild import MissingRecords

TP = TopicPartition("log", 0)


def closed(first: int, last: int, *, partition: int = 0, settings: int = 1, size: int = 100) -> ClosedObject:
    offsets = OffsetChecksum(last - first + 1, 1)
    return ClosedObject(
        f"k{partition}-{first}", "log", partition, "p", first, last, size, 7, "u", (), (), offsets, settings
    )


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (0, 30, None),
        (10, 20, None),
        (15, 30, "the records from there to offset 19 are left, those at offsets 10 to 14 would be lost"),
        (20, 30, "has the offsets 20 to 29: all 10 records (offsets 10 to 19) would be lost"),
        (0, 10, "has the offsets 0 to 9: all 10 records (offsets 10 to 19) would be lost"),
        (0, 15, "it was truncated: the records from offset 10 to there are left, those at offsets 15 to 19"),
    ],
)
def test_the_offsets_that_kafka_holds_decide(start: int, end: int, reason: str | None) -> None:
    found = reason_not_held(closed(10, 19), [TP], KafkaLogs({TP: start}, {TP: end}))
    assert found is None if reason is None else reason in str(found)


def test_a_topic_that_is_not_the_one_of_the_ledger_restores_nothing() -> None:
    found = reason_not_held(closed(10, 19), [], KafkaLogs({}, {}))
    assert "the topic was deleted or created again" in str(found)


MISSING = MissingRecords("p", 0, 9, OffsetChecksum(7), OffsetChecksum(10), returned=7, absent=3)


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (MISSING, "Kafka holds 7 of its 10 records: 3 would be lost"),
        (
            replace(MISSING, returned=10, absent=0, other_rules=("msgspec 1", "msgspec 2")),
            "No record is lost. The object was written with msgspec 1; installed are msgspec 2",
        ),
        (replace(MISSING, returned=10, absent=0), "7 belong to it now, 10 did"),
    ],
)
def test_the_reason_states_what_is_left(missing: MissingRecords, reason: str) -> None:
    assert reason in reason_not_selected(missing)


def test_other_bytes_of_another_library_are_no_loss() -> None:
    o = closed(0, 9)
    found = reason_of_other_bytes(o, replace(o, bytes=90), "zstd 1.5.7", "zstd 99")
    assert "all of its 10 records, no record is lost" in found
    assert "90 instead of 100" in found
    assert "The object was written with zstd 1.5.7; installed is zstd 99" in found
    assert "another version of s3sink" in reason_of_other_bytes(o, o, None, None)


def layout(*suspects: Suspect) -> list[tuple[int, int, list[list[str]]]]:
    return [
        (job.generation, job.settings, [[o.key for o in objects] for objects in job.objects.values()])
        for job in jobs(suspects)
    ]


def test_objects_that_follow_each_other_are_read_together_and_partitions_side_by_side() -> None:
    found = [closed(10, 19), closed(0, 9), closed(100_000, 100_009), closed(0, 5, partition=1)]
    assert layout(*(Suspect(o, 1) for o in found)) == [
        (1, 1, [["k0-0", "k0-10"], ["k1-0"]]),
        (1, 1, [["k0-100000"]]),
    ]


def test_settings_and_generations_have_jobs_of_their_own() -> None:
    found = [Suspect(closed(0, 9), 1), Suspect(closed(10, 19, settings=4), 1), Suspect(closed(20, 29, settings=4), 2)]
    assert [(generation, settings) for generation, settings, _ in layout(*found)] == [(1, 1), (1, 4), (2, 4)]


def test_a_job_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_plan, "MAX_JOB_BYTES", 150)
    found = [Suspect(closed(first, first + 9), 1) for first in (0, 10, 20)]
    assert layout(*found) == [(1, 1, [["k0-0", "k0-10"]]), (1, 1, [["k0-20"]])]
