"""The tests' own ground: that the control plane is a real one, and that harness and fault proxy do what they say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import urllib3

from devtools.faults.kube_proxy import Delay, Drop, Hold, Kill, KubeFaults, Reject, call, writes
from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.control_plane import Cluster, ControlPlane
from devtools.kube.fake_kubelet import Harness
from devtools.processes import wait_until
from sink_job.api.report import Report, RunState

pytestmark = pytest.mark.cluster

ROOT_CERTIFICATES = "kube-root-ca.crt"
"""The ConfigMap that a controller puts into every namespace."""
LOST_CONNECTION = urllib3.exceptions.HTTPError


def pod(name: str = "driver", *, memory: str = "1Gi", owner: Json | None = None) -> Json:
    metadata: Json = {"name": name}
    if owner:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        metadata["ownerReferences"] = [
            {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]
    container = {
        "name": "main",
        "image": "image",
        "resources": {"requests": {"memory": memory}, "limits": {"memory": memory}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"restartPolicy": "Never", "containers": [container], "securityContext": security}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "terminationGracePeriodSeconds": 5},
    }


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def terminated(pod: Json) -> Json:
    state: Json = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return state


def condition(pod: Json, kind: str) -> tuple[str, str | None] | None:
    found = {each["type"]: each for each in pod["status"]["conditions"]}.get(kind)
    return (found["status"], found.get("reason")) if found else None


# --- the control plane


def test_the_restricted_profile_rejects_an_insecure_pod(kube: Kube) -> None:
    careless = pod()
    del careless["spec"]["securityContext"]
    with pytest.raises(ApiError, match="violates PodSecurity") as caught:
        kube.create(careless)
    assert caught.value.status == 403


def test_a_service_account_has_the_permissions_of_rbac_only(control_plane: Cluster, kube: Kube, namespace: str) -> None:
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    kube.create({**rbac, "kind": "Role", "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    kube.create({**rbac, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]})

    reader = control_plane.client(control_plane.service_account(namespace, "reader")).within(namespace)

    wait_until(lambda: _allowed(lambda: reader.items("ConfigMap")), "RBAC", seconds=60)
    with pytest.raises(ApiError, match="cannot list resource"):
        reader.items("Pod")


def test_a_user_is_whom_the_certificate_names(control_plane: Cluster) -> None:
    if not isinstance(control_plane, ControlPlane):
        pytest.skip("the given cluster's authority is not ours")
    user = control_plane.client(control_plane.user("alice", ["people"]))
    with pytest.raises(ApiError, match='User "alice" cannot list resource "nodes"'):
        user.items("Node")


def test_what_lost_its_owner_is_deleted(kube: Kube, harness: Harness, owner: Json) -> None:
    kube.create(pod(owner=owner))
    kube.delete("ConfigMap", "owner")
    with harness.playing():
        kube.wait_gone("Pod", "driver")


def test_a_quota_rejects_with_its_own_message(kube: Kube) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    kube.create({**quota, "spec": {"hard": {"pods": "0"}}})
    # What its controller does in its own time, and a control plane of the user's programs may not run it.
    kube.patch("ResourceQuota", "few", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}, subresource="status")
    with pytest.raises(ApiError, match="exceeded quota: few"):
        kube.create(pod())


def test_the_api_server_comes_back_on_the_same_data_and_address(tmp_path: Path) -> None:
    with ControlPlane(tmp_path, controllers=()) as control_plane:
        kube = control_plane.client().within("default")
        kube.create(config_map("a"))
        control_plane.restart_api_server()
        assert kube.find("ConfigMap", "a")


# --- the harness


def test_a_pod_runs_and_answers_its_report(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    report = Report(sink_id="id", name="flights", namespace="n", state=RunState.RUNNING, now=1, started_at=0)

    running = harness.run("driver", report=report)

    assert running["status"]["phase"] == "Running"
    assert condition(running, "Ready") == ("True", None)
    assert condition(running, "PodScheduled") == ("True", None)
    answer = urllib3.request("GET", f"http://{running['status']['podIP']}:8042/report", retries=False)
    assert Report.model_validate_json(answer.data) == report


def test_a_silent_pod_refuses_connections(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    address = harness.run("driver", report={})["status"]["podIP"]
    harness.silence("driver")
    with pytest.raises(LOST_CONNECTION):
        urllib3.request("GET", f"http://{address}:8042/report", retries=False)


@pytest.mark.parametrize(
    ("happens", "phase", "exit_code", "reason", "message"),
    [
        pytest.param(lambda h: h.succeed("driver", "all"), "Succeeded", 0, "Completed", "all", id="success"),
        pytest.param(lambda h: h.fail("driver", 78, "bad"), "Failed", 78, "Error", "bad", id="failure"),
        pytest.param(lambda h: h.oom_kill("driver"), "Failed", 137, "OOMKilled", None, id="out of memory"),
        pytest.param(lambda h: h.evict("driver"), "Failed", 137, "Error", None, id="eviction"),
    ],
)
def test_a_pod_ends_by(
    kube: Kube,
    harness: Harness,
    happens: Callable[[Harness], Any],
    phase: str,
    exit_code: int,
    reason: str,
    message: str,
) -> None:
    kube.create(pod())
    harness.run("driver")

    happens(harness)

    ended = kube.get("Pod", "driver")
    assert ended["status"]["phase"] == phase
    end = terminated(ended)
    assert (end["exitCode"], end["reason"], end.get("message")) == (exit_code, reason, message)


def test_an_evicted_pod_reports_the_eviction(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    evicted = harness.evict("driver")
    assert evicted["status"]["reason"] == "Evicted"
    assert condition(evicted, "DisruptionTarget") == ("True", "TerminationByKubelet")


def test_an_image_that_cannot_be_pulled_keeps_the_pod_pending(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    harness.waiting("driver", "ErrImagePull", "not found")
    waiting = harness.waiting("driver", "ImagePullBackOff", "Back-off pulling image")
    assert waiting["status"]["phase"] == "Pending"
    state = waiting["status"]["containerStatuses"][0]["state"]
    assert state == {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}


def test_a_pod_that_no_node_takes_is_left_pending(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    harness.unschedulable("driver")
    harness.settle()
    assert condition(kube.get("Pod", "driver"), "PodScheduled") == ("False", "Unschedulable")


def test_a_deleted_pod_stays_for_its_grace_until_the_kubelet_ends_it(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    harness.run("driver")

    kube.delete("Pod", "driver")

    assert kube.get("Pod", "driver")["metadata"]["deletionGracePeriodSeconds"] == 5
    harness.end("driver")
    assert kube.find("Pod", "driver") is None


def test_a_pod_that_sticks_goes_only_by_force(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    harness.run("driver")
    harness.stick("driver")
    kube.delete("Pod", "driver")
    harness.settle()
    assert "deletionTimestamp" in kube.get("Pod", "driver")["metadata"]

    kube.delete("Pod", "driver", grace_s=0)

    assert kube.find("Pod", "driver") is None


def test_a_lost_node_reports_nothing_of_its_pods_until_it_returns(kube: Kube, harness: Harness) -> None:
    kube.create(pod())
    harness.run("driver")
    harness.lose_node()
    kube.delete("Pod", "driver")
    harness.settle()
    lost = kube.get("Pod", "driver")
    assert (lost["status"]["phase"], condition(lost, "Ready")) == ("Running", ("False", "NodeNotReady"))
    assert condition(kube.get("Node", harness.node_name), "Ready") == ("Unknown", "NodeStatusUnknown")

    harness.node()
    harness.settle()

    assert kube.find("Pod", "driver") is None


@pytest.mark.parametrize(
    ("how", "has", "reported"),
    [
        ("done", "2Gi", None),
        ("infeasible", "1Gi", ("True", "Infeasible")),
        ("deferred", "1Gi", ("True", "Deferred")),
    ],
)
def test_a_resize_is_answered(
    kube: Kube, harness: Harness, how: Any, has: str, reported: tuple[str, str] | None
) -> None:
    kube.create(pod(memory="1Gi"))
    harness.run("driver")
    resized = {"name": "main", "resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "2Gi"}}}
    resize = {"spec": {"containers": [resized]}}
    path = f"/api/v1/namespaces/{kube.namespace}/pods/driver/resize"
    kube.request("PATCH", path, resize, content_type="application/strategic-merge-patch+json")

    answered = harness.resize("driver", how)

    assert answered["status"]["containerStatuses"][0]["resources"]["limits"]["memory"] == has
    assert condition(answered, "PodResizePending") == reported


def test_a_healthy_cluster_starts_what_is_created_and_ends_what_is_deleted(kube: Kube, harness: Harness) -> None:
    with harness.playing():
        kube.create(pod())
        kube.wait("Pod", "driver", lambda each: each["status"]["phase"] == "Running")
        kube.delete("Pod", "driver")
        kube.wait_gone("Pod", "driver")


def test_a_pod_can_be_set_to_fail_at_its_start(kube: Kube, harness: Harness) -> None:
    harness.at_start("driver", lambda name: harness.fail(name, 1))
    kube.create(pod())
    harness.settle()
    assert kube.get("Pod", "driver")["status"]["phase"] == "Failed"


# --- the fault proxy


def test_writes_are_counted_by_verb_and_kind(faulty: Kube, faults: KubeFaults) -> None:
    faulty.create(config_map("a"))
    faulty.apply(config_map("a", key="value"))
    faulty.patch("ConfigMap", "a", {"data": {"key": "other"}})
    faulty.items("ConfigMap")
    faulty.delete("ConfigMap", "a")
    with pytest.raises(ApiError):
        faulty.delete("ConfigMap", "a")

    done = {"create configmaps": 1, "apply configmaps": 1, "patch configmaps": 1, "delete configmaps": 1}
    assert faults.done() == done


@pytest.mark.parametrize(("point", "written"), [("before", ["1"]), ("after", ["1", "2"])])
def test_the_nth_write_is_the_last_before_or_after_it_is_done(
    kube: Kube, faulty: Kube, faults: KubeFaults, point: Any, written: list[str]
) -> None:
    killed = threading.Event()
    faults.when(writes, Kill(killed.set), point=point, nth=2)
    faulty.create(config_map("1"))

    with pytest.raises(LOST_CONNECTION):
        faulty.create(config_map("2"))

    assert killed.is_set()
    with pytest.raises(LOST_CONNECTION):
        faulty.create(config_map("3"))
    names = [each["metadata"]["name"] for each in kube.items("ConfigMap")]
    assert [name for name in names if name != ROOT_CERTIFICATES] == written


def test_a_write_is_done_though_its_reply_is_lost(kube: Kube, faulty: Kube, faults: KubeFaults) -> None:
    faults.when(call("create configmaps", name=None), Drop(), point="after")
    with pytest.raises(LOST_CONNECTION):
        faulty.create(config_map("a"))
    assert kube.find("ConfigMap", "a")
    faulty.create(config_map("b"))


@pytest.mark.parametrize("status", [409, 429, 500])
def test_a_request_is_rejected_in_place_of_the_server(
    kube: Kube, faulty: Kube, faults: KubeFaults, status: int
) -> None:
    faults.when(writes, Reject(status, retry_after_s=1 if status == 429 else None))
    with pytest.raises(ApiError, match="by the test") as caught:
        faulty.create(config_map("a"))
    assert caught.value.status == status
    assert kube.find("ConfigMap", "a") is None


def test_a_call_is_delayed_or_held(faulty: Kube, faults: KubeFaults) -> None:
    faults.when(writes, Delay(0.01))
    faulty.create(config_map("a"))

    hold = Hold()
    held = faults.when(writes, hold)
    thread = threading.Thread(target=faulty.create, args=[config_map("b")])
    thread.start()
    held.wait()
    assert faulty.find("ConfigMap", "b") is None
    hold.release.set()
    thread.join()
    assert faulty.find("ConfigMap", "b")


def test_an_old_list_is_replayed(kube: Kube, faulty: Kube, faults: KubeFaults) -> None:
    before = faulty.items("ConfigMap")
    old = faults.recorded("configmaps")
    kube.create(config_map("a"))

    faults.when(call("list configmaps"), old)

    assert faulty.items("ConfigMap") == before
    assert "a" in [each["metadata"]["name"] for each in faulty.items("ConfigMap")]


class Watch:
    """A watch of ConfigMaps through the proxy, read by a thread: the names seen so far, and whether it broke."""

    def __init__(self, kube: Kube, faulty: Kube) -> None:
        path = f"/api/v1/namespaces/{kube.namespace}/configmaps"
        self.version = kube.request("GET", path)["metadata"]["resourceVersion"]
        self.seen: list[str] = []
        self.broken = threading.Event()
        self._faulty = faulty
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for event in self._faulty.watch("ConfigMap", resource_version=self.version, timeout_s=30):
                if (name := event["object"]["metadata"]["name"]) != ROOT_CERTIFICATES:
                    self.seen.append(name)
        except LOST_CONNECTION:
            self.broken.set()

    def wait(self, *names: str) -> None:
        wait_until(lambda: self.seen == [*names], f"{names} seen", seconds=60)


@pytest.fixture
def watched(kube: Kube, faulty: Kube) -> Watch:
    return Watch(kube, faulty)


def test_a_frozen_watch_delivers_later_what_happened_meanwhile(kube: Kube, faults: KubeFaults, watched: Watch) -> None:
    kube.create(config_map("a"))
    watched.wait("a")
    faults.freeze("configmaps")
    kube.create(config_map("b"))
    assert watched.seen == ["a"]
    faults.thaw("configmaps")
    watched.wait("a", "b")


def test_events_are_dropped_from_a_watch(kube: Kube, faults: KubeFaults, watched: Watch) -> None:
    kube.create(config_map("first"))
    watched.wait("first")
    with faults.without_events("configmaps", lambda event: event["object"]["metadata"]["name"] == "lost"):
        kube.create(config_map("lost"))
        kube.create(config_map("kept"))
        watched.wait("first", "kept")


def test_a_watch_is_broken_in_the_middle(kube: Kube, faults: KubeFaults, watched: Watch) -> None:
    kube.create(config_map("a"))
    watched.wait("a")
    faults.break_watches()
    assert watched.broken.wait(60)


def _allowed(do: Callable[[], object]) -> bool:
    try:
        do()
    except ApiError as error:
        if error.status == 403:
            return False
        raise
    return True
