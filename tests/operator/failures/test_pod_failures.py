"""Reading how a pod ended, or why it does not start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator.failures import pod_failures
from s3sink_operator.kube.kube_api import ApiError
from s3sink_operator.types import FailureCategory, Json, PodEvent, Rejection
from sink_job.api import errors
from sink_job.api.report import Failure, FinalReport


def pod(phase: str = "Failed", *, code: int | None = 1, message: str = "", **status: Any) -> Json:
    state = {"exitCode": code, "message": message, "finishedAt": "2025-11-03T10:00:00Z"} | status.pop("state", {})
    containers = [] if code is None else [{"name": "s3sink", "state": {"terminated": state}}]
    return {
        "metadata": {"name": "flights-s3sink-driver"},
        "spec": {"nodeName": "node-1"},
        "status": {"phase": phase, "containerStatuses": containers} | status,
    }


def reported(error: Exception) -> str:
    return FinalReport(epoch=2, round=9, failure=Failure.of(error)).termination_message()


NAMED = [
    errors.InvalidSpec(["spec.s3: is missing"]),
    errors.LedgerFenced("another"),
    errors.DataError("t", 1, 5, "no JSON"),
    errors.DataLoss("gone"),
    errors.ObjectConflict("there"),
    *(kind("fix it") for kind in errors.ConfigurationError.__subclasses__()),
]


@pytest.mark.parametrize("error", NAMED, ids=lambda error: type(error).__name__)
def test_a_user_failure_has_the_message_of_the_job(error: errors.SinkError) -> None:
    found = pod_failures.termination_failure(pod(code=error.exit_code, message=reported(error)))
    assert found is not None
    assert (found.category, found.reason, found.exit_code) == (FailureCategory.USER, error.reason, error.exit_code)
    assert found.message == str(error)
    assert (found.epoch, found.round) == (2, 9)
    assert found.ended_ms == 1_762_164_000_000


@pytest.mark.parametrize("error", [errors.TransientError("slow"), ValueError("a bug")], ids=lambda e: type(e).__name__)
def test_an_infrastructure_failure_is_retried(error: Exception) -> None:
    found = pod_failures.termination_failure(pod(code=getattr(error, "exit_code", 1), message=reported(error)))
    assert found is not None
    assert found.category is FailureCategory.INFRASTRUCTURE


def test_a_driver_whose_jvm_was_oom_killed_is_oom_killed_whatever_it_reports() -> None:
    state = {"reason": "OOMKilled"}
    found = pod_failures.termination_failure(
        pod(code=75, message=reported(errors.TransientError("the JVM is gone")), state=state)
    )
    assert found is not None
    assert (found.reason, found.exit_code, found.round) == ("OOMKilled", 75, 9)
    fixed = pod_failures.termination_failure(pod(code=5, message=reported(errors.DataLoss("gone")), state=state))
    assert fixed is not None
    assert fixed.reason == errors.DataLoss.reason


@pytest.mark.parametrize(
    ("seen", "reason", "kind"),
    [
        pytest.param(pod(code=2), "InvalidSpec", FailureCategory.USER, id="an exit code without a word"),
        pytest.param(pod(code=4), "DataError", FailureCategory.USER, id="a record that cannot be written"),
        pytest.param(
            pod(code=7, message="Traceback"),
            "ConfigurationError",
            FailureCategory.USER,
            id="a word that is not the job's",
        ),
        pytest.param(pod(code=99), "InternalError", FailureCategory.INFRASTRUCTURE, id="an unknown exit code"),
        pytest.param(pod(code=None), "InternalError", FailureCategory.INFRASTRUCTURE, id="a pod that says nothing"),
        pytest.param(
            pod(code=11), "TooManyExecutorFailures", FailureCategory.INFRASTRUCTURE, id="executors that failed"
        ),
        pytest.param(pod("Succeeded", code=0), "UnexpectedExit", FailureCategory.INFRASTRUCTURE, id="success"),
        pytest.param(
            pod(code=137, state={"reason": "OOMKilled"}),
            "OOMKilled",
            FailureCategory.INFRASTRUCTURE,
            id="out of memory",
        ),
        pytest.param(
            pod(code=None, reason="Evicted", message="disk"),
            "Evicted",
            FailureCategory.INFRASTRUCTURE,
            id="an eviction",
        ),
        pytest.param(
            pod(code=137, reason="NodeShutdown"), "NodeShutdown", FailureCategory.INFRASTRUCTURE, id="a node that went"
        ),
        pytest.param(
            pod(code=None, reason="DeadlineExceeded"),
            "DeadlineExceeded",
            FailureCategory.INFRASTRUCTURE,
            id="Kubernetes' own word",
        ),
    ],
)
def test_reads_from_the_pods_end(seen: Json, reason: str, kind: FailureCategory) -> None:
    found = pod_failures.termination_failure(seen)
    assert found is not None
    assert (found.reason, found.category) == (reason, kind)
    assert found.message


def test_a_sidecar_that_ended_first_does_not_speak_for_the_sink() -> None:
    seen = pod(code=7)
    seen["status"]["containerStatuses"].insert(0, {"name": "proxy", "state": {"terminated": {"exitCode": 0}}})
    found = pod_failures.termination_failure(seen)
    assert found is not None
    assert found.exit_code == 7


def test_a_pod_that_runs_or_waits_has_not_ended() -> None:
    assert pod_failures.termination_failure(pod("Running", code=None)) is None
    assert pod_failures.startup_failure(pod("Running", code=None)) is None
    assert pod_failures.startup_failure(pod("Pending", code=None)) is None


MOUNT = 'MountVolume.SetUp failed for volume "secret-0" : '


@pytest.mark.parametrize(
    ("message", "reason", "said"),
    [
        pytest.param(
            MOUNT + 'secret "kafka-login" not found',
            "SecretNotFound",
            "Secret kafka-login not found in namespace data",
            id="a Secret that is not there",
        ),
        pytest.param(
            MOUNT + 'configmap "extra" not found', "ConfigMapNotFound", "ConfigMap extra not found", id="a ConfigMap"
        ),
        pytest.param(
            "couldn't find key password in Secret data/kafka-login",
            "SecretNotFound",
            "Secret kafka-login in namespace data has no key password",
            id="a key in a Secret",
        ),
        pytest.param("the disk is full", "FailedMount", "does not start: the disk is full", id="anything else"),
    ],
)
def test_the_last_event_explains_a_waiting_pod(message: str, reason: str, said: str) -> None:
    waits = pod("Pending", code=None)
    waits["metadata"] = {"name": "flights-s3sink-driver", "namespace": "data"}
    warning = PodEvent(pod="flights-s3sink-driver", reason="FailedMount", message=message)
    found = pod_failures.startup_failure(waits, warning)
    assert found is not None
    assert found.reason == reason
    assert said in found.message
    assert pod_failures.startup_failure(waits, replace(warning, pod="another")) is None


def test_a_container_that_lacks_a_secret_names_it() -> None:
    waits = pod("Pending", code=None)
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "extra" not found'}
    waits["status"]["containerStatuses"] = [{"name": "s3sink", "state": {"waiting": waiting}}]
    found = pod_failures.startup_failure(waits)
    assert found is not None
    assert found.reason == "SecretNotFound"
    assert "Secret extra not found" in found.message


@pytest.mark.parametrize(
    ("status", "message", "reason", "kind"),
    [
        (403, "pods is forbidden: exceeded quota: small", "QuotaExceeded", FailureCategory.SCHEDULING),
        (403, "violates PodSecurity restricted", "AdmissionDenied", FailureCategory.SCHEDULING),
        (
            403,
            'User "x" cannot create resource "pods" in API group ""',
            "OperatorPermissionDenied",
            FailureCategory.USER,
        ),
        (
            403,
            'user "x" is attempting to grant RBAC permissions not currently held',
            "OperatorPermissionDenied",
            FailureCategory.USER,
        ),
        (422, "Pod x is invalid", "Invalid", FailureCategory.USER),
        (
            422,
            "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too large",
            "AdmissionDenied",
            FailureCategory.SCHEDULING,
        ),
        (400, 'admission webhook "w.example" denied the request: no', "AdmissionDenied", FailureCategory.SCHEDULING),
        (400, "strict decoding error", "Invalid", FailureCategory.USER),
        (404, "namespaces data not found", "AdmissionDenied", FailureCategory.SCHEDULING),
        (
            403,
            "unable to create new content in namespace data because it is being terminated",
            "NamespaceTerminating",
            FailureCategory.SCHEDULING,
        ),
    ],
)
def test_a_rejection_keeps_the_message_of_the_api_server(
    status: int, message: str, reason: str, kind: FailureCategory
) -> None:
    found = pod_failures.api_rejection(
        Rejection(kind="Pod", name="p", status=status, reason="r", message=message, at_ms=0)
    )
    assert (found.reason, found.category) == (reason, kind)
    assert message in found.message


def test_a_role_binding_with_another_role_has_the_action_to_take() -> None:
    rejection = Rejection(kind="RoleBinding", name="f", status=422, reason="Invalid", message="roleRef", at_ms=0)
    assert "delete it" in pod_failures.api_rejection(rejection).message


@pytest.mark.parametrize(
    ("nodes", "lost"),
    [({"node-1": True}, None), ({"node-1": False}, "node-1"), ({"node-1": None}, "node-1"), ({}, None)],
)
def test_a_node_is_lost_only_if_it_is_observed(nodes: dict[str, bool | None], lost: str | None) -> None:
    assert pod_failures.node_of_lost_pod(pod("Running"), nodes) == lost


def test_an_undeclared_field_is_a_rejection_and_not_transient() -> None:
    unknown = ApiError(500, "", "failed to create typed patch object: .status.memory: field not declared in schema")
    assert not unknown.is_transient
    assert ApiError(500, "InternalError", "etcdserver: request timed out").is_transient


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.", ["Add capacity to the cluster"]),
        ("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", ["Correct nodeSelector"]),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {a: b}.", ["Add tolerations"]),
        (
            "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 Insufficient memory.",
            ["Add capacity to the cluster", "Correct nodeSelector"],
        ),
        ("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", ["PersistentVolumeClaims"]),
        ("no nodes", ["kubectl describe pod"]),
    ],
)
def test_the_advice_about_an_unschedulable_pod_follows_from_the_message_of_the_scheduler(
    cause: str, advice: list[str]
) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": cause}
    pod = {"metadata": {"name": "a"}, "status": {"phase": "Pending", "conditions": [condition]}}
    failure = pod_failures.startup_failure(pod)
    assert failure is not None
    for words in advice:
        assert words in failure.message
    assert ("Add capacity" in failure.message) == ("Insufficient" in cause)
