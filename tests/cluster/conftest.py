"""A control plane for all tests of this worker, and for each test a namespace of its own in it.

Pods are not run here: `harness` says what becomes of them. Namespaces ask for the restricted profile, so a pod that a
careful cluster would reject is rejected here too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from devtools.faults.kube_proxy import KubeFaults
from devtools.kube.build import control_plane_programs
from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.control_plane import Cluster, ExistingCluster, cluster
from devtools.kube.fake_driver_report import ReportServer
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import Operator, operator
from tests.support.operator_fixture import Operated, StartOperator

Ran = subprocess.CompletedProcess[str]
KubectlS3Sink = Callable[..., Ran]
CRDS = Path(__file__).resolve().parents[2] / "crds"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Cluster]:
    """A real API server with the project's CRDs; built when it has never been. All tests of this worker share it."""
    crds = [document for path in sorted(CRDS.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())]
    with cluster(crds=crds) as running:
        yield running


@pytest.fixture
def namespace(control_plane: Cluster, unique_name: str) -> Iterator[str]:
    """A fresh namespace under the restricted profile, with its default service account; deleted afterwards."""
    kube = control_plane.client()
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique_name, "labels": labels}})
    inside = kube.within(unique_name)
    inside.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    yield unique_name
    kube.delete("Namespace", unique_name)
    for pod in inside.items("Pod"):
        with contextlib.suppress(ApiError):
            inside.delete("Pod", pod["metadata"]["name"], grace_s=0)


@pytest.fixture
def kube(control_plane: Cluster, namespace: str) -> Kube:
    """The API server as its administrator sees it, with the test's namespace as the default."""
    return control_plane.client().within(namespace)


@pytest.fixture(scope="session")
def reports() -> Iterator[ReportServer]:
    """Where pods' reports are served."""
    with ReportServer() as server:
        yield server


@pytest.fixture
def harness(control_plane: Cluster, kube: Kube, reports: ReportServer) -> Iterator[Harness]:
    """Scheduler and kubelet of the test's namespace. Not beside real ones: a cluster with nodes skips the test."""
    if isinstance(control_plane, ExistingCluster) and control_plane.client().items("Node"):
        pytest.skip("the given cluster has nodes of its own, which would run the pods")
    harness = Harness(kube, reports, collect=not control_plane.collects_garbage)
    yield harness
    harness.remove_nodes()


@pytest.fixture
def faults(control_plane: Cluster) -> Iterator[KubeFaults]:
    """A way to the API server on which calls are counted and faults are made; `endpoint` is its address."""
    with KubeFaults(control_plane.admin.server) as proxy:
        yield proxy


@pytest.fixture
def faulty(control_plane: Cluster, faults: KubeFaults, namespace: str) -> Kube:
    """As `kube`, through `faults`."""
    return control_plane.client(control_plane.admin.through(faults.endpoint)).within(namespace)


@pytest.fixture
def operator_kubeconfig(control_plane: Cluster, faults: KubeFaults, namespace: str) -> Path:
    """A kubeconfig by which whatever is tested reaches the API server through `faults`, as its administrator."""
    return control_plane.kubeconfig(server=faults.endpoint, namespace=namespace)


@pytest.fixture
def owner(kube: Kube) -> Json:
    """An object that others can be owned by."""
    return kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})


@pytest.fixture(scope="session")
def shared_faults(control_plane: Cluster) -> Iterator[KubeFaults]:
    """The shared operator's way to the API server."""
    with KubeFaults(control_plane.admin.server) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def everywhere(
    control_plane: Cluster, shared_faults: KubeFaults, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One operator for the sinks with its label in all namespaces."""
    kubeconfig = control_plane.kubeconfig(server=shared_faults.endpoint)
    with operator(tmp_path_factory.mktemp("operator"), kubeconfig, None, "--selector", "shared=yes") as running:
        yield running


@pytest.fixture
def start(tmp_path: Path, operator_kubeconfig: Path, namespace: str) -> Iterator[StartOperator]:
    """Starts an operator for the test's own namespace, through `faults`."""
    with ExitStack() as stack:

        def begin(*flags: str) -> Operator:
            return stack.enter_context(operator(tmp_path, operator_kubeconfig, namespace, *flags))

        yield begin


@pytest.fixture
def alone(kube: Kube, harness: Harness) -> Iterator[Operated]:
    """A sink's namespace that no operator looks after yet."""
    with harness.playing():
        yield Operated(kube, harness)


@pytest.fixture
def sink(alone: Operated, everywhere: Operator) -> Operated:
    """A sink's namespace under the shared operator."""
    assert everywhere.running()
    alone.labels = {"shared": "yes"}
    return alone


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., KubectlS3Sink]:
    """`kubectl s3sink` with a kubeconfig: kubectl finds the program on PATH, which holds nothing else of ours."""
    program = control_plane_programs().kubectl or shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl")
    script = Path(sys.executable).parent / "kubectl-s3sink"
    assert script.exists(), "run `make setup`"
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(program)
    (folder / script.name).symlink_to(script)

    def of(kubeconfig: Path) -> KubectlS3Sink:
        environment = os.environ | {
            "PATH": f"{folder}:/usr/bin:/bin",
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(tmp_path),
        }
        environment.pop("KUBECTL", None)

        def run(*words: str, may_fail: bool = False) -> Ran:
            command = [str(folder / "kubectl"), "s3sink", *words]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
            assert may_fail or done.returncode == 0, done.stderr
            return done

        return run

    return of
