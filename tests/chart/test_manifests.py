"""What the chart renders, and the examples, against the schemas of a real API server, by kubeconform."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from devtools.kube.build import kubeconform_program
from devtools.kube.control_plane import Cluster, cluster
from devtools.kube.schemas import groups, write_schemas
from devtools.processes import wait_until
from tests.support.chart import PROMETHEUS, Helm, Json
from tools.chart import CHART, CRD, ROOT

pytestmark = pytest.mark.cluster
VALUES = sorted((CHART / "ci").glob("*.yaml"))
NOT_KNOWN = (
    "ServiceMonitor,PodMonitor,PrometheusRule,ScaledObject"  # of other operators: no API server has their schemas
)

Check = Callable[[str], "list[str]"]


@pytest.fixture(scope="module")
def control_plane() -> Iterator[Cluster]:
    with cluster(crds=[yaml.safe_load(CRD.read_text())]) as running:
        yield running


@pytest.fixture(scope="module")
def check(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """What kubeconform finds wrong in the manifests of a text."""
    kube = control_plane.client()
    wait_until(lambda: "apis/s3sink.io/v1alpha1" in groups(kube), "the CRD's schema", seconds=30)
    location = write_schemas(kube, tmp_path_factory.mktemp("schemas"))
    command = [str(kubeconform_program()), "-strict", "-output", "json", "-schema-location", location]

    def run(manifests: str) -> list[str]:
        done = subprocess.run(
            [*command, "-skip", NOT_KNOWN, "-"], input=manifests, capture_output=True, text=True, check=False
        )
        found: list[Json] = json.loads(done.stdout).get("resources") or []
        return [f"{each['kind']} {each['name']}: {each['msg']}" for each in found]

    return run


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_what_the_chart_renders_is_what_kubernetes_takes(helm: Helm, check: Check, values: Path) -> None:
    rendered = helm("template", "s3sink", CHART, "--namespace", "ops", "--values", values, *PROMETHEUS)
    assert check(rendered.stdout) == []


@pytest.mark.parametrize(
    "path",
    sorted([*(ROOT / "examples").glob("*.yaml"), *(ROOT / "examples" / "kubernetes").glob("*.yaml")]),
    ids=lambda path: path.stem,
)
def test_an_example_fits_its_published_schema(check: Check, path: Path) -> None:
    assert check(path.read_text()) == []


def test_a_field_that_kubernetes_does_not_know_is_found(helm: Helm, check: Check) -> None:
    """That nothing is found means something."""
    rendered = helm("template", "s3sink", CHART, "--values", CHART / "ci" / "minimal.yaml").stdout
    deployment = "      containers:\n        - name:"
    assert rendered.count(deployment) == 1
    (found,) = check(rendered.replace(deployment, deployment.replace("containers", "container")))
    assert "container" in found
    sink = (ROOT / "examples" / "minimal.yaml").read_text()
    (found,) = check(sink.replace("bootstrapServers:", "bootstrapServer:"))
    assert "S3Sink" in found
