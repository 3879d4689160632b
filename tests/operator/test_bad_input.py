"""Input of others of any size fails no reconcile: it is reported, and the sink continues."""

from __future__ import annotations

import copy

import pytest

from s3sink_operator import names
from s3sink_operator.objects.pods import EXECUTOR_MEMORY_ANNOTATION
from sink_job.api.report import MemoryReport, PartitionReport
from tests.operator.fake_cluster import report, running

MOST = 2**63 - 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="brackets without an end"),
        pytest.param("[" * 950 + "]" * 950, id="brackets within brackets"),
        pytest.param('{"nonce": ' + "9" * 5000 + "}", id="a number of thousands of digits"),
        pytest.param('{"nonce": "\\ud800", "to": "Earliest"}', id="half a character"),
    ],
)
def test_an_unreadable_reset_annotation_is_reported_and_the_driver_is_still_managed(text: str) -> None:
    cluster = running()
    cluster.annotate({names.RESET_OFFSETS_ANNOTATION: text})
    cluster.fail(exit_code=75)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert cluster.condition("OffsetsReset")["reason"] == "InvalidRequest"


def test_sums_are_limited_to_the_largest_integer_of_the_api_server() -> None:
    much = [PartitionReport(topic="t", partition=n, committed=0, next=0, lag=MOST) for n in range(3)]
    held = MemoryReport(slots=1, buffered_bytes=MOST, spilled_bytes=MOST)
    cluster = running(executor={"mode": "Local", "memory": {"mode": "Recommend"}})
    cluster.report = report(partitions=much, memory=held, now=cluster.now)
    cluster.wait(60_000)
    cluster.converge()
    assert cluster.status["progress"]["lag"]["records"] == MOST
    assert cluster.status["progress"]["topics"][0]["lag"] == MOST
    assert cluster.status["memory"]["inputs"]["heldBytes"] == MOST


@pytest.mark.parametrize("digits", [10, 16, 62, 63])
def test_a_label_that_is_no_attempts_number_counts_nothing(digits: int) -> None:
    cluster = running(executor={"mode": "Cluster"})
    foreign = copy.deepcopy(cluster.executor(1))
    foreign["metadata"]["labels"][names.ATTEMPT_LABEL] = "9" * digits
    cluster.fail(exit_code=75)
    cluster.executors = [foreign]
    cluster.converge_with_kubelet()
    assert cluster.status["attempts"][0]["number"] == 2


def test_a_drivers_annotation_that_is_no_size_is_none() -> None:
    cluster = running(executor={"mode": "Cluster"})
    assert cluster.driver
    cluster.driver["metadata"]["annotations"][EXECUTOR_MEMORY_ANNOTATION] = "9" * 5000
    cluster.converge()
    assert cluster.ready == ("True", "Running")
