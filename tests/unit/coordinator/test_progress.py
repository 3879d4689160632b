"""The report before the first round and after the rounds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sink_job.api.report import HangingTransactionReport, RunState
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import Committer
from sink_job.coordinator.progress import Progress
from sink_job.ledger.state import ClosedObject, Extent, LedgerState, OffsetChecksum, OpenObject, PartitionState
from sink_job.rotation.types import OpenObjectState, RotationState
from sink_job.tasks.write import TaskCounters, TaskResult
from tests.unit.api.manifests import accepted

NOW = 1_700_000_000_000
TP = TopicPartition("flights", 0)


def open_object(path: str) -> OpenObject:
    return OpenObject(
        OpenObjectState(path=path, first=90, last=99, count=10, size=10, opened_at=NOW, interval_start=None),
        settings=1,
        offsets=OffsetChecksum(10, 1),
    )


STATE = LedgerState(
    number=7,
    epoch=5,
    partitions={
        str(TP): PartitionState(
            RotationState(next=100, committable=90), rotation_start=90, open=(open_object("a"), open_object("b"))
        )
    },
    pending={"k": ClosedObject("k", "flights", 0, "p", 80, 89, 10, 77, "u", (), (), OffsetChecksum(10, 1), 1)},
)


@pytest.fixture
def tracker() -> Progress:
    return Progress(accepted(), lambda: NOW)


def test_from_the_claim_on_a_report_contains_open_and_unpublished_objects(tracker: Progress) -> None:
    tracker.claimed(STATE)
    report = tracker.report()
    assert (report.state, report.round, report.memory.open_objects) == (RunState.RECOVERING, 7, 2)
    assert [p.committed for p in report.partitions] == [80]


def test_a_report_counts_what_the_recovery_has_published(tracker: Progress) -> None:
    tracker.claimed(STATE)
    anything: Any = None
    commits = Committer(
        ledger=anything, s3=anything, offsets=anything, group="g", state=STATE, rebuild=anything, clock=lambda: NOW
    )
    commits.state, commits.published = msgspec.structs.replace(STATE, pending={}), 1
    tracker.recovered(commits)
    report = tracker.report()
    assert [p.committed for p in report.partitions] == [90]
    assert (report.totals.objects, report.last_publish, report.memory.max_open_objects) == (1, NOW, 2)


def test_a_report_has_the_active_topic_partitions_and_their_expected_remainder(tracker: Progress) -> None:
    staged = msgspec.structs.replace(open_object("a"), blocks=(Extent("staging/1", 0, 500, 0),))
    state = msgspec.structs.replace(STATE.partitions[str(TP)], open=(staged,))
    anything: Any = None
    commits = Committer(
        ledger=anything, s3=anything, offsets=anything, group="g", state=STATE, rebuild=anything, clock=lambda: NOW
    )
    results = {
        TP: TaskResult(state, TaskCounters(records=5)),
        TopicPartition("idle", 0): TaskResult(state, TaskCounters()),
    }
    tracker.round_completed(results, commits, started=NOW, recorded=NOW, ended=NOW)
    tracker.round_completed({}, commits, started=NOW, recorded=NOW, ended=NOW)
    report = tracker.report()
    assert (report.memory.active_partitions, report.memory.remainder_bytes, report.active_partitions) == (1, 500, 0)


def test_a_report_has_the_records_to_skip() -> None:
    listed = [{"topic": "flights", "partition": 0, "offset": offset} for offset in (3, 100)]
    tracker = Progress(accepted({"spec.errors.skip": listed}), lambda: NOW)
    assert tracker.report().skips is None
    tracker.claimed(STATE)
    skips = tracker.report().skips
    assert skips is not None
    assert (skips.waiting, skips.without_effect) == (1, 1)


def test_null_values_that_are_dead_letters_count_as_ignored_records(tracker: Progress) -> None:
    anything: Any = None
    commits = Committer(
        ledger=anything, s3=anything, offsets=anything, group="g", state=STATE, rebuild=anything, clock=lambda: NOW
    )
    counts = TaskCounters(records=5, rejected=7, kept_nulls=4, dead_letters=7)
    result = TaskResult(STATE.partitions[str(TP)], counts)
    tracker.round_completed({TP: result}, commits, started=NOW, recorded=NOW, ended=NOW)
    totals = tracker.report().totals
    assert (totals.records, totals.dead_letters, totals.ignored, totals.dropped) == (5, 3, 4, 0)
    assert totals.null_dead_letters == 4


def test_the_time_of_the_last_publication_is_not_that_of_a_round_without_one(tracker: Progress) -> None:
    anything: Any = None
    commits = Committer(
        ledger=anything, s3=anything, offsets=anything, group="g", state=STATE, rebuild=anything, clock=lambda: NOW
    )
    commits.published = 1
    for ended in (NOW, NOW + 1_000):
        tracker.round_completed({}, commits, started=NOW, recorded=NOW, ended=ended)
    assert tracker.report().last_publish == NOW


def test_a_report_has_the_present_hanging_transactions(tracker: Progress) -> None:
    one = HangingTransactionReport(topic="flights", partition=0, offset=90, end=100, since=NOW)
    tracker.hanging([one])
    assert tracker.report().hanging_transactions == [one]
    tracker.hanging([])
    assert tracker.report().hanging_transactions == []
