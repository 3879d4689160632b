"""One real node for all tests of this folder, with the chart installed from images built of this checkout, and Kafka
and S3 where its pods reach them.

One file holds these tests, so that one worker has the node.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devtools import images
from devtools.kafka import kafka_broker
from devtools.kube import node
from devtools.kube.build import helm_program
from devtools.kube.client import ApiError
from devtools.processes import ServerFailedError, wait_until
from devtools.s3 import s3_server
from devtools.topics import Topics
from tests.e2e.site import Site

CHART = Path(__file__).resolve().parents[2] / "charts" / "s3sink-operator"
RELEASE, NAMESPACE = "s3sink", "s3sink-system"


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The node with the operator installed and ready, a broker and an S3 server. Skips where no node can be had."""
    if reason := node.reason_against() or images.reason_against():
        pytest.skip(reason)
    with ExitStack() as stack:
        operator, job = images.built("operator", "job")
        cluster = stack.enter_context(node.node_cluster([operator, job]))
        kafka = stack.enter_context(kafka_broker(host=cluster.host))
        s3 = stack.enter_context(s3_server(host=cluster.host))
        site = Site(cluster, kafka, Topics(kafka.bootstrap), s3)
        site.restricted(NAMESPACE)
        values = {
            "image.repository": operator.repository,
            "image.tag": operator.tag,
            "jobImage.repository": job.repository,
            "jobImage.tag": job.tag,
        }
        _install(site, [f"{name}={value}" for name, value in values.items()])
        yield site


@pytest.fixture
def namespace(site: Site) -> Iterator[str]:
    """A namespace under the restricted profile; deleted afterwards, with the sinks in it.

    Drivers ask for a processor each, of which the node has few, so the next test begins when this one's are gone.
    """
    name = f"sinks-{uuid.uuid4().hex[:8]}"
    kube = site.restricted(name)
    yield name
    site.cluster.client().delete("Namespace", name)

    def is_empty() -> bool:
        pods = kube.items("Pod")
        for pod in pods:
            with contextlib.suppress(ApiError):
                kube.delete("Pod", pod["metadata"]["name"], grace_s=1)
        return not pods

    wait_until(is_empty, f"pods of {name} gone", seconds=60)


def _install(site: Site, values: list[str]) -> None:
    """As a user does it; returns when the operator's pod is ready."""
    sets = [word for value in values for word in ("--set", value)]
    command = [helm_program(), "upgrade", "--install", RELEASE, CHART, "--namespace", NAMESPACE, *sets, "--wait"]
    environment = {**os.environ, "KUBECONFIG": str(site.kubeconfig)}
    words = [*map(str, command), "--timeout=90s"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        pods = site.kubectl("describe", "pods", "--namespace", NAMESPACE)
        logs = site.kubectl("logs", "--namespace", NAMESPACE, "--selector", "app.kubernetes.io/name=s3sink-operator")
        raise ServerFailedError(f"helm failed: {done.stderr}\n{pods[-3000:]}\n{logs[-3000:]}")
