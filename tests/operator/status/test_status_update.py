"""How the status is put together, and when it is worth a write."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from s3sink_operator.status import reported_progress, status_update
from s3sink_operator.status.status_model import ConditionStatus, S3SinkStatus
from s3sink_operator.status.status_update import Condition
from s3sink_operator.types import Json, to_timestamp
from sink_job.api.report import PartitionReport, RunState, Totals
from tests.operator.fake_cluster import START, report

TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE
READY = Condition(type="Ready", status=TRUE, reason="Running", message="copying 1 topic-partition")


def made(conditions: list[Condition], old: list[Json] | None = None, now: int = START) -> list[Json]:
    """The conditions as JSON, after those of the JSON `old`."""
    before = S3SinkStatus.read({"conditions": old or []}).conditions or []
    assert len(before) == len(old or [])
    return [each.document() for each in status_update.conditions(before, conditions, generation=2, now=now)]


def test_a_conditions_time_changes_with_its_status_alone() -> None:
    first = made([READY])
    same = made([Condition(type="Ready", status=TRUE, reason="Other", message="m")], first, START + 60_000)
    assert same[0]["lastTransitionTime"] == to_timestamp(START)
    assert same[0]["reason"] == "Other"
    other = made([Condition(type="Ready", status=FALSE, reason="Starting", message="m")], same, START + 60_000)
    assert other[0]["lastTransitionTime"] == to_timestamp(START + 60_000)
    assert other[0]["observedGeneration"] == 2


def test_a_condition_that_is_over_goes_away() -> None:
    lost = Condition(type="DataLoss", status=TRUE, reason="OffsetsLost", message="m")
    assert [each["type"] for each in made([READY], made([READY, lost]))] == ["Ready"]


@pytest.mark.parametrize(
    ("said", "written"), [("Evicted", "Evicted"), ("no room!", "noroom"), ("42", "Unknown"), ("", "Unknown")]
)
def test_an_invalid_reason_is_sanitized(said: str, written: str) -> None:
    condition = Condition(type="Ready", status=FALSE, reason=said, message="m" * 100_000)
    assert made([condition])[0]["reason"] == written
    assert len(made([condition])[0]["message"]) == 4096


def test_the_twenty_most_lagging_partitions_are_listed_and_all_topics_summed() -> None:
    partitions = [
        PartitionReport(topic=f"t{n % 3}", partition=n, committed=n, next=n, end=2 * n, lag=n, lag_ms=n * 1000)
        for n in range(100)
    ]
    reported = reported_progress.progress(
        report(partitions=partitions, assigned_partitions=100, totals=Totals(records=5))
    ).document()
    assert [each["partition"] for each in reported["mostLagging"]] == list(range(99, 79, -1))
    assert reported["lag"] == {"records": 4950, "seconds": 99, "time": to_timestamp(START)}
    assert sum(topic["lag"] for topic in reported["topics"]) == 4950
    assert [topic["partitions"] for topic in reported["topics"]] == [34, 33, 33]
    assert reported["mostLagging"][0] == {
        "topic": "t0", "partition": 99, "committed": 99, "next": 99, "end": 198, "lag": 99, "lagSeconds": 99
    }  # fmt: skip


def test_unknown_lag_is_absent() -> None:
    partitions = [PartitionReport(topic="t", partition=0, committed=0, next=0)]
    assert "lag" not in reported_progress.progress(report(RunState.RECOVERING, partitions=partitions)).document()


def whole(**progress: Any) -> Json:
    return {
        "observedGeneration": 1,
        "conditions": made([READY]),
        "progress": {"phase": "Running", "records": 1} | progress,
        "memory": {"current": "2Gi", "recommended": "2Gi", "inputs": {"openObjects": 1}},
    }


def written(old: Json, new: Json, now: int) -> tuple[Json | None, int | None]:
    return status_update.pending_write(old, new, now=now, interval_ms=30_000)


def test_nothing_is_written_where_nothing_changed() -> None:
    first, _ = written({}, whole(), START)
    assert first is not None
    assert written(first, whole(), START + 3_600_000) == (None, None)


def test_progress_waits_for_half_a_minute_and_is_not_forgotten() -> None:
    first, _ = written({}, whole(), START)
    assert first is not None
    assert written(first, whole(records=2), START + 12_000) == (None, 18_000)
    later, wait = written(first, whole(records=2), START + 30_000)
    assert later is not None
    assert later["progress"]["updateTime"] == to_timestamp(START + 30_000)
    assert wait is None


def test_what_memory_is_computed_from_is_progress_too() -> None:
    first, _ = written({}, whole(), START)
    assert first is not None
    new = whole()
    new["memory"] |= {"recommended": "3Gi", "inputs": {"openObjects": 9}}
    assert written(first, new, START + 1000) == (None, 29_000)


def with_table(status: Json, **table: Any) -> Json:
    return status | {"tables": [{"name": "lake.flights", "lagSeconds": 0} | table]}


def test_what_a_table_lacks_is_progress_and_its_error_is_not() -> None:
    first, _ = written({}, with_table(whole()), START)
    assert first is not None
    assert written(first, with_table(whole(), lagSeconds=60), START + 10_000) == (None, 20_000)
    assert written(first, with_table(whole(), error={"reason": "TableReplaced"}), START + 10_000)[0] is not None


def test_a_change_of_state_is_written_at_once_with_the_progress_so_far() -> None:
    first, _ = written({}, whole(), START)
    assert first is not None
    later, _ = written(first, whole(records=2, phase="Stopping"), START + 1000)
    assert later is not None
    assert later["progress"]["records"] == 2


def test_the_old_status_is_not_touched() -> None:
    first, _ = written({}, whole(), START)
    assert first is not None
    kept = copy.deepcopy(first)
    written(first, whole(records=2), START + 60_000)
    assert first == kept
