"""The configuration of kube-state-metrics gives the same metrics as the operator, from the same sinks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from devtools.kube.control_plane import Cluster
from devtools.kube_state_metrics import kube_state_metrics
from devtools.operator_process import Operator
from devtools.processes import LOOPBACK, Process, accepts_connections, free_ports, killed_at_end, wait_until
from s3sink_operator.status.status_metrics import PREFIX
from sink_job.api.errors import BucketNotFound
from sink_job.api.report import Failure, FinalReport
from tests.support.operator_fixture import DRIVER, Operated

pytestmark = pytest.mark.cluster
CONFIGURATION = Path(__file__).resolve().parents[2] / "examples" / "kube-state-metrics" / "s3sinks.yaml"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def port(control_plane: Cluster, tmp_path: Path) -> Iterator[int]:
    """The port of a kube-state-metrics with the example's configuration."""
    port, telemetry = free_ports(2)
    arguments = {
        "custom-resource-state-config-file": CONFIGURATION,
        "kubeconfig": control_plane.kubeconfig(),
        "host": LOOPBACK,
        "port": port,
        "telemetry-host": LOOPBACK,
        "telemetry-port": telemetry,
    }
    flags = [f"--{name}={value}" for name, value in arguments.items()]
    command = [str(kube_state_metrics()), "--custom-resource-state-only", *flags]
    with killed_at_end(Process(command, log=tmp_path / "kube-state-metrics.log")) as process:
        wait_until(lambda: accepts_connections(port), "kube-state-metrics", seconds=60, unless=process.failed)
        yield port


def samples(text: str, namespace: str) -> Samples:
    """The metrics of the status of the sinks of a namespace, without the labels that only kube-state-metrics adds."""
    found = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            labels = {key: value for key, value in each.labels.items() if not key.startswith("customresource_")}
            if each.name.startswith(PREFIX) and labels.get("namespace") == namespace:
                found[each.name, frozenset(labels.items())] = each.value
    return found


def test_kube_state_metrics_has_the_metrics_of_the_operator(
    sink: Operated, everywhere: Operator, namespace: str, port: int
) -> None:
    def both() -> tuple[Samples, Samples]:
        text = urllib3.request("GET", f"http://{LOOPBACK}:{port}/metrics", timeout=60).data.decode()
        return samples(text, namespace), samples(everywhere.metrics(), namespace)

    def are_equal() -> bool:
        theirs, ours = both()
        return bool(ours) and theirs == ours

    for end in (None, Failure.of(BucketNotFound("there is no bucket archive"))):
        if end is None:
            sink.started()
        else:
            message = FinalReport(epoch=3, round=7, failure=end).termination_message()
            sink.harness.fail(DRIVER, end.exit_code, message)
            sink.wait_reason("BucketNotFound")
        try:
            wait_until(are_equal, "the same metrics", seconds=60)
        except Exception:
            theirs, ours = both()
            assert theirs == ours
            raise
