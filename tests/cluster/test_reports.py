"""How the operator hears of its drivers: at their pods' addresses, or through the API server's proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from devtools.faults.kube_proxy import KubeFaults, call
from devtools.kube.client import Kube
from devtools.kube.fake_driver_report import machine_address, of_sink
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import operator
from sink_job.api.report import RunState
from tests.support.operator_fixture import DRIVER, SINK, Operated, report

pytestmark = pytest.mark.cluster


@pytest.fixture
def sink(kube: Kube, harness: Harness) -> Iterator[Operated]:
    with harness.playing():
        yield Operated(kube, harness)


def test_a_changed_state_in_a_report_is_observed_soon(
    sink: Operated, tmp_path: Path, operator_kubeconfig: Path, namespace: str
) -> None:
    """Nothing but its report has changed: neither a pod nor the sink, which have watches."""
    with operator(tmp_path, operator_kubeconfig, namespace):
        sink.started()
        sink.harness.report(DRIVER, report(RunState.RECOVERING))
        sink.wait_reason("Recovering")
        sink.harness.report(DRIVER, report())
        sink.wait_ready()


def test_a_driver_answers_the_operator_and_no_pod_that_cannot_read_its_token(
    sink: Operated, tmp_path: Path, operator_kubeconfig: Path, namespace: str
) -> None:
    with operator(tmp_path, operator_kubeconfig, namespace):
        pod = sink.started()
        url = f"http://{pod['status']['podIP']}:8042/report"
        token = pod["metadata"]["annotations"]["s3sink.io/report-token"]
        assert urllib3.request("GET", url, retries=False).status == 401
        assert urllib3.request("GET", f"{url}?token={token}", retries=False).status == 200
        sink.annotate(restart="1")
        sink.next_driver(pod)
        sink.wait_ready()
        assert sink.driver["metadata"]["annotations"]["s3sink.io/report-token"] != token


def test_an_operator_that_is_restarted_reads_the_reports_of_running_drivers(
    sink: Operated, tmp_path: Path, operator_kubeconfig: Path, namespace: str
) -> None:
    with operator(tmp_path / "first", operator_kubeconfig, namespace):
        before = sink.started()
    sink.harness.report(DRIVER, report(RunState.RECOVERING))
    with operator(tmp_path / "second", operator_kubeconfig, namespace):
        sink.wait_reason("Recovering")
    assert sink.driver["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"name": "trains"}, id="another sink's"),
        pytest.param({"totals": {"objects": 2**70}}, id="a number out of range"),
    ],
)
def test_a_report_of_another_sink_is_not_used(
    sink: Operated, tmp_path: Path, operator_kubeconfig: Path, namespace: str, wrong: dict[str, object]
) -> None:
    with operator(tmp_path, operator_kubeconfig, namespace):
        sink.started()
        document = of_sink(report(RunState.RECOVERING), namespace, SINK).model_dump(mode="json") | wrong
        sink.harness.report(DRIVER, document)
        assert sink.wait_reason("ReportUnreachable")["status"] == "Unknown"


def test_an_operator_outside_of_the_cluster_hears_of_drivers_through_the_api_server(
    sink: Operated, tmp_path: Path, operator_kubeconfig: Path, namespace: str, faults: KubeFaults
) -> None:
    address = machine_address()
    if address is None:
        pytest.skip("this machine has no address that the API server would proxy to")
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.run(pod, report=report(lag=40), address=address))
    with operator(tmp_path, operator_kubeconfig, namespace, "--report-by", "Proxy"):
        sink.apply()
        found = sink.wait_ready()
        assert found["status"]["progress"]["lag"]["records"] == 40
        assert faults.count(call("get pods/proxy"))
