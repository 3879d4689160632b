"""One real node for all tests of this folder, with the chart installed from images built of this checkout, and Kafka
and S3 where its pods reach them.

`SHARED_NODE` of `tests.support.scheduling` lists the files that use it, so that one worker has the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devtools import image_builders, images
from devtools.kafka import kafka_broker
from devtools.kube import node
from devtools.processes import ServerFailedError
from devtools.s3 import s3_server
from devtools.topics import Topics
from tests.e2e.node_fixture import CHART, NAMESPACE, RELEASE, Site


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The node with the operator installed and ready, a broker and an S3 server. Skips where no node can be had."""
    if reason := node.reason_against() or image_builders.reason_against():
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
        # Less memory is given back soon, and not after ten minutes.
        values["operator.extraArgs[0]"] = "--shrink-after=20s"
        _install(site, [f"{name}={value}" for name, value in values.items()])
        yield site


@pytest.fixture
def namespace(site: Site) -> Iterator[str]:
    """A namespace under the restricted profile; deleted afterwards, with the sinks in it."""
    with site.namespace() as name:
        yield name


def _install(site: Site, values: list[str]) -> None:
    """As a user does it; returns when the operator's pod is ready."""
    sets = [word for value in values for word in ("--set", value)]
    try:
        site.helm("upgrade", "--install", RELEASE, CHART, "--namespace", NAMESPACE, *sets, "--wait", "--timeout=90s")
    except ServerFailedError as error:
        pods = site.kubectl("describe", "pods", "--namespace", NAMESPACE)
        logs = site.kubectl("logs", "--namespace", NAMESPACE, "--selector", "app.kubernetes.io/name=s3sink-operator")
        raise ServerFailedError(f"{error}\n{pods[-3000:]}\n{logs[-3000:]}") from None
