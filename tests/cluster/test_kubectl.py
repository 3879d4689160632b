"""`kubectl s3sink` by a real kubectl, on a real API server, while the operator runs; the harness plays pods."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from devtools.kube.client import Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_driver_report import machine_address
from devtools.kube.fake_kubelet import Harness
from s3sink_operator import names
from sink_job.api.errors import BucketNotFound, ExistingObjects
from sink_job.api.report import Failure, FinalReport, PartitionReport, ResetReport, StartReport
from tests.cluster.conftest import KubectlS3Sink
from tests.support.operator_fixture import DRIVER, SINK, TASK, Operated, report

pytestmark = pytest.mark.cluster


@pytest.fixture
def kubectl(plugin: Callable[..., KubectlS3Sink], control_plane: Cluster, namespace: str) -> KubectlS3Sink:
    """As the administrator, in the test's namespace."""
    return plugin(control_plane.kubeconfig(namespace=namespace))


def desired(sink: Operated) -> tuple[str, str]:
    """The desired state and its source in the status."""
    status = sink.status
    return status["desiredState"], status["desiredStateSource"]


def test_status_shows_lag_and_memory_of_one_sink_and_of_all(sink: Operated, kubectl: KubectlS3Sink) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.runs(pod, report(lag=1234)))
    sink.started()
    lines = kubectl("status").stdout.splitlines()
    assert lines[1].split()[:5] == [SINK, "True", "Running", "1", "1,234"]
    assert lines[1].split()[6] == sink.status["memory"]["current"]
    text = kubectl("status", SINK).stdout
    assert "Ready:         True for" in text
    assert "Lag:           1,234 records" in text
    before = sink.status
    everywhere = json.loads(kubectl("status", "--all-namespaces", "-o", "json").stdout)["items"]
    (found,) = [each for each in everywhere if each["namespace"] == sink.kube.namespace]
    assert found["status"] in (before, sink.status), "the operator may write it meanwhile"
    assert found["upToDate"] is True


def partitions_of(text: str) -> list[list[str]]:
    """Topic-partitions with their offsets, of the JSON of `status --all-partitions`."""
    items = json.loads(text)["allPartitions"]["items"]
    return [[each["topic"], each["partition"], each["committed"], each.get("end")] for each in items]


def test_all_partitions_are_those_of_the_report_and_without_a_driver_those_of_the_status(
    sink: Operated,
    kubectl: KubectlS3Sink,
    plugin: Callable[..., KubectlS3Sink],
    control_plane: Cluster,
    namespace: str,
) -> None:
    address = machine_address()
    if address is None:
        pytest.skip("this machine has no address that the API server would proxy to")
    reads = [
        PartitionReport(topic="flights", partition=n, committed=n, next=n, end=2 * n, lag=n, lag_ms=0)
        for n in range(60)
    ]
    answer = report(partitions=reads, assigned_partitions=60)
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.run(pod, report=answer, address=address))
    sink.started()
    words = ("status", SINK, "--all-partitions", "-o", "json")
    assert partitions_of(kubectl(*words).stdout) == [["flights", n, n, 2 * n] for n in range(60)]
    grant(sink.kube, namespace, sinks=["get"], pods=["get"])
    access = control_plane.service_account(namespace, "default")
    limited = plugin(control_plane.kubeconfig(access, namespace=namespace))(*words)
    assert [row[:3] for row in partitions_of(limited.stdout)] == [["flights", n, n] for n in range(60)]
    assert 'you need the verb "get" on pods/proxy' in limited.stderr
    kubectl("pause", SINK, "--wait")
    paused = kubectl("status", SINK, "--all-partitions")
    assert "no driver runs; these are the committed offsets in the status of 2" in paused.stderr
    assert len([line for line in paused.stdout.splitlines() if line.startswith("flights")]) == 60


def grant(kube: Kube, namespace: str, **verbs: list[str]) -> None:
    """Gives the default service account verbs on S3Sinks (`sinks`) and pods (`pods`)."""
    group = "rbac.authorization.k8s.io"
    of = {"sinks": ("s3sink.io", "s3sinks"), "pods": ("", "pods")}
    rules = [{"apiGroups": [of[name][0]], "resources": [of[name][1]], "verbs": each} for name, each in verbs.items()]
    kube.apply({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "look"}, "rules": rules})
    kube.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "look"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "look"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        }
    )


def test_a_sink_is_paused_resumed_restarted_and_stopped_and_each_waits_until_it_is_so(
    sink: Operated, kubectl: KubectlS3Sink
) -> None:
    first = sink.started()
    spec = sink.sink["spec"]
    kubectl("pause", SINK, "--wait")
    assert sink.kube.find("Pod", DRIVER) is None
    assert desired(sink) == ("Paused", f"the annotation {names.STATE_ANNOTATION}")
    kubectl("resume", SINK, "--wait")
    second = sink.driver
    done = json.loads(kubectl("restart", SINK, "--wait", "-o", "json").stdout)
    assert (done["done"], done["status"]["progress"]["phase"]) == (True, "Running")
    assert len({pod["metadata"]["uid"] for pod in (first, second, sink.driver)}) == 3
    kubectl("stop", SINK, "--wait")
    assert sink.status["published"] is True
    assert sink.sink["spec"] == spec
    assert sink.sink["metadata"]["generation"] == 1


def test_an_offset_reset_requires_stopped_and_yes(sink: Operated, kubectl: KubectlS3Sink) -> None:
    sink.started()
    running = kubectl("reset-offsets", SINK, "--to", "earliest", "--yes", may_fail=True)
    assert running.returncode == 1
    assert "an offset reset requires Stopped" in running.stderr
    kubectl("stop", SINK, "--wait")
    shown = kubectl("reset-offsets", SINK, "--to", "earliest", may_fail=True)
    assert shown.returncode == 1
    assert "nothing was changed, use --yes to send it" in shown.stderr
    assert names.RESET_OFFSETS_ANNOTATION not in sink.sink["metadata"]["annotations"]


STARTS = ResetReport(
    generation=2,
    record=42,
    topics_dir="topics/generation=2",
    partitions=[StartReport(topic="flights", partition=0, previous=100, start=42)],
)


def test_a_reset_prints_the_new_start_offsets(sink: Operated, kubectl: KubectlS3Sink) -> None:
    sink.harness.at_start(TASK, lambda pod: sink.harness.succeed(pod, STARTS.termination_message()))
    sink.apply(state="Stopped")
    sink.wait_reason("Stopped")
    words = ["--to", "Offsets", "--offset", "flights:0:42", "--on-existing", "NewPrefix", "--yes", "--wait"]
    done = kubectl("reset-offsets", SINK, *words).stdout
    assert "reset-offsets completed: generation 2 starts with flights-0 at 42" in done
    assert sink.status["offsetReset"]["partitions"] == [{"topic": "flights", "partition": 0, "offset": 42}]
    assert "to Offsets, nonce" in kubectl("status", SINK).stdout


def test_a_reset_with_existing_objects_is_reported_and_exits_with_4(sink: Operated, kubectl: KubectlS3Sink) -> None:
    error = ExistingObjects("topics/flights/a.json holds records at or above the new offsets")
    message = FinalReport(failure=Failure.of(error)).termination_message()
    sink.apply(state="Stopped")
    sink.wait_reason("Stopped")
    sink.harness.at_start(TASK, lambda pod: sink.harness.fail(pod, error.exit_code, message))
    done = kubectl("reset-offsets", SINK, "--to", "earliest", "--yes", "--wait", may_fail=True)
    assert done.returncode == 4
    assert "topics/flights/a.json holds records" in done.stderr


def test_waiting_reports_a_failure_and_exits_with_4(sink: Operated, kubectl: KubectlS3Sink) -> None:
    sink.started()
    message = FinalReport(failure=Failure.of(BucketNotFound("there is no bucket archive"))).termination_message()
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, exit_code=7, message=message))
    done = kubectl("restart", SINK, "--wait", may_fail=True)
    assert done.returncode == 4
    assert "there is no bucket archive" in done.stderr
    assert f"exit code 7: {BucketNotFound.reason}" in kubectl("status", SINK).stdout
    assert f"exit code 7: {BucketNotFound.reason}" in kubectl("logs", SINK, "--previous").stdout


def test_waiting_without_an_operator_ends_with_3(kube: Kube, kubectl: KubectlS3Sink, harness: Harness) -> None:
    Operated(kube, harness).apply()
    done = kubectl("pause", SINK, "--wait", "--timeout", "1s", may_fail=True)
    assert done.returncode == 3
    assert "no operator has reconciled the sink" in done.stderr
    assert "no operator has reconciled this sink" in kubectl("status", SINK).stdout


def test_a_paused_sink_has_no_log_and_the_reason_is_shown(sink: Operated, kubectl: KubectlS3Sink) -> None:
    sink.started()
    kubectl("pause", SINK, "--wait")
    done = kubectl("logs", SINK, "-f", may_fail=True)
    assert done.returncode == 1
    assert f"{SINK}: pod {DRIVER} not found; Paused:" in done.stderr


def test_a_sink_that_is_not_there_is_named_with_its_namespace(kubectl: KubectlS3Sink, namespace: str) -> None:
    done = kubectl("restart", "nosuch", may_fail=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"S3Sink nosuch not found in namespace {namespace}" in done.stderr
    assert f"No S3Sinks found in namespace {namespace}." in kubectl("status").stderr


def test_a_missing_verb_is_named_to_a_user_with_read_permission(
    kube: Kube,
    control_plane: Cluster,
    plugin: Callable[..., KubectlS3Sink],
    namespace: str,
    harness: Harness,
) -> None:
    Operated(kube, harness).apply()
    grant(kube, namespace, sinks=["get", "list"])
    access = control_plane.service_account(namespace, "default")
    looks = plugin(control_plane.kubeconfig(access, namespace=namespace))
    assert looks("status", SINK).stdout
    done = looks("pause", SINK, may_fail=True)
    assert done.returncode == 1
    assert 'you need the verb "patch" on s3sinks.s3sink.io' in done.stderr
    everywhere = looks("status", "-A", may_fail=True)
    assert 'you need the verb "list" on s3sinks.s3sink.io' in everywhere.stderr


def test_the_flags_of_kubectl_say_which_cluster_and_namespace(
    control_plane: Cluster,
    plugin: Callable[..., KubectlS3Sink],
    kube: Kube,
    namespace: str,
    harness: Harness,
    tmp_path: Path,
) -> None:
    Operated(kube, harness).apply()
    nowhere = plugin(tmp_path / "none")
    path = control_plane.kubeconfig()
    assert SINK in nowhere("status", f"--kubeconfig={path}", "-n", namespace).stdout
    assert "context" in nowhere("status", f"--kubeconfig={path}", "--context", "nosuch", may_fail=True).stderr
    rejected = nowhere("status", f"--kubeconfig={path}", "-n", namespace, "--as", "stranger", may_fail=True)
    assert 'User "stranger" cannot list' in rejected.stderr
