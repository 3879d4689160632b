"""Which sinks an operator looks after: of all namespaces, of some, or those with certain labels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.operator_process import Operator, operator
from tests.support.operator_fixture import DRIVER, Operated, manifest

pytestmark = pytest.mark.cluster


@pytest.fixture
def three(control_plane: Cluster, unique_name: str) -> Iterator[list[Kube]]:
    """Three namespaces, each with a sink."""
    kube, found = control_plane.client(), []
    for number in range(3):
        name = f"{unique_name}-{number}"
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        found.append(kube.within(name))
        found[-1].apply(manifest(s3={"bucket": name}))
    yield found
    for each in found:
        with contextlib.suppress(Exception):
            kube.delete("Namespace", str(each.namespace))


def has_a_driver(kube: Kube) -> Json:
    return kube.wait("Pod", DRIVER, bool, what=f"a driver in {kube.namespace}")


def test_an_operator_of_some_namespaces_manages_only_their_sinks(
    three: list[Kube], control_plane: Cluster, tmp_path: Path
) -> None:
    first, second, third = three
    with operator(tmp_path, control_plane.kubeconfig(), first.namespace, "--namespace", str(second.namespace)):
        has_a_driver(first)
        has_a_driver(second)
    assert third.find("Pod", DRIVER) is None
    assert "status" not in third.get("S3Sink", "flights")


def test_a_variable_of_the_environment_names_the_namespaces(
    three: list[Kube], control_plane: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = three
    monkeypatch.setenv("S3SINK_OPERATOR_NAMESPACE", f"{first.namespace},{second.namespace}")
    process = Operator(tmp_path, control_plane.kubeconfig(), None)
    try:
        process.wait_ready()
        has_a_driver(first)
        has_a_driver(second)
    finally:
        process.kill()
    assert third.find("Pod", DRIVER) is None


def test_an_operator_with_a_selector_manages_sinks_with_these_labels(
    alone: Operated, tmp_path: Path, control_plane: Cluster
) -> None:
    with operator(tmp_path, control_plane.kubeconfig(), alone.kube.namespace, "--selector", "team=a"):
        alone.labels = {"team": "b"}
        alone.apply("theirs", s3={"bucket": "theirs"}, kafka={"bootstrapServers": "kafka:9092", "topics": ["theirs"]})
        alone.labels = {"team": "a"}
        alone.started()
    assert "status" not in alone.kube.get("S3Sink", "theirs")
