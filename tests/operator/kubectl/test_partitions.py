"""The topic-partitions of a sink: from the report of its driver, or from its status with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl.client import KubectlError
from s3sink_operator.kubectl.partitions import PartitionList, all_partitions, from_report, from_status
from s3sink_operator.status.progress_model import PartitionProgress, SinkProgress, TopicProgress
from s3sink_operator.types import to_timestamp
from sink_job.api.report import PartitionReport, Report, RunState
from tests.operator.fake_cluster import START, Cluster, report, running
from tests.operator.kubectl.fake_kubectl import fake

PROGRESS = SinkProgress(
    topics=[
        TopicProgress(topic="b", partitions=1, committed=[7]),
        TopicProgress(topic="a", partitions=3, committed=[5, -1, 6]),
    ],
    most_lagging=[PartitionProgress(topic="a", partition=2, committed=6, lag=9)],
    update_time=START,
)


def partition(topic: str, number: int) -> PartitionReport:
    return PartitionReport(topic=topic, partition=number, committed=1, next=2, end=3, lag=2)


def listed(cluster: Cluster, answer: Report | str | KubectlError) -> tuple[PartitionList, list[tuple[str, ...]]]:
    """The topic-partitions when the driver answers so, and the paths that were read."""
    text = answer.model_dump_json(by_alias=True) if isinstance(answer, Report) else answer
    kubectl = replace(fake(cluster), report=text)
    return all_partitions(kubectl, cluster.sink, PROGRESS), kubectl.calls


def test_the_report_of_the_driver_has_all_topic_partitions_by_topic_and_number() -> None:
    given = report(partitions=[partition("b", 0), partition("a", 10), partition("a", 9)], log_ends_at=START + 5)
    found, _ = listed(running(), given)
    assert [(each.topic, each.partition) for each in found.partitions] == [("a", 9), ("a", 10), ("b", 0)]
    assert (found.source, found.time, found.note) == ("Driver", START + 5, "")


def test_the_report_is_read_through_the_proxy_with_the_token_of_the_pod() -> None:
    cluster = running()
    assert cluster.driver
    cluster.driver["metadata"]["annotations"][names.REPORT_TOKEN_ANNOTATION] = "a&b="
    _, calls = listed(cluster, report())
    assert calls == [
        ("/api/v1/namespaces/data/pods/flights-s3sink-driver:8042/proxy/report?token=a%26b%3D",),
    ]


def test_a_pod_without_a_token_is_asked_without_one() -> None:
    cluster = running()
    assert cluster.driver
    cluster.driver["metadata"]["annotations"].pop(names.REPORT_TOKEN_ANNOTATION, None)
    _, calls = listed(cluster, report())
    assert calls == [("/api/v1/namespaces/data/pods/flights-s3sink-driver:8042/proxy/report",)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (KubectlError("Forbidden", "no pods/proxy"), "the driver's report cannot be read: no pods/proxy"),
        ("", "the driver's report is invalid"),
        ("[]", "the driver's report is invalid"),
        (report(name="trains"), "the report at the driver's address is of another sink"),
        (report(namespace="other"), "the report at the driver's address is of another sink"),
        (report(RunState.STARTING, partitions=[]), "the driver is Starting"),
    ],
    ids=["error", "empty", "no report", "another name", "another namespace", "starting"],
)
def test_without_a_report_of_this_sink_the_committed_offsets_of_the_status_are_shown(answer: Any, reason: str) -> None:
    found, _ = listed(running(), answer)
    assert found.source == "Status"
    assert found.note == f"{reason}; these are the committed offsets in the status of {to_timestamp(START)}"
    assert [(each.topic, each.partition, each.committed, each.lag) for each in found.partitions] == [
        ("a", 0, 5, None),
        ("a", 2, 6, 9),
        ("b", 0, 7, None),
    ]


def test_without_a_driver_no_report_is_read() -> None:
    cluster = running()
    cluster.remove("Pod", "flights-s3sink-driver")
    found, calls = listed(cluster, report())
    assert found.note.startswith("no driver runs; ")
    assert calls == []


def test_topics_whose_offsets_the_status_does_not_have_are_counted() -> None:
    progress = SinkProgress(topics=[TopicProgress(topic="a"), TopicProgress(topic="b"), TopicProgress(topic="c")])
    found = from_status(progress, "no driver runs")
    assert found.partitions == []
    assert found.note == (
        "no driver runs; these are the committed offsets in the status, without 3 topics that do not fit into it"
    )


def test_a_status_without_progress_lists_nothing_and_has_no_time() -> None:
    found = from_status(SinkProgress(), "no driver runs")
    assert found.as_data() == {"source": "Status", "time": None, "items": []}


def test_as_data_each_topic_partition_has_the_fields_of_the_status() -> None:
    data = from_report(report()).as_data()
    assert data["source"] == "Driver"
    assert data["time"] == to_timestamp(START)
    (item,) = data["items"]
    assert (item["topic"], item["partition"], item["committed"], item["lag"]) == ("flights", 0, 100, 0)


def test_a_report_that_has_no_time_of_its_log_ends_has_its_own() -> None:
    assert from_report(report(now=START + 7)).time == START + 7
