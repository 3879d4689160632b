"""A driver that has a node and does not start: the kubelet's events on a real API server become the condition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.kube.client import Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import operator
from tests.support.operator_fixture import DRIVER, SINK, SPEC, Operated, condition

pytestmark = pytest.mark.cluster
MOUNT = 'MountVolume.SetUp failed for volume "secret-0" : secret "s3-login" not found'


@pytest.fixture
def sink(kube: Kube, harness: Harness, control_plane: Cluster, namespace: str, tmp_path: Path) -> Iterator[Operated]:
    kubeconfig = control_plane.kubeconfig(namespace=namespace)
    with harness.playing(), operator(tmp_path, kubeconfig, namespace):
        yield Operated(kube, harness)


def test_a_missing_secret_is_named_and_the_sink_starts_once_it_exists(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.waiting(pod, "ContainerCreating"))
    sink.apply(s3=SPEC["s3"] | {"bucket": sink.kube.namespace, "credentials": {"secret": "s3-login"}})
    pod = sink.kube.wait("Pod", DRIVER, lambda found: found["spec"].get("nodeName"))
    about = {"kind": "Pod", "namespace": sink.kube.namespace, "name": DRIVER, "uid": pod["metadata"]["uid"]}
    event = {"type": "Warning", "reason": "FailedMount", "message": MOUNT, "lastTimestamp": "2026-01-01T00:00:00Z"}
    sink.kube.create(
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "mount"}, "involvedObject": about} | event
    )
    ready = sink.wait_reason("SecretNotFound", seconds=60)
    assert f"Secret s3-login not found in namespace {sink.kube.namespace}" in ready["message"]
    assert condition(sink.sink, "Stalled")["status"] == "True"
    sink.starts(DRIVER)
    sink.wait_ready()
    assert sink.driver["metadata"]["uid"] == pod["metadata"]["uid"]
    assert sink.sink["metadata"]["name"] == SINK
