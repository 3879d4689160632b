"""What holds whatever happens: nothing is written twice, the way does not matter, any write may be the last."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator import names
from s3sink_operator.crd import STATUS
from s3sink_operator.types import Json, Unreachable
from sink_job.api.errors import BucketNotFound, TransientError
from sink_job.api.report import MemoryReport
from tests.operator.fake_cluster import MINUTE, SPEC, Cluster, document, report, running

FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "rotation": st.sampled_from([{"flushSize": 7}, {"maxBytes": "64Mi"}, {"flushSize": 100, "maxOpenTime": "5m"}]),
        "executor": st.fixed_dictionaries(
            {"mode": st.sampled_from(["Local", "Cluster"])},
            optional={
                "cores": st.integers(1, 4),
                "instances": st.integers(1, 3),
                "memory": st.sampled_from(
                    [{"mode": "Disabled"}, {"max": "2Gi"}, {"min": "3Gi"}, {"mode": "Recommend"}]
                ),
            },
        )
        | st.fixed_dictionaries(
            {"mode": st.just("Cluster")},
            optional={
                "cores": st.integers(1, 4),
                "scaling": st.sampled_from([{"mode": "Auto"}, {"mode": "Auto", "minInstances": 2, "maxInstances": 3}]),
            },
        ),
        "driver": st.sampled_from(
            [
                {"memory": "2Gi"},
                {"cores": 2},
                {"podTemplate": {"metadata": {"labels": {"team": "a"}}, "spec": {"nodeSelector": {"disk": "ssd"}}}},
            ]
        ),
        "s3": st.sampled_from(
            [{"bucket": "archive", "partSize": "64Mi"}, {"bucket": "archive", "credentials": {"secret": "keys"}}]
        ),
        "errors": st.just({"tolerance": "All"}),
        "image": st.sampled_from(["a:1", "b:2"]),
        "state": st.sampled_from(["Running", "Paused", "Stopped"]),
        "deletionPolicy": st.sampled_from(["Retain", "Publish", "Discard"]),
        "restartNonce": st.sampled_from(["x", "y"]),
        "sparkConf": st.just({"spark.foo": "1"}),
        "serviceAccount": st.sampled_from(
            [{"annotations": {"role": "a"}}, {"annotations": {"role": "b", "more": "c"}}, {"name": "own"}]
        ),
    },
)


def shown(cluster: Cluster) -> Json:
    """All objects and finalizers, without the fields of a single attempt."""
    specs = {}
    for (kind, name), obj in cluster.objects.items():
        kept = copy.deepcopy(obj)
        for key in ("uid", "creationTimestamp"):
            kept["metadata"].pop(key, None)
        kept["metadata"].get("labels", {}).pop(names.ATTEMPT_LABEL, None)
        kept["metadata"].get("annotations", {}).pop(names.GENERATION_ANNOTATION, None)
        kept["metadata"].get("annotations", {}).pop(names.REPORT_TOKEN_ANNOTATION, None)
        kept.pop("status", None)
        text = json.dumps(kept, sort_keys=True)
        text = re.sub(r"(flights-|s3sink.io/attempt: ')\d+", r"\1N", text)
        specs[f"{kind}/{name}"] = json.loads(text)
    return {"objects": specs, "finalizers": cluster.sink["metadata"].get("finalizers") or []}


def created(spec: Json) -> Cluster:
    """A sink that was made with this spec. Its load, which sizes follow, is not known."""
    cluster = Cluster(sink=document(**spec), load=MemoryReport())
    cluster.converge_with_kubelet()
    return cluster


@given(FLAGS, FLAGS)
def test_editing_one_spec_into_another_gives_the_same_objects_as_creating_that(first: Json, second: Json) -> None:
    edited = created(first)
    edited.sink["spec"] = copy.deepcopy(SPEC | second)
    edited.sink["metadata"]["generation"] += 1
    edited.converge_with_kubelet()
    made = created(second)
    assert shown(edited) == shown(made)
    assert edited.ready == made.ready


@given(FLAGS, st.sampled_from([{"rotation": {}}, {"kafka": {"topics": []}}, {"executor": {"cores": 0}}]))
def test_reverting_an_invalid_edit_restores_the_sink(good: Json, bad: Json) -> None:
    cluster = created(good)
    before = shown(cluster)
    kept = cluster.sink["spec"]
    cluster.sink["spec"] = kept | bad
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "InvalidSpec")
    cluster.sink["spec"] = kept
    cluster.converge_with_kubelet()
    assert shown(cluster) == before


def closed(schema: Json) -> Json:
    """The schema without undeclared fields at any level: the API server would prune them."""
    found = dict(schema)
    if "properties" in found:
        found["properties"] = {name: closed(inner) for name, inner in found["properties"].items()}
        found["additionalProperties"] = False
    if "items" in found:
        found["items"] = closed(found["items"])
    return found


AS_THE_CRD_HAS_IT = jsonschema.Draft202012Validator(closed(STATUS))
HUNGRY = MemoryReport(buffered_bytes=2 << 30, max_open_objects=99)

EVENTS: dict[str, Callable[[Cluster], Any]] = {
    "edit": lambda c: c.edit(restartNonce=f"n{c.now}"),
    "pause": lambda c: c.edit(state="Paused"),
    "stop": lambda c: c.edit(state="Stopped"),
    "resume": lambda c: c.edit(state="Running"),
    "reset": lambda c: c.edit(offsets={"reset": {"nonce": f"n{c.now}", "to": "Earliest"}}),
    "bad edit": lambda c: c.edit(rotation={}),
    "good edit": lambda c: c.edit(rotation={"flushSize": 3}),
    "annotate": lambda c: c.annotate({names.RESTART_ANNOTATION: f"r{c.now}"}),
    "hold": lambda c: c.annotate({names.RECONCILE_PAUSED_ANNOTATION: "true"}),
    "let go": lambda c: c.annotate({names.RECONCILE_PAUSED_ANNOTATION: "false"}),
    "kubelet": lambda c: c.kubelet(),
    "user error": lambda c: c.fail(BucketNotFound("no bucket")),
    "trouble": lambda c: c.fail(TransientError("slow")),
    "out of memory": lambda c: c.fail(exit_code=137, reason="OOMKilled"),
    "no answer": lambda c: setattr(c, "report", Unreachable(message="x")),
    "hunger": lambda c: setattr(
        c, "report", report(now=c.now, memory=MemoryReport(buffered_bytes=2 << 30, max_open_objects=99))
    ),
    "driver deleted": lambda c: c.remove("Pod", names.driver_pod_name(c.name)),
    "config deleted": lambda c: c.remove("ConfigMap", "flights-s3sink"),
    "node lost": lambda c: c.nodes.update({"node-1": False}),
    "node back": lambda c: c.nodes.update({"node-1": True}),
    "minute": lambda c: c.wait(MINUTE),
    "hour": lambda c: c.wait(61 * MINUTE),
    "status lost": lambda c: c.sink.pop("status", None),
    "delete": lambda c: c.delete_sink(),
    "deletes_slowly": lambda c: setattr(c, "deletes_slowly", not c.deletes_slowly),
}


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=14), st.sampled_from(["Retain", "Publish", "Discard"]))
def test_whatever_happens_a_decision_that_is_carried_out_leaves_nothing_to_write(
    events: list[str], policy: str
) -> None:
    cluster = Cluster(sink=document(deletionPolicy=policy))
    for event in events:
        EVENTS[event](cluster)
        cluster.converge()
        assert not cluster.decide().has_writes
        AS_THE_CRD_HAS_IT.validate(cluster.status)
        assert cluster.driver is None or cluster.operation is None
        if cluster.is_removed:
            return


@given(st.lists(st.sampled_from(sorted(set(EVENTS) - {"delete", "hold"})), max_size=10))
def test_whatever_happened_a_sink_that_should_run_runs_in_the_end(events: list[str]) -> None:
    cluster = Cluster()
    for event in events:
        EVENTS[event](cluster)
        cluster.converge()
    cluster.deletes_slowly, cluster.nodes, cluster.report = False, {}, None
    cluster.sink["spec"] = document()["spec"]
    for _ in range(4):
        cluster.converge_with_kubelet()
        cluster.wait(70 * MINUTE)
    if cluster.driver is not None and cluster.driver["status"]["phase"] == "Running":
        cluster.report = report(now=cluster.now)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def restart(cluster: Cluster) -> None:
    cluster.edit(restartNonce="again")


def stop(cluster: Cluster) -> None:
    cluster.edit(state="Stopped")


def pause(cluster: Cluster) -> None:
    cluster.edit(state="Paused")


def to_executors(cluster: Cluster) -> None:
    cluster.edit(executor={"mode": "Cluster"}, deletionPolicy="Publish")


def ended(cluster: Cluster) -> None:
    cluster.fail(TransientError("slow"))


def nothing(cluster: Cluster) -> None:
    pass


def writes(cluster: Cluster) -> Counter[str]:
    return Counter(each for each in cluster.log if each != "status")


LIVES = [nothing, restart, to_executors, pause, stop, ended, Cluster.delete_sink]


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
@pytest.mark.parametrize("kubelet_between", [False, True], ids=["at once", "after a while"])
def test_an_operator_killed_after_any_write_comes_to_the_same_end(
    life: Callable[[Cluster], None], kubelet_between: bool
) -> None:
    def begin() -> Cluster:
        cluster = Cluster() if life is nothing else running(deletionPolicy="Publish")

        life(cluster)
        return cluster

    whole = begin()
    total = whole.converge_with_kubelet()
    assert total
    for stop_after in range(total):
        cluster, left = begin(), stop_after
        while left > 0:
            done = cluster.reconcile(writes=left)
            left -= done
            if not done and not cluster.kubelet():
                break
            if left > 0:
                cluster.kubelet()
        if kubelet_between:
            cluster.kubelet()
        cluster.converge_with_kubelet()
        assert shown(cluster) == shown(whole), stop_after
        assert writes(cluster) == writes(whole), stop_after
        assert cluster.is_removed == whole.is_removed
