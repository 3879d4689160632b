"""Two sinks with the same resources."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator.types import SinkResources, to_timestamp
from tests.operator.fake_cluster import (
    START,
    actions,
    running,
)


def older() -> SinkResources:
    return SinkResources(
        namespace="data",
        name="elder",
        creation_time=to_timestamp(START - 1000),
        bucket="archive",
        topics_dir="topics",
        topics=["flights"],
        group="g",
        sink_id="s",
        brokers="kafka:9092",
    )


def test_of_two_conflicting_sinks_the_later_one_is_terminated_and_both_are_named() -> None:
    cluster = running()
    other = older()
    cluster.others = [replace(other, held=other.digest, held_since="1970-01-01T00:00:00Z")]
    cluster.converge()
    assert cluster.driver is None
    assert cluster.ready == ("False", "Conflict")
    message = cluster.condition("Ready")["message"]
    assert "data/elder" in message
    assert "data/flights" in message
    assert "claim" not in cluster.status
    cluster.others = []
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_an_older_sink_that_is_edited_does_not_end_a_running_one() -> None:
    cluster = running()
    claim = cluster.status["claim"]
    cluster.others = [replace(older(), held="what it held before the edit")]
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.status["claim"] == claim


def test_a_sink_of_another_namespace_is_a_warning_and_stops_nothing() -> None:
    cluster = running()
    cluster.others = [replace(older(), namespace="attacker")]
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.condition("Conflict")["reason"] == "OtherNamespace"
    assert "attacker/elder" in cluster.condition("Conflict")["message"]
    assert not actions(cluster)
