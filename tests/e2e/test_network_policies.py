"""The NetworkPolicies of the chart where they are enforced: a sink runs behind them, and other traffic is rejected."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from devtools.kube import network_policies
from devtools.kube.client import Json
from devtools.kube.control_plane import SERVICES
from devtools.processes import wait_until
from s3sink_operator.objects.spark_properties import BLOCK_MANAGER_PORT, DRIVER_PORT
from tests.e2e.node_fixture import NAMESPACE, PodSink, Site

pytestmark = pytest.mark.e2e

SCRAPER, FOREIGN, HOSTILE = "scraper", "foreign", "hostile"
LABELS = {SCRAPER: SCRAPER, FOREIGN: FOREIGN, HOSTILE: SCRAPER}
"""The label `bystander` of each pod. The hostile one is in another namespace, with that of what may read metrics."""
FOREIGN_PORT, REPORT_PORT = 9999, 8042
CONNECT = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.split(":")
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        continue
    print("connected to", target)
print("done")
"""


class Pod(NamedTuple):
    """A pod that connects."""

    namespace: str
    name: str


class Flow(NamedTuple):
    """A connection from the pod `source` to `address`:`port`."""

    what: str
    source: Pod
    address: str
    port: int


@pytest.fixture
def listening(site: Site) -> Iterator[tuple[int, int]]:
    """Two ports of the machine where something listens: of a registry, and one that no policy allows."""
    with socket.create_server((site.cluster.host, 0)) as first, socket.create_server((site.cluster.host, 0)) as second:
        yield int(first.getsockname()[1]), int(second.getsockname()[1])


def test_a_sink_runs_behind_the_policies_of_the_chart_and_other_traffic_is_rejected(
    site: Site, namespace: str, tmp_path: Path, listening: tuple[int, int]
) -> None:
    # The node has few processors, and a driver asks for one.
    thin = {"spark.kubernetes.executor.request.cores": "0.1"}
    sections = {"executor": {"mode": "Cluster", "instances": 1}, "sparkConf": thin}
    sink = PodSink(site, namespace, tmp_path, sections=sections)
    with site.namespace() as other, site.upgraded(*_values(site, namespace, listening[0])):
        pods = {name: _bystander(site, other if name == HOSTILE else namespace, name) for name in LABELS}
        with network_policies.enforced(site.cluster) as plugin:
            sink.produce(700)
            sink.apply()
            sink.wait_ready()
            sink.wait_arrived()
            allowed, rejected = _flows(sink, pods, listening)
            wait_until(lambda: not _connected(site, rejected), f"no flow of {rejected}", seconds=60)
            wait_until(lambda: _connected(site, allowed) == {*allowed}, f"all of {allowed}", seconds=60)
            sink.produce(700)
            sink.wait_arrived()
            _delete_policies(site, namespace)
            # The policies were what rejected them, and not the plug-in or the program.
            wait_until(lambda: _connected(site, rejected) == {*rejected}, f"all of {rejected}", seconds=60)
            assert plugin.failed() is None
    sink.verify()


def _flows(sink: PodSink, pods: dict[str, Json], listening: tuple[int, int]) -> tuple[list[Flow], list[Flow]]:
    """What the policies allow, and what they reject."""
    site, (executor,) = sink.site, sink.executors()
    driver, host = sink.driver, site.cluster.host
    kafka, s3 = _address(f"//{site.kafka.bootstrap}"), _address(site.s3.endpoint)
    operator, operator_port = _operator(site)
    both = [_pod(driver), _pod(executor)]
    scraper, foreign, hostile = (_pod(pods[name]) for name in (SCRAPER, FOREIGN, HOSTILE))
    registry, closed = listening
    allowed = [
        *(Flow("Kafka", pod, *kafka) for pod in both),
        *(Flow("S3", pod, *s3) for pod in both),
        *(Flow("the registry", pod, host, registry) for pod in both),
        Flow("the API server", both[0], _first_service(), 443),
        Flow("the driver", both[1], _ip(driver), DRIVER_PORT),
        Flow("blocks of the driver", both[1], _ip(driver), BLOCK_MANAGER_PORT),
        Flow("metrics of the driver", scraper, _ip(driver), REPORT_PORT),
        Flow("a pod without a policy", hostile, _ip(pods[FOREIGN]), FOREIGN_PORT),
    ]
    rejected = [
        *(Flow("another port of the machine", pod, host, closed) for pod in both),
        *(Flow("a pod that is none of a sink", pod, _ip(pods[FOREIGN]), FOREIGN_PORT) for pod in both),
        *(Flow("metrics of the driver", pod, _ip(driver), REPORT_PORT) for pod in (foreign, hostile)),
        *(Flow("metrics of the operator", pod, operator, operator_port) for pod in (foreign, hostile)),
        *(Flow("the driver", pod, _ip(driver), DRIVER_PORT) for pod in (scraper, foreign, hostile)),
        *(Flow("blocks of the driver", pod, _ip(driver), BLOCK_MANAGER_PORT) for pod in (scraper, hostile)),
    ]
    return allowed, rejected


def _values(site: Site, namespace: str, registry: int) -> list[str]:
    """Policies of sinks with the ports of this site, and one source that may read metrics."""
    ports = {"kafka": _address(f"//{site.kafka.bootstrap}").port, "s3": _address(site.s3.endpoint).port}
    api_server = urlsplit(site.cluster.admin.server).port
    return [
        "networkPolicy.sinks.enabled=true",
        f"networkPolicy.sinks.namespaces[0]={namespace}",
        "networkPolicy.apiServerPorts[0]=443",
        f"networkPolicy.apiServerPorts[1]={api_server}",
        f"networkPolicy.metricsFrom[0].podSelector.matchLabels.bystander={SCRAPER}",
        *(f"networkPolicy.sinks.{name}.ports[0].port={port}" for name, port in ports.items()),
        *(f"networkPolicy.sinks.{name}.ports[0].protocol=TCP" for name in ports),
        f"networkPolicy.sinks.extraEgress[0].ports[0].port={registry}",
    ]


def _delete_policies(site: Site, namespace: str) -> None:
    """Deletes those of the sink and of the operator; the rollback of the release creates the latter again."""
    for each in (namespace, NAMESPACE):
        site.kubectl("delete", "networkpolicies", "--all", "--namespace", each, check=True)


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int


def _address(url: str) -> Address:
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    return Address(parts.hostname, parts.port)


def _first_service() -> str:
    """The address of the Service of the API server."""
    return SERVICES.replace(".0/24", ".1")


def _operator(site: Site) -> Address:
    """Where the operator serves its metrics."""
    found = site.cluster.client().within(NAMESPACE).items("Pod", labels="app.kubernetes.io/name=s3sink-operator")
    (pod,) = (each for each in found if "deletionTimestamp" not in each["metadata"] and _ip(each))
    (port,) = (each["containerPort"] for each in pod["spec"]["containers"][0]["ports"] if each["name"] == "http")
    return Address(_ip(pod), port)


def _bystander(site: Site, namespace: str, name: str) -> Json:
    """A running pod that is none of a sink, and listens on FOREIGN_PORT."""
    kube = site.cluster.client().within(namespace)
    image = next(image.name for image in site.cluster.images if "job" in image.name)
    container = {
        "name": name,
        "image": image,
        "command": ["python", "-m", "http.server", "--directory", "/tmp", str(FOREIGN_PORT)],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    safe = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"containers": [container], "securityContext": safe, "terminationGracePeriodSeconds": 1}
    head = {"name": name, "labels": {"bystander": LABELS[name]}}
    kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec})
    return kube.wait("Pod", name, lambda pod: pod["status"].get("phase") == "Running", seconds=60, what="Running")


def _pod(pod: Json) -> Pod:
    return Pod(pod["metadata"]["namespace"], pod["metadata"]["name"])


def _ip(pod: Json) -> str:
    return str(pod["status"].get("podIP") or "")


def _connected(site: Site, flows: Iterable[Flow]) -> set[Flow]:
    """Those of the flows that can connect, with one program in each source."""
    by_source: dict[Pod, list[Flow]] = defaultdict(list)
    for flow in flows:
        by_source[flow.source].append(flow)
    found: set[Flow] = set()
    for source, its in by_source.items():
        targets = {f"{flow.address}:{flow.port}": flow for flow in its}
        words = ["exec", source.name, "--namespace", source.namespace, "--", "python", "-c", CONNECT, *targets]
        lines = site.kubectl(*words).splitlines()
        assert "done" in lines, lines
        found |= {flow for target, flow in targets.items() if f"connected to {target}" in lines}
    return found
