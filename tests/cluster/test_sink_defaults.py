"""Defaults of the operator for all sinks, on a real API server."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import Operator
from s3sink_operator.config.sink_defaults import DEFAULTED_FIELDS
from tests.cluster.conftest import KubectlS3Sink
from tests.support.operator_fixture import CHILD, DRIVER, SINK, Operated, StartOperator

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


STORED: Json = {
    "s3": {"region": "eu-central-1", "pathStyle": False, "insecure": False},
    "executor": {"mode": "Local", "cores": 1, "memory": {"mode": "Auto", "min": "512Mi", "max": "8Gi"}},
    "driver": {"cores": 1},
}
"""What the API server wrote into each sink by the defaults of an earlier CustomResourceDefinition."""


def _is_set(spec: Json, path: tuple[str, ...]) -> bool:
    *sections, name = path
    for each in sections:
        spec = spec.get(each, {})
    return name in spec


def documented_commands() -> list[str]:
    """The commands of the documentation that remove these values."""
    root = Path(__file__).resolve().parents[2]
    found = re.findall(r"^kubectl patch s3sink NAME --namespace .*$", (root / "docs/helm.md").read_text(), re.MULTILINE)
    assert f"`{found[0]}`" in (root / "CHANGELOG.md").read_text()
    return found


def test_the_documented_commands_remove_stored_values_so_that_defaults_apply(
    sink: Operated, start_with: StartWith, plugin: Callable[..., KubectlS3Sink], control_plane: Cluster, tmp_path: Path
) -> None:
    start_with({"s3": DEFAULTS["s3"], "executor": {"cores": 2, "memory": {"max": "4Gi"}}, "driver": {"cores": 2}})
    stored = STORED | {"s3": STORED["s3"] | {"bucket": sink.kube.namespace}}
    before = sink.started(**stored)
    kubeconfig = control_plane.kubeconfig(namespace=str(sink.kube.namespace))
    plugin(kubeconfig)  # puts kubectl into the directory
    environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
    for command in documented_commands():
        exact = command.replace("NAMESPACE", str(sink.kube.namespace)).replace("NAME", SINK)
        _, *words = shlex.split(exact)
        subprocess.run(
            [tmp_path / "bin/kubectl", *words], env=environment, check=True, capture_output=True, timeout=120
        )
    sink.next_driver(before)
    applied = {each["field"] for each in sink.wait_ready()["status"]["appliedDefaults"]}
    assert {
        f"spec.{name}" for name in ("s3.pathStyle", "executor.cores", "executor.memory.max", "driver.cores")
    } <= applied
    spec = sink.sink["spec"]
    assert [path for path in DEFAULTED_FIELDS if _is_set(spec, path)] == []
