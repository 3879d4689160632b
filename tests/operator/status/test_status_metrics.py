"""The metrics of sinks, which the operator serves while no driver runs."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from s3sink_operator.status.status_metrics import exposition
from s3sink_operator.types import Json
from sink_job.api.errors import TransientError
from tests.operator.fake_cluster import Cluster, running

Sample = tuple[str, frozenset[tuple[str, str]]]


def samples(*sinks: Json) -> dict[Sample, float]:
    families = text_string_to_metric_families(exposition(sinks).decode())
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(sink: Json, name: str, **labels: str) -> float | None:
    """The value of a metric of this sink; None without a sample."""
    meta = sink["metadata"]
    found = labels | {"namespace": meta["namespace"], "sink": meta["name"]}
    return samples(sink).get((f"s3sink_status_{name}", frozenset(found.items())))


def test_a_running_sink_is_ready_and_has_a_phase() -> None:
    sink = running().sink
    assert value(sink, "condition", condition="Ready", status="True") == 1
    assert value(sink, "condition", condition="Ready", status="False") == 0
    assert value(sink, "phase", phase="Running") == 1
    assert value(sink, "desired_state", state="Running") == 1
    assert value(sink, "consecutive_failures") == 0


def test_a_sink_whose_driver_failed_is_not_ready_and_counts_the_failure() -> None:
    cluster = running()
    cluster.fail(TransientError("Kafka did not answer"))
    cluster.converge()
    assert value(cluster.sink, "condition", condition="Ready", status="True") == 0
    assert value(cluster.sink, "condition", condition="Ready", status="False") == 1
    assert value(cluster.sink, "consecutive_failures") == 1


def test_a_sink_without_a_status_is_of_unknown_state() -> None:
    sink = Cluster().sink
    sink.pop("status", None)
    assert value(sink, "condition", condition="Ready", status="Unknown") == 1
    assert value(sink, "condition", condition="Ready", status="True") == 0
    assert value(sink, "lag_records") is None
    assert value(sink, "last_publish_time_seconds") is None


def test_progress_of_the_status_has_samples_where_it_is_known() -> None:
    sink = running().sink
    sink["status"]["progress"] |= {"lag": {"records": 42}, "lastPublishTime": "2026-01-05T10:00:00Z"}
    assert value(sink, "lag_records") == 42
    assert value(sink, "last_publish_time_seconds") == 1_767_607_200


def test_a_further_condition_has_series_while_the_status_has_it() -> None:
    sink = running().sink
    assert value(sink, "condition", condition="DataLoss", status="True") is None
    sink["status"]["conditions"].append({"type": "DataLoss", "status": "True"})
    assert value(sink, "condition", condition="DataLoss", status="True") == 1


def test_the_number_of_series_is_bounded_by_the_number_of_sinks() -> None:
    sinks = [running().sink | {"metadata": {"namespace": "lake", "name": f"sink-{n}"}} for n in range(9)]
    most = [9 + 5] * 9
    assert [len(samples(sink)) for sink in sinks] <= most
    assert len(samples(*sinks)) == sum(len(samples(sink)) for sink in sinks)


def test_a_text_of_another_client_in_the_status_is_escaped() -> None:
    sink = running().sink
    sink["status"]["progress"]["phase"] = 'a "quoted"\ntext \\'
    assert value(sink, "phase", phase='a "quoted"\ntext \\') == 1
