"""The chart on a real API server: installed, upgraded, uninstalled; and what its accounts may do there."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster, ExistingCluster, cluster
from devtools.processes import wait_until
from tests.support.chart import MINIMAL, Helm
from tools.chart import CHART, ROOT

pytestmark = pytest.mark.cluster
CRD_NAME = "s3sinks.s3sink.io"
OFF = ["--set", "crds.enabled=false"]


@pytest.fixture(scope="module")
def control_plane() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@dataclass
class Release:
    """A release of the chart in a namespace of its own."""

    helm: Helm
    cluster: Cluster
    namespace: str

    def run(self, *words: str | Path) -> str:
        kubeconfig = self.cluster.kubeconfig(namespace=self.namespace)
        done = self.helm(*words, "--namespace", self.namespace, kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *more: str) -> str:
        # Names without a namespace are those of this test alone.
        own = ["--set", f"driverClusterRole.name={self.namespace}"]
        return self.run("upgrade", "--install", "s3sink", CHART, "--values", MINIMAL, *own, *more)

    def uninstall(self) -> None:
        self.run("uninstall", "s3sink", "--ignore-not-found")

    @property
    def kube(self) -> Kube:
        return self.cluster.client().within(self.namespace)

    def may(self, account: str, verb: str, resource: str, *, group: str = "", namespace: str, name: str = "") -> bool:
        """Whether a service account of the release's namespace may do something."""
        resource, _, subresource = resource.partition("/")
        asked = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": namespace,
            "name": name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": f"system:serviceaccount:{self.namespace}:{account}", "resourceAttributes": asked},
        }
        answer = self.kube.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    def wait_may(self, account: str, verb: str, resource: str, **where: str) -> None:
        """Returns when a service account may do something: RBAC follows a binding after a moment."""
        wait_until(lambda: self.may(account, verb, resource, **where), f"{account} may {verb} {resource}", seconds=60)


@pytest.fixture
def release(helm: Helm, control_plane: Cluster) -> Iterator[Release]:
    name = f"ops-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube = control_plane.client()
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    made = Release(helm, control_plane, name)
    yield made
    made.uninstall()
    if kube.find("ClusterRole", name):
        kube.delete("ClusterRole", name)
    kube.delete("Namespace", name)


@pytest.fixture
def without_crd(control_plane: Cluster) -> Iterator[None]:
    """No CRD before and none afterwards. Not in a cluster of the user: its sinks would be deleted."""
    if isinstance(control_plane, ExistingCluster):
        pytest.skip("the CRD of a given cluster is not removed")
    kube = control_plane.client()

    def remove() -> None:
        if kube.find("CustomResourceDefinition", CRD_NAME):
            kube.delete("CustomResourceDefinition", CRD_NAME)
            control_plane.wait_crd_gone(CRD_NAME)

    remove()
    yield
    remove()


def is_established(crd: Json) -> bool:
    return "Established" in {each["type"] for each in crd.get("status", {}).get("conditions", ())}


@pytest.mark.usefixtures("without_crd")
def test_the_crd_comes_with_the_release_stays_after_it_and_is_taken_over_by_the_next(release: Release) -> None:
    notes = release.install()
    assert "keeps the CustomResourceDefinition and all sinks" in notes
    release.kube.wait("CustomResourceDefinition", CRD_NAME, is_established)
    release.uninstall()
    assert release.kube.find("CustomResourceDefinition", CRD_NAME)
    assert not release.kube.find("Deployment", "s3sink-operator")
    release.install("--take-ownership")


@pytest.mark.usefixtures("without_crd")
def test_an_upgrade_brings_the_crd_of_the_new_chart(release: Release) -> None:
    release.install()
    release.kube.patch("CustomResourceDefinition", CRD_NAME, {"spec": {"names": {"shortNames": ["old"]}}})
    release.install("--set", "replicaCount=2")
    assert release.kube.get("CustomResourceDefinition", CRD_NAME)["spec"]["names"]["shortNames"] == ["s3s"]
    assert release.kube.find("PodDisruptionBudget", "s3sink-operator")


@pytest.mark.usefixtures("without_crd")
def test_a_crd_that_is_not_kept_goes_with_the_release(release: Release, control_plane: Cluster) -> None:
    assert "deletes every S3Sink of the cluster" in release.install("--set", "crds.keep=false")
    release.uninstall()
    control_plane.wait_crd_gone(CRD_NAME)


def test_the_role_of_drivers_stays_after_the_release_and_is_adopted_by_the_next(release: Release) -> None:
    assert f"kubectl delete clusterrole {release.namespace}" in release.install(*OFF)
    release.uninstall()
    assert release.kube.find("ClusterRole", release.namespace)
    assert not release.kube.find("ClusterRole", f"{release.namespace}-s3sink-operator")
    release.install(*OFF)


def test_the_operator_may_make_what_sinks_need_everywhere_and_read_no_secret(release: Release) -> None:
    release.install(*OFF)
    may, wait_may = release.may, release.wait_may
    account = "s3sink-operator"
    wait_may(account, "create", "pods", namespace="anywhere")
    wait_may(account, "patch", "pods/resize", namespace="anywhere")
    wait_may(account, "patch", "s3sinks/status", group="s3sink.io", namespace="anywhere")
    wait_may(account, "update", "leases", group="coordination.k8s.io", namespace=release.namespace, name=account)
    assert not may(account, "update", "leases", group="coordination.k8s.io", namespace="anywhere", name=account)
    assert not may(account, "get", "secrets", namespace="anywhere")
    assert not may(account, "get", "pods/proxy", namespace="anywhere")
    assert not may(account, "update", "s3sinks", group="s3sink.io", namespace="anywhere")


def test_the_operator_binds_the_drivers_role_and_no_other(release: Release) -> None:
    release.install(*OFF)
    asked = {"group": "rbac.authorization.k8s.io", "namespace": "anywhere"}
    release.wait_may("s3sink-operator", "bind", "clusterroles", name=release.namespace, **asked)
    assert not release.may("s3sink-operator", "bind", "clusterroles", name="cluster-admin", **asked)


def test_with_namespaces_the_operator_may_do_nothing_elsewhere(release: Release) -> None:
    release.install(*OFF, "--set", f"watch.namespaces={{{release.namespace}}}")
    asked = {"group": "rbac.authorization.k8s.io", "name": release.namespace}
    for verb, resource, more in (("create", "pods", {}), ("bind", "clusterroles", asked)):
        release.wait_may("s3sink-operator", verb, resource, namespace=release.namespace, **more)
        assert not release.may("s3sink-operator", verb, resource, namespace="elsewhere", **more)
    release.wait_may("s3sink-operator", "list", "nodes", namespace="")


def test_everything_that_needs_no_other_operator_is_accepted(release: Release) -> None:
    names = ["serviceMonitor", "podMonitor", "prometheusRule"]
    off = [word for name in names for word in ("--set", f"{name}.enabled=false")]
    here = ["--set", f"watch.namespaces={{{release.namespace}}}"]
    values = ROOT / "charts" / "s3sink-operator" / "ci" / "everything.yaml"
    release.install(*OFF, *off, *here, "--values", str(values))
    assert release.kube.find("NetworkPolicy", "s3sink-operator-sinks")
    assert release.kube.find("ConfigMap", "s3sink-operator-dashboard")


def test_the_pods_are_admitted_under_the_restricted_profile(release: Release) -> None:
    release.install(*OFF)
    template = release.kube.get("Deployment", "s3sink-operator")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": template["spec"]}
    path = f"/api/v1/namespaces/{release.namespace}/pods"
    assert release.kube.request("POST", path, pod, query={"dryRun": "All"})["spec"]["serviceAccountName"]
    hook = release.run("get", "hooks", "s3sink")
    test = yaml.safe_load(hook) | {"metadata": {"name": "test"}}
    release.kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    assert release.kube.request("POST", path, test, query={"dryRun": "All"})["spec"]["containers"]


@pytest.mark.usefixtures("without_crd")
@pytest.mark.parametrize("everywhere", [True, False], ids=["cluster-wide", "in its namespace"])
def test_the_operator_runs_a_sink_with_arguments_and_permissions_of_the_chart(
    release: Release, control_plane: Cluster, tmp_path: Path, everywhere: bool
) -> None:
    kube, where = release.kube, [] if everywhere else ["--set", f"watch.namespaces={{{release.namespace}}}"]
    release.install("--set", "operator.extraArgs={--port=0}", "--set", "sinkDefaults.labels.team=lake", *where)
    kube.wait("CustomResourceDefinition", CRD_NAME, is_established)
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    pod = kube.get("Deployment", "s3sink-operator")["spec"]["template"]["spec"]
    account = control_plane.service_account(release.namespace, pod["serviceAccountName"])
    sink = yaml.safe_load((ROOT / "examples" / "minimal.yaml").read_text())
    (tmp_path / "config.yaml").write_text(kube.get("ConfigMap", "s3sink-operator-config")["data"]["config.yaml"])
    mounted = "/etc/s3sink-operator/config.yaml"
    arguments = [word.replace(mounted, str(tmp_path / "config.yaml")) for word in pod["containers"][0]["args"]]
    release.wait_may(pod["serviceAccountName"], "list", "s3sinks", group="s3sink.io", namespace=release.namespace)
    with operator(arguments, control_plane.kubeconfig(account), tmp_path / "log"):
        kube.create(sink)
        kube.wait(
            "Pod",
            "minimal-s3sink-driver",
            lambda pod: pod["metadata"]["labels"]["team"] == "lake",
            seconds=60,
            what=(tmp_path / "log").read_text(),
        )
        kube.wait("S3Sink", "minimal", lambda sink: sink.get("status", {}).get("observedGeneration"))
    binding = kube.get("RoleBinding", "minimal-s3sink")
    assert binding["roleRef"]["name"] == release.namespace
    log = (tmp_path / "log").read_text()
    assert "orbidden" not in log, log


@contextmanager
def operator(arguments: Sequence[str], kubeconfig: Path, log: Path) -> Iterator[None]:
    """`s3sink operator` as a process with the given kubeconfig, ended on leaving."""
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    command = [sys.executable, "-m", "sink_job.cli.main", *arguments]
    with log.open("w") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def operator_pods(release: Release) -> list[Json]:
    """The pods of the operator that are not being deleted."""
    labels = "app.kubernetes.io/component=operator"
    return [pod for pod in release.kube.items("Pod", labels=labels) if "deletionTimestamp" not in pod["metadata"]]


def set_ready(release: Release, pod: Json) -> None:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    release.kube.patch("Pod", pod["metadata"]["name"], {"status": status}, subresource="status")


def test_an_image_that_does_not_start_leaves_the_running_operator(release: Release) -> None:
    release.install(*OFF)
    wait_until(lambda: len(operator_pods(release)) == 1, "the pod of the operator", seconds=60)
    (running,) = operator_pods(release)
    set_ready(release, running)
    release.install(*OFF, "--set", "image.tag=no-such-tag")
    wait_until(lambda: len(operator_pods(release)) == 2, "the pod with the new image", seconds=60)
    deployment = release.kube.wait(
        "Deployment", "s3sink-operator", lambda found: found.get("status", {}).get("unavailableReplicas") == 1
    )
    assert deployment["status"]["availableReplicas"] == 1
    assert running["metadata"]["name"] in {pod["metadata"]["name"] for pod in operator_pods(release)}
    release.install(*OFF, "--set", "image.tag=works")
    wait_until(lambda: any(map(is_fixed, operator_pods(release))), "the pod with the fixed image", seconds=60)
    (fixed,) = filter(is_fixed, operator_pods(release))
    set_ready(release, fixed)
    wait_until(lambda: list(map(is_fixed, operator_pods(release))) == [True], "the end of the old pod", seconds=60)


def is_fixed(pod: Json) -> bool:
    return str(pod["spec"]["containers"][0]["image"]).endswith(":works")
