"""The lag in the status: with the time of its observation, and never older or more precise than what is known."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_operator.kubectl import view
from s3sink_operator.kubectl.partitions import from_status
from s3sink_operator.status import reported_progress
from s3sink_operator.status.progress_model import MAX_COMMITTED, SinkProgress
from s3sink_operator.status.status_model import S3SinkStatus
from s3sink_operator.types import Json, to_timestamp
from sink_job.api.errors import BucketNotFound
from sink_job.api.report import PartitionReport, RunState
from tests.operator.fake_cluster import MINUTE, Cluster, report, running


def lagging(lag: int = 5, lag_ms: int | None = 90_000) -> Cluster:
    """A sink with a written lag."""
    cluster = running()
    cluster.wait(MINUTE)
    cluster.report = report(now=cluster.now, lag=lag, lag_ms=lag_ms)
    cluster.converge()
    return cluster


def progress(cluster: Cluster) -> Json:
    return dict(cluster.status["progress"])


def test_a_lag_has_the_time_of_its_observation() -> None:
    cluster = running()
    cluster.wait(MINUTE)
    cluster.report = report(now=cluster.now, log_ends_at=cluster.now - 20_000, lag=5, lag_ms=90_000)
    cluster.converge()
    observed = to_timestamp(cluster.now - 20_000)
    assert progress(cluster)["lag"] == {"records": 5, "seconds": 90, "time": observed}


def test_an_unknown_age_is_absent_and_not_zero() -> None:
    cluster = lagging(lag_ms=None)
    assert "seconds" not in progress(cluster)["lag"]
    assert "lagSeconds" not in progress(cluster)["topics"][0].keys() | progress(cluster)["mostLagging"][0].keys()
    assert view.overview([cluster.sink], cluster.now, all_namespaces=False).splitlines()[1].split()[4:6] == ["5", "-"]


def test_the_age_of_the_sink_is_unknown_while_that_of_one_lagging_partition_is() -> None:
    known = PartitionReport(topic="a", partition=0, committed=1, next=1, end=3, lag=2, lag_ms=7_000)
    idle = PartitionReport(topic="a", partition=1, committed=1, next=1, end=1, lag=0)
    unknown = PartitionReport(topic="b", partition=0, committed=1, next=1, end=3, lag=2)
    found = reported_progress.progress(report(partitions=[known, idle, unknown]))
    assert found.lag is not None
    assert (found.lag.records, found.lag.seconds) == (4, None)
    assert [(each.topic, each.lag_seconds) for each in found.topics or ()] == [("a", 7), ("b", None)]
    without = reported_progress.progress(report(partitions=[known, idle])).lag
    assert without is not None
    assert without.seconds == 7


def end_driver(cluster: Cluster) -> None:
    cluster.fail(BucketNotFound("no bucket"))


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda c: c.edit(state="Paused"), id="paused"),
        pytest.param(lambda c: c.edit(state="Stopped"), id="stopped"),
        pytest.param(end_driver, id="back-off"),
        pytest.param(lambda c: c.run(RunState.STARTING), id="starting"),
        pytest.param(lambda c: c.run(RunState.RECOVERING, partitions=[]), id="recovering"),
    ],
)
def test_without_a_driver_that_reports_it_the_lag_is_the_last_known_one(end: Any) -> None:
    cluster = lagging()
    observed = to_timestamp(cluster.now)
    cluster.wait(MINUTE)
    end(cluster)
    cluster.converge()
    cluster.wait(MINUTE)
    cluster.converge()
    assert "lag" not in progress(cluster)
    assert progress(cluster)["lastKnownLag"] == {"records": 5, "seconds": 90, "time": observed}
    for section in ("topics", "mostLagging"):
        for each in progress(cluster).get(section, ()):
            assert not {"lag", "lagSeconds", "end"} & each.keys()
    assert view.overview([cluster.sink], cluster.now, all_namespaces=False).splitlines()[1].split()[4:6] == ["-", "-"]
    assert "Lag:           unknown; last known: 5 records, the oldest was 1m30s old; observed " in view.detail(
        cluster.sink, cluster.now
    )
    assert not cluster.decide().has_writes


def test_a_driver_that_reports_again_replaces_the_last_known_lag() -> None:
    cluster = lagging()
    cluster.run(RunState.STARTING)
    cluster.converge()
    cluster.run()
    cluster.converge()
    assert "lastKnownLag" not in progress(cluster)
    assert progress(cluster)["lag"]["records"] == 0


def test_an_unchanged_lag_is_written_again_with_its_time_every_five_minutes() -> None:
    cluster = lagging()
    written = []
    for _ in range(12):
        cluster.wait(MINUTE)
        cluster.report = report(now=cluster.now, lag=5, lag_ms=90_000)
        cluster.converge()
        written.append(progress(cluster)["lag"]["time"])
    assert len(set(written)) == 3, written


def test_a_lag_that_nothing_renews_is_not_shown_as_the_current_one() -> None:
    cluster = lagging()
    now = cluster.now + 11 * MINUTE
    assert view.overview([cluster.sink], now, all_namespaces=False).splitlines()[1].split()[4:6] == ["-", "-"]
    text = "unknown; last known: 5 records, the oldest was 1m30s old; observed 11m ago"
    assert text in view.detail(cluster.sink, now)


def partitions(count: int, topic: str = "flights") -> list[PartitionReport]:
    return [
        PartitionReport(topic=topic, partition=n, committed=10 * n, next=10 * n + 5, end=10 * n + 9, lag=9)
        for n in range(count)
    ]


def test_the_committed_offsets_of_all_partitions_are_kept_without_a_driver() -> None:
    cluster = running()
    cluster.wait(MINUTE)
    cluster.report = report(now=cluster.now, partitions=partitions(50)[::-1], assigned_partitions=50)
    cluster.converge()
    cluster.edit(state="Paused")
    cluster.converge_with_kubelet()
    assert progress(cluster)["topics"] == [
        {"topic": "flights", "partitions": 50, "committed": [10 * n for n in range(50)]}
    ]
    found = from_status(view.status_of(cluster.sink).progress or SinkProgress(), "no driver runs")
    assert [(each.partition, each.committed) for each in found.partitions] == [(n, 10 * n) for n in range(50)]
    assert found.note.startswith("no driver runs; these are the committed offsets in the status of 20")


def test_a_partition_that_is_not_read_has_no_offset() -> None:
    found = reported_progress.progress(report(partitions=[each for each in partitions(3) if each.partition != 1]))
    assert found.topics
    assert found.topics[0].committed == [0, -1, 20]
    assert [each.partition for each in from_status(found, "").partitions] == [0, 2]


def test_topics_whose_offsets_do_not_fit_are_counted() -> None:
    found = reported_progress.progress(report(partitions=[*partitions(MAX_COMMITTED), *partitions(3, "more")]))
    assert [len(each.committed or ()) for each in found.topics or ()] == [MAX_COMMITTED, 0]
    assert "without 1 topics" in from_status(found, "no driver runs").note
    assert S3SinkStatus.read({"progress": found.document()}).progress == found
