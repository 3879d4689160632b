"""Requests about offsets by annotation, as `kubectl s3sink reset-offsets` writes them: they go before the spec's."""

from __future__ import annotations

import json

from s3sink_operator import names
from s3sink_operator.objects import operation_of
from s3sink_operator.types import Json
from tests.operator.fake_cluster import Cluster, running


def stopped(**spec: Json) -> Cluster:
    """A sink that is Stopped, with a job that carries out every request."""
    cluster = running(**spec)
    cluster.annotate({names.STATE_ANNOTATION: "Stopped"})
    cluster.converge_with_kubelet()
    cluster.log.clear()
    return cluster


def ask(cluster: Cluster, nonce: str, to: str = "Earliest", **more: object) -> None:
    cluster.annotate({names.RESET_OFFSETS_ANNOTATION: json.dumps({"nonce": nonce, "to": to} | more)})


def resets(cluster: Cluster) -> int:
    """The number of operation pods that were created."""
    return cluster.log.count(f"create {names.operation_pod_name(cluster.name)}")


def test_a_request_in_the_annotation_runs_once_and_the_spec_is_unchanged() -> None:
    cluster = stopped()
    before = json.dumps(cluster.sink["spec"])
    ask(cluster, "a1", "Timestamp", timestamp=1_762_164_000_000, onExisting="NewPrefix")
    cluster.converge()
    assert cluster.operation
    assert operation_of(cluster.operation) == "Reset:a1"
    line = cluster.operation["spec"]["containers"][0]["args"]
    assert line[line.index("--to") :][:6] == [
        "--to", "Timestamp", "--on-existing", "NewPrefix", "--timestamp", "1762164000000",
    ]  # fmt: skip
    cluster.converge_with_kubelet()
    assert cluster.status["offsetReset"]["nonce"] == "a1"
    assert not cluster.decide().has_writes
    assert resets(cluster) == 1
    assert json.dumps(cluster.sink["spec"]) == before


def test_a_request_in_the_spec_does_not_run_again_after_one_in_the_annotation() -> None:
    cluster = stopped(offsets={"reset": {"nonce": "s1", "to": "Earliest"}})
    assert cluster.status["offsetReset"]["nonce"] == "s1"
    ask(cluster, "a1", "Latest")
    cluster.converge_with_kubelet()
    assert cluster.status["offsetReset"]["completedNonces"] == {"spec": "s1", "annotation": "a1"}
    assert resets(cluster) == 1
    cluster.edit(offsets={"reset": {"nonce": "s2", "to": "Latest"}})
    cluster.converge_with_kubelet()
    assert cluster.status["offsetReset"]["nonce"] == "s2"
    assert resets(cluster) == 2


def test_what_an_older_operator_has_remembered_counts_for_the_spec() -> None:
    cluster = stopped(offsets={"reset": {"nonce": "s1", "to": "Earliest"}})
    del cluster.sink["status"]["offsetReset"]["completedNonces"]
    cluster.converge_with_kubelet()
    assert resets(cluster) == 0


def test_an_unreadable_request_is_reported_and_the_sink_continues() -> None:
    cluster = running()
    for text, said in (
        ("{", "invalid JSON"),
        ("[1]", "spec.offsets.reset"),
        ('{"nonce": "a1", "to": "Yesterday"}', "spec.offsets.reset.to"),
        ('{"nonce": "a1", "to": "Timestamp"}', "timestamp"),
        ('{"to": "Earliest"}', "nonce"),
        ('{"nonce": null, "to": "Earliest"}', "nonce"),
        ("null", "remove the annotation"),
    ):
        cluster.annotate({names.RESET_OFFSETS_ANNOTATION: text})
        cluster.converge_with_kubelet()
        reported = cluster.condition("OffsetsReset")
        assert reported["reason"] == "InvalidRequest"
        assert said in reported["message"]
        assert cluster.ready == ("True", "Running")


def test_a_completed_annotation_does_not_hide_a_request_in_the_spec() -> None:
    cluster = stopped()
    cluster.annotate({names.RESET_OFFSETS_ANNOTATION: "null"})
    cluster.edit(offsets={"reset": {"nonce": "s1", "to": "Earliest"}})
    cluster.converge_with_kubelet()
    assert cluster.status["offsetReset"]["nonce"] == "s1"
    assert cluster.condition("OffsetsReset")["reason"] == "InvalidRequest"


def test_a_request_in_the_annotation_waits_until_the_sink_is_stopped() -> None:
    cluster = running()
    ask(cluster, "a1")
    cluster.converge_with_kubelet()
    assert cluster.condition("OffsetsReset")["reason"] == "WaitingForStopped"
    assert names.RESET_OFFSETS_ANNOTATION in cluster.condition("OffsetsReset")["message"]
    assert cluster.ready == ("True", "Running")
