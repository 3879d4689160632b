"""The facts of one pass agree with each other, and rejected writes wait."""

from __future__ import annotations

import copy

import pytest

from s3sink_operator import names
from s3sink_operator.decide.context import Context
from s3sink_operator.types import Rejection
from tests.operator.fake_cluster import MINUTE, Cluster, document, running


def context(cluster: Cluster) -> Context:
    return Context(cluster.observe(), cluster.settings, cluster.now)


def test_the_settings_of_a_sink_are_those_with_the_request_of_the_annotation() -> None:
    cluster = running()
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    cluster.annotate({names.RESET_OFFSETS_ANNOTATION: '{"nonce": "n1", "to": "Earliest"}'})
    ctx = context(cluster)
    assert ctx.sink.parsed is ctx.reset.sink
    assert ctx.sink.manifest.spec.offsets.reset is not None
    assert ctx.sink.manifest.spec.offsets.reset.nonce == "n1"


@pytest.mark.parametrize("pod", ["flights-s3sink-driver", "flights-s3sink-operation"])
def test_the_end_of_a_foreign_pod_is_no_failure_of_the_sink(pod: str) -> None:
    cluster = Cluster()
    foreign = {"kind": "Pod", "metadata": {"name": pod, "uid": "x"}, "status": {"phase": "Failed"}}
    cluster.objects["Pod", pod] = copy.deepcopy(foreign)
    ctx = context(cluster)
    assert ctx.history.retry is None
    assert ctx.history.new_failure is None
    assert ctx.history.next_attempt == 1
    assert (ctx.pods.driver, ctx.pods.operation) == (None, None)


def test_the_number_of_executors_is_an_input_of_their_memory() -> None:
    cluster = running(executor={"mode": "Cluster", "cores": 2, "scaling": {"mode": "Auto", "minInstances": 3}})
    ctx = context(cluster)
    assert ctx.sizing.inputs.executors == ctx.scaling.desired == 3


def test_facts_of_an_invalid_spec_are_those_that_need_no_settings() -> None:
    ctx = context(Cluster(sink=document(rotation={"flushSize": 0})))
    assert ctx.sink.parsed is None
    assert ctx.scaling.plan is None
    assert ctx.pods.driver is None
    assert ctx.history.next_attempt == 1
    assert not ctx.sizing.is_driver_capped


def rejected_for(cluster: Cluster, *at_ms: int, kind: str = "Pod", name: str = "a") -> int | None:
    """How long writes of the pod `a` wait after these rejections."""
    cluster.rejections = [
        Rejection(kind=kind, name=name, status=403, reason="", message="no", at_ms=each) for each in at_ms
    ]
    return context(cluster).rejected_for_ms("Pod", "a")


def test_a_rejected_write_waits_from_the_last_rejection_on() -> None:
    cluster = Cluster()
    now, retry = cluster.now, cluster.settings.rejected_retry_ms
    assert rejected_for(cluster) is None
    assert rejected_for(cluster, now) == retry == MINUTE
    assert rejected_for(cluster, now - 10_000, now - 50_000) == retry - 10_000
    assert rejected_for(cluster, now - retry + 1) == 1
    assert rejected_for(cluster, now - retry) is None
    assert rejected_for(cluster, now - 10 * retry) is None


@pytest.mark.parametrize(("kind", "name"), [("Pod", "b"), ("ConfigMap", "a"), ("Pod/replacement", "a")])
def test_the_rejection_of_another_object_delays_nothing(kind: str, name: str) -> None:
    cluster = Cluster()
    assert rejected_for(cluster, cluster.now, kind=kind, name=name) is None
