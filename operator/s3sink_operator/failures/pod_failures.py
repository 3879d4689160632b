"""Classifies how a pod terminated, or why it does not start: category, reason, and a message with the action to take.

The termination message and the exit code of the job come first. Without them the status of the kubelet and of the
scheduler is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from s3sink_operator.reasons import Reason
from s3sink_operator.types import (
    REPLACEMENT_KIND,
    FailureCategory,
    Json,
    PodEvent,
    Rejection,
    one_line,
    sanitize_reason,
    to_ms,
)
from sink_job.api import errors
from sink_job.api.report import FinalReport

OOM_KILLED = "OOMKilled"
_CONTAINER = "s3sink"
_USER_CODES = {2, 3, 4, 5, 6, 7}
_SPARK_TOO_MANY_EXECUTORS = 11

_BY_CODE = {
    2: (errors.InvalidSpec.reason, "the job rejected the manifest: see the driver log"),
    3: (
        errors.LedgerFenced.reason,
        "another driver claimed the ledger of this sink: check for a second cluster or host",
    ),
    4: (Reason.DATA_ERROR, "a record cannot be written: fix its producer, or set spec.errors.tolerance"),
    5: (errors.DataLoss.reason, "Kafka no longer holds records that are not in S3: see spec.onDataLoss"),
    6: (errors.ObjectConflict.reason, "an object with the same key and other content exists: see the driver log"),
    7: (errors.ConfigurationError.reason, "configuration error: see the driver log"),
    75: (errors.TransientError.reason, "Kafka, S3 or the network did not answer in time"),
    137: (Reason.KILLED, "the driver was killed by SIGKILL"),
    143: (Reason.TERMINATED, "the driver was terminated by SIGTERM"),
    _SPARK_TOO_MANY_EXECUTORS: (
        Reason.TOO_MANY_EXECUTOR_FAILURES,
        "too many executors failed: see their logs and spec.executor.memory",
    ),
}
_HINTS = {
    "Pod": "Fix the pod templates of the spec",
    "RoleBinding": "If it names another role, delete it: the role of a RoleBinding is immutable; it is re-created",
}
_REPLACEMENT = "the pod with another memory that would replace the running"
_PULL = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_NOT_FOUND = re.compile(
    r'(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found'
    r"|couldn't find key (?P<key>\S+) in (?P<of_kind>Secret|ConfigMap) (?:[\w.-]+/)?(?P<of>[\w.-]+)",
    re.IGNORECASE,
)
_CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError")
_CAPACITY = (
    "Add capacity to the cluster, or request less: spec.executor.memory, and the CPU request in the pod templates"
)
_SCHEDULING_ADVICE = (
    ("Insufficient", _CAPACITY),
    ("Too many pods", _CAPACITY),
    ("node affinity/selector", "Correct nodeSelector and affinity in the pod templates, or label nodes accordingly"),
    ("untolerated taint", "Add tolerations to the pod templates, or nodes without these taints"),
    ("topology spread", "Relax topologySpreadConstraints in the pod templates, or add nodes in the missing domains"),
    ("anti-affinity", "Relax the anti-affinity in the pod templates, or add nodes"),
    ("volume", "Check the volumes in the pod templates and their PersistentVolumeClaims"),
    ("PersistentVolumeClaim", "Check the volumes in the pod templates and their PersistentVolumeClaims"),
    ("were unschedulable", "Uncordon nodes, or add others"),
)
"""Advice by words of the scheduler's message (kubernetes/pkg/scheduler/framework/plugins)."""
_NODE_REASONS = ("NodeLost", "NodeShutdown", "Shutdown", "Terminated")


@dataclass(frozen=True, kw_only=True)
class PodFailure:
    """Why a pod does not run. `report`: the final report of its process. `ended_ms`: end time in ms since the epoch."""

    category: FailureCategory
    reason: str
    message: str
    exit_code: int | None = None
    report: FinalReport | None = None
    ended_ms: int | None = None

    @property
    def epoch(self) -> int | None:
        """Epoch of the driver in the ledger, if known."""
        return None if self.report is None else self.report.epoch

    @property
    def round(self) -> int | None:
        """Last round of the driver in the ledger, if known."""
        return None if self.report is None else self.report.round

    @property
    def owner(self) -> str | None:
        """The owner that an OwnershipConflict names."""
        return None if self.report is None or self.report.failure is None else self.report.failure.owner


def termination_failure(pod: Json) -> PodFailure | None:
    """How the process of the pod terminated; None while it runs or may still start.

    The pod may keep running after that, while a sidecar container runs.
    """
    status = pod.get("status") or {}
    phase = status.get("phase")
    own = _own_termination(status)
    if phase not in ("Failed", "Succeeded") and own is None:
        return None
    state = own or _terminated(pod) or {}
    report = _parse_final_report(state)
    found = _evicted(status) or _from_report(report, state) or _from_exit_code(state, str(phase))
    return PodFailure(
        category=found.category,
        reason=found.reason,
        message=found.message,
        exit_code=state.get("exitCode"),
        report=report,
        ended_ms=to_ms(state.get("finishedAt")),
    )


def succeeded(pod: Json) -> bool:
    """Whether the process of the pod terminated with exit code 0."""
    status = pod.get("status") or {}
    own = _own_termination(status)
    return status.get("phase") == "Succeeded" or (own is not None and own.get("exitCode") == 0)


def startup_failure(pod: Json, event: PodEvent | None = None) -> PodFailure | None:
    """Why a pod does not start, if Kubernetes reports it. Kubernetes keeps retrying.

    `event`: the last warning about the pod, for causes that its status does not have.
    """
    status = pod.get("status") or {}
    if status.get("phase") not in (None, "Pending"):
        return None
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _unschedulable(pod, condition)
    for waiting in _waiting(status):
        if (failure := _waiting_failure(pod, waiting)) is not None:
            return failure
    if event is None or event.pod != _name(pod):
        return None
    text = one_line(event.message)
    if (reference := _NOT_FOUND.search(text)) is not None:
        return _missing_reference(pod, reference)
    message = f"the pod {_name(pod)} does not start: {text.rstrip('.')}. Kubernetes keeps retrying"
    return PodFailure(category=FailureCategory.SCHEDULING, reason=sanitize_reason(event.reason), message=message)


def _unschedulable(pod: Json, condition: Json) -> PodFailure:
    cause = one_line(condition.get("message") or "no node is available").rstrip(".")
    message = f"the pod {_name(pod)} is unschedulable: {cause}. {_scheduling_advice(cause)}"
    return PodFailure(category=FailureCategory.SCHEDULING, reason=Reason.UNSCHEDULABLE, message=message)


def _scheduling_advice(cause: str) -> str:
    """What to do about the causes that the scheduler counts its nodes by: capacity changes only some of them."""
    found = [advice for words, advice in _SCHEDULING_ADVICE if words in cause]
    return ". ".join(dict.fromkeys(found)) or "The events of the pod have the details: kubectl describe pod"


def _waiting_failure(pod: Json, waiting: Json) -> PodFailure | None:
    """Why a container waits; None without a known reason."""
    reason, text = str(waiting.get("reason")), one_line(waiting.get("message") or "")
    if reason in _PULL:
        message = f"the image cannot be pulled ({reason}): {text}. Check spec.image and spec.imagePullSecrets"
        return PodFailure(category=FailureCategory.USER, reason=Reason.IMAGE_PULL_FAILED, message=message)
    if (reference := _NOT_FOUND.search(text)) is not None:
        return _missing_reference(pod, reference)
    if reason in _CONFIG:
        message = f"the container cannot be created ({reason}): {text}. Check the Secrets and spec.driver.podTemplate"
        return PodFailure(category=FailureCategory.USER, reason=Reason.CREATE_CONTAINER_FAILED, message=message)
    return None


def _missing_reference(pod: Json, found: re.Match[str]) -> PodFailure:
    """A pod that waits for a Secret or ConfigMap. It starts as soon as that exists."""
    kind = "Secret" if (found["kind"] or found["of_kind"]).lower() == "secret" else "ConfigMap"
    namespace = (pod.get("metadata") or {}).get("namespace")
    what = f"{kind} {found['name'] or found['of']}"
    problem = f"{what} not found in namespace {namespace}"
    if found["key"]:
        problem = f"{what} in namespace {namespace} has no key {found['key']}"
    message = f"{problem}; the pod {_name(pod)} requires it: create it and the pod will start, or correct the spec"
    return PodFailure(category=FailureCategory.USER, reason=f"{kind}NotFound", message=message)


def api_rejection(rejection: Rejection) -> PodFailure:
    """The failure for a write that the API server rejected, with the message of the API server."""
    is_replacement = rejection.kind == REPLACEMENT_KIND
    what = f"{_REPLACEMENT if is_replacement else rejection.kind} {rejection.name}"
    text = one_line(rejection.message).rstrip(".")
    if rejection.status == 403 and "exceeded quota" in rejection.message:
        message = f"{what} exceeds the quota of the namespace: {text}"
        return PodFailure(category=FailureCategory.SCHEDULING, reason=Reason.QUOTA_EXCEEDED, message=message)
    if rejection.status in (400, 422) and not is_admission_denial(rejection):
        hint = _HINTS.get(rejection.kind, "See the operator log")
        message = f"the API server rejected {what} as invalid: {text}. {hint}"
        return PodFailure(category=FailureCategory.USER, reason=Reason.INVALID, message=message)
    if rejection.status == 403 and _is_rbac_denial(rejection.message):
        message = f"the operator has no permission to write {what}: {text}. Update its ClusterRole from the chart"
        return PodFailure(category=FailureCategory.USER, reason=Reason.OPERATOR_PERMISSION_DENIED, message=message)
    message = f"the API server denied {what}: {text}"
    reason = Reason.NAMESPACE_TERMINATING if is_namespace_terminating(rejection) else Reason.ADMISSION_DENIED
    return PodFailure(category=FailureCategory.SCHEDULING, reason=reason, message=message)


def is_admission_denial(rejection: Rejection) -> bool:
    """Whether an admission policy or webhook denied the write. Either chooses the status, and 422 is common."""
    return "denied the request" in rejection.message or "ValidatingAdmissionPolicy" in rejection.message


def is_namespace_terminating(rejection: Rejection) -> bool:
    """Whether the namespace is terminating: no object can be created in it."""
    return is_terminating_namespace_message(rejection.status, rejection.message)


def is_terminating_namespace_message(status: int, message: str) -> bool:
    """Whether a response of the API server rejects a creation because the namespace is terminating."""
    return status == 403 and "because it is being terminated" in message


def has_published(pod: Json) -> bool:
    """Whether the process of the pod has published all open objects before it ended."""
    report = final_report(pod)
    return report is not None and report.published and report.failure is None


def final_report(pod: Json) -> FinalReport | None:
    """The final report that the process of the pod left in its termination message."""
    return _parse_final_report(_terminated(pod) or {})


def ended_ms(pod: Json) -> int | None:
    """Time in ms since the epoch at which the process of the pod terminated; None if unknown."""
    return to_ms((_terminated(pod) or {}).get("finishedAt"))


def termination_message(pod: Json) -> str | None:
    """The termination message of the pod in one line."""
    text = (_terminated(pod) or {}).get("message")
    return one_line(text) if text else None


def node_of_lost_pod(pod: Json, nodes: dict[str, bool | None]) -> str | None:
    """The name of the pod's node, if that is gone or not ready."""
    node = (pod.get("spec") or {}).get("nodeName")
    return node if node in nodes and not nodes[node] else None


def _from_report(report: FinalReport | None, state: Json) -> PodFailure | None:
    if report is None or report.failure is None:
        return None
    failure = report.failure
    category = FailureCategory.USER if failure.exit_code in _USER_CODES else FailureCategory.INFRASTRUCTURE
    if category is FailureCategory.INFRASTRUCTURE and state.get("reason") == OOM_KILLED:
        return None  # the kernel killed the JVM or a worker; the driver reports only the consequence
    return PodFailure(category=category, reason=sanitize_reason(failure.reason), message=one_line(failure.message))


def _from_exit_code(state: Json, phase: str) -> PodFailure:
    if state.get("reason") == OOM_KILLED:
        message = (
            "the driver was OOM-killed; its memory is increased by 50 %, up to spec.executor.memory.max (in Cluster "
            "mode: set spec.driver.memory for more)"
        )
        return PodFailure(category=FailureCategory.INFRASTRUCTURE, reason=OOM_KILLED, message=message)
    code = state.get("exitCode")
    if code == 0 or (code is None and phase == "Succeeded"):
        message = "the driver terminated with exit code 0 although the desired state is Running"
        return PodFailure(category=FailureCategory.INFRASTRUCTURE, reason=Reason.UNEXPECTED_EXIT, message=message)
    unknown = "the driver terminated for an unknown reason" if code is None else f"the driver exited with code {code}"
    reason, message = _BY_CODE.get(code or 1, (errors.SinkError.reason, unknown))
    category = FailureCategory.USER if code in _USER_CODES else FailureCategory.INFRASTRUCTURE
    return PodFailure(category=category, reason=reason, message=message)


def _evicted(status: Json) -> PodFailure | None:
    reason = status.get("reason")
    if not reason or status.get("phase") != "Failed":
        return None
    text = one_line(status.get("message") or "")
    if reason == "Evicted":
        message = f"the kubelet evicted the driver: {text}"
    elif reason in _NODE_REASONS:
        message = f"the node of the driver was lost or shut down ({reason}): {text}"
    else:
        message = f"Kubernetes terminated the driver ({one_line(str(reason))}): {text}"
    return PodFailure(
        category=FailureCategory.INFRASTRUCTURE, reason=sanitize_reason(str(reason)), message=message.rstrip(": ")
    )


def _own_termination(status: Json) -> Json | None:
    """The termination of the container s3sink; None while it runs."""
    own = (each for each in status.get("containerStatuses") or () if each.get("name") == _CONTAINER)
    return next((dict(end) for each in own if (end := (each.get("state") or {}).get("terminated"))), None)


def _terminated(pod: Json) -> Json | None:
    for each in _containers(pod.get("status") or {}):
        if found := (each.get("state") or {}).get("terminated"):
            return dict(found)
    return None


def _parse_final_report(state: Json) -> FinalReport | None:
    text = state.get("message")
    if not text:
        return None
    try:
        return FinalReport.model_validate_json(text)
    except ValidationError:  # written by the kernel or another process
        return None


def _containers(status: Json) -> Iterator[Json]:
    """The containers, s3sink first."""
    found = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    yield from sorted(found, key=lambda each: each.get("name") != _CONTAINER)


def _waiting(status: Json) -> Iterator[Json]:
    for each in _containers(status):
        if waiting := (each.get("state") or {}).get("waiting"):
            yield dict(waiting)


def _is_rbac_denial(message: str) -> bool:
    """Whether RBAC denied the request: a missing verb, or a role that may not be bound."""
    return ("cannot " in message and " resource " in message) or "attempting to grant RBAC permissions" in message


def _name(pod: Json) -> str:
    return str((pod.get("metadata") or {}).get("name", ""))
