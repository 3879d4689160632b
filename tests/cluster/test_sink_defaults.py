"""Defaults of the operator for all sinks, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import Operator
from tests.cluster.conftest import KubectlS3Sink
from tests.support.operator_fixture import CHILD, DRIVER, Operated, StartOperator

pytestmark = pytest.mark.cluster

StartWith = Callable[[Json], Operator]
DEFAULTS: Json = {
    "labels": {"team": "lake"},
    "nodeSelector": {"disk": "ssd"},
    "resources": {"requests": {"cpu": "200m"}},
    "spillVolume": {"emptyDir": {"sizeLimit": "5Gi"}},
    "s3": {"endpoint": "https://minio:9000", "pathStyle": True},
}


@pytest.fixture
def start_with(start: StartOperator, tmp_path: Path) -> StartWith:
    """Starts an operator with these defaults for the test's namespace."""

    def begin(defaults: Json) -> Operator:
        file = tmp_path / "config.yaml"
        file.write_text(yaml.safe_dump({"sinkDefaults": defaults}))
        return start("--config", str(file))

    return begin


@pytest.fixture
def sink(kube: Kube, harness: Harness) -> Iterator[Operated]:
    with harness.playing():
        yield Operated(kube, harness)


def test_defaults_reach_job_and_pod_and_are_shown_with_their_source(
    sink: Operated,
    start_with: StartWith,
    plugin: Callable[..., KubectlS3Sink],
    control_plane: Cluster,
) -> None:
    start_with(DEFAULTS)
    pod = sink.started()
    assert pod["metadata"]["labels"]["team"] == "lake"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "5Gi"}} in pod["spec"]["volumes"]
    assert "endpoint: https://minio:9000" in sink.kube.get("ConfigMap", CHILD)["data"]["sink.yaml"]
    assert "endpoint" not in sink.sink["spec"]["s3"], "the S3Sink is as it was written"
    explain = plugin(control_plane.kubeconfig(namespace=str(sink.kube.namespace)))
    done = explain("explain", "flights", "-o", "json")
    rows = {each["field"]: (each["value"], each["source"]) for each in json.loads(done.stdout)["settings"]}
    assert rows["spec.s3.endpoint"] == ("https://minio:9000", "operator")
    assert rows["spec.s3.pathStyle"] == ("true", "operator")
    assert rows["spec.s3.bucket"] == (sink.kube.namespace, "spec")


def test_a_changed_default_reaches_the_driver_and_an_own_setting_wins(sink: Operated, start_with: StartWith) -> None:
    process = start_with(DEFAULTS)
    before = sink.started()
    process.kill()
    start_with({"nodeSelector": {"disk": "nvme"}, "s3": DEFAULTS["s3"]})
    after = sink.next_driver(before)
    assert after["spec"]["nodeSelector"] == {"disk": "nvme"}
    sink.wait_ready()
    sink.apply(driver={"podTemplate": {"spec": {"nodeSelector": {"disk": "own"}}}})
    assert sink.next_driver(after)["spec"]["nodeSelector"] == {"disk": "own"}
    sink.kube.wait("Pod", DRIVER, lambda pod: "team" not in pod["metadata"]["labels"])
