"""Reads how a pod ended, or why it does not start, into a failure with a name and a sentence of what to do.

The job's own word comes first: its termination message and its exit code. Where it had no chance to speak, the
kubelet's and the scheduler's words do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from s3sink_operator.types import FailureCategory, Json, PodEvent, Rejection, to_ms
from sink_job.api import errors
from sink_job.api.report import Ending

OOM_KILLED = "OOMKilled"
_CONTAINER = "s3sink"
_USER_CODES = {2, 3, 4, 5, 6, 7}
_SPARK_TOO_MANY_EXECUTORS = 11

_BY_CODE = {
    2: (errors.SpecError.reason, "the job refuses the manifest: look at the driver's log"),
    3: (errors.LedgerFenced.reason, "another driver has claimed this sink's ledger: look for a second cluster or host"),
    4: ("DataError", "a record cannot be written: mend its producer, or set spec.errors.tolerance"),
    5: (errors.DataLoss.reason, "Kafka no longer holds records that are not in S3 yet: see spec.onDataLoss"),
    6: (errors.ObjectConflict.reason, "an object with other content stands where one has to be written"),
    7: (errors.ConfigurationError.reason, "the surroundings do not fit the manifest: look at the driver's log"),
    75: (errors.TryAgainLater.reason, "Kafka, S3 or the network did not answer in time"),
    137: ("Killed", "the driver was killed from outside"),
    143: ("Terminated", "the driver was told to stop from outside"),
    _SPARK_TOO_MANY_EXECUTORS: (
        "TooManyExecutorFailures",
        "too many executors failed: look at their logs and at the memory they are given",
    ),
}
_HINTS = {
    "Pod": "Look at the pod templates of the spec",
    "RoleBinding": "Delete it, if it names another role: the role of a binding cannot change, and it is made again",
}
_PULL = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_MISSING = re.compile(
    r'(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found'
    r"|couldn't find key (?P<key>\S+) in (?P<of_kind>Secret|ConfigMap) (?:[\w.-]+/)?(?P<of>[\w.-]+)",
    re.IGNORECASE,
)
_CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError")


@dataclass(frozen=True, kw_only=True)
class PodFailure:
    """Why a pod is not running as it should. `epoch` and `round` are where the ledger stood, as far as it is known."""

    category: FailureCategory
    reason: str
    message: str
    exit_code: int | None = None
    epoch: int | None = None
    round: int | None = None
    ended_ms: int | None = None


def termination_failure(pod: Json) -> PodFailure | None:
    """How the pod's process ended; None while it runs, or may still start.

    The pod itself goes on for as long as a container beside the sink's own does.
    """
    status = pod.get("status") or {}
    phase = status.get("phase")
    own = _own_termination(status)
    if phase not in ("Failed", "Succeeded") and own is None:
        return None
    state = own or _terminated(pod) or {}
    ending = _parse_final_report(state)
    code = state.get("exitCode")
    found = _evicted(status) or _from_report(ending, state) or _from_exit_code(state, str(phase))
    return PodFailure(
        category=found.category,
        reason=found.reason,
        message=found.message,
        exit_code=code,
        epoch=ending.epoch if ending else None,
        round=ending.round if ending else None,
        ended_ms=to_ms(state.get("finishedAt")),
    )


def succeeded(pod: Json) -> bool:
    """Whether the pod's process ended by itself, without an error."""
    status = pod.get("status") or {}
    own = _own_termination(status)
    return status.get("phase") == "Succeeded" or (own is not None and own.get("exitCode") == 0)


def startup_failure(pod: Json, warning: PodEvent | None = None) -> PodFailure | None:
    """Why a pod that has been made does not run yet, where Kubernetes says; it goes on trying by itself.

    `warning`: the last event of a pod whose own status does not tell.
    """
    status = pod.get("status") or {}
    if status.get("phase") not in (None, "Pending"):
        return None
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            said = _one_line(condition.get("message") or "no node takes the pod")
            sentence = (
                f"the pod {_name(pod)} finds no node: {said.rstrip('.')}. Give the cluster room, or ask for "
                "less: spec.executor.memory, and the CPU request in the pod templates"
            )
            return PodFailure(category=FailureCategory.SCHEDULING, reason="Unschedulable", message=sentence)
    for waiting in _waiting(status):
        reason, said = str(waiting.get("reason")), _one_line(waiting.get("message") or "")
        if reason in _PULL:
            sentence = f"the image cannot be pulled ({reason}): {said}. Look at spec.image and spec.imagePullSecrets"
            return PodFailure(category=FailureCategory.USER, reason="ImagePullFailed", message=sentence)
        if (missing := _MISSING.search(said)) is not None:
            return _missing_reference(pod, missing)
        if reason in _CONFIG:
            sentence = f"the container cannot be made ({reason}): {said}. Look at secrets and spec.driver.podTemplate"
            return PodFailure(category=FailureCategory.USER, reason="ContainerRefused", message=sentence)
    if warning is None or warning.pod != _name(pod):
        return None
    said = _one_line(warning.message)
    if (missing := _MISSING.search(said)) is not None:
        return _missing_reference(pod, missing)
    sentence = f"the pod {_name(pod)} does not start: {said.rstrip('.')}. Kubernetes goes on trying"
    return PodFailure(category=FailureCategory.SCHEDULING, reason=warning.reason, message=sentence)


def _missing_reference(pod: Json, found: re.Match[str]) -> PodFailure:
    """A pod that waits for a Secret or ConfigMap starts by itself once that is there."""
    kind = "Secret" if (found["kind"] or found["of_kind"]).lower() == "secret" else "ConfigMap"
    namespace = (pod.get("metadata") or {}).get("namespace")
    what = f"{kind} {found['name'] or found['of']}"
    lacks = f"there is no {what} in the namespace {namespace}"
    if found["key"]:
        lacks = f"the {what} of the namespace {namespace} has no key {found['key']}"
    sentence = f"{lacks}, which the pod {_name(pod)} needs: make it, and the pod starts by itself; or mend the spec"
    return PodFailure(category=FailureCategory.USER, reason=f"{kind}Missing", message=sentence)


def api_rejection(refusal: Rejection) -> PodFailure:
    """What the API server's refusal means, in its own words."""
    what = f"{refusal.kind} {refusal.name}"
    said = _one_line(refusal.message).rstrip(".")
    if refusal.status == 403 and "exceeded quota" in refusal.message:
        sentence = f"the namespace's quota has no room for {what}: {said}"
        return PodFailure(category=FailureCategory.SCHEDULING, reason="QuotaExceeded", message=sentence)
    if refusal.status in (400, 422):
        hint = _HINTS.get(refusal.kind, "Look at the operator's log")
        sentence = f"the API server finds {what} wrong: {said}. {hint}"
        return PodFailure(category=FailureCategory.USER, reason="Invalid", message=sentence)
    if refusal.status == 403 and _lacks_rights(refusal.message):
        sentence = f"the operator may not write {what}: {said}. Its ClusterRole comes with the chart"
        return PodFailure(category=FailureCategory.USER, reason="OperatorForbidden", message=sentence)
    sentence = f"the API server refuses {what}: {said}"
    reason = "NamespaceTerminating" if is_namespace_terminating(refusal) else "AdmissionRefused"
    return PodFailure(category=FailureCategory.SCHEDULING, reason=reason, message=sentence)


def is_namespace_terminating(refusal: Rejection) -> bool:
    """Whether nothing can be made there any more, since the namespace is being deleted."""
    return refusal.status == 403 and "because it is being terminated" in refusal.message


def final_report(pod: Json) -> Ending | None:
    """What the pod's process left for us when it ended."""
    return _parse_final_report(_terminated(pod) or {})


def termination_message(pod: Json) -> str | None:
    """The pod's termination message as it is."""
    text = (_terminated(pod) or {}).get("message")
    return _one_line(text) if text else None


def node_of_lost_pod(pod: Json, nodes: dict[str, bool | None]) -> str | None:
    """The name of the pod's node, if that is gone or not ready."""
    node = (pod.get("spec") or {}).get("nodeName")
    return node if node in nodes and not nodes[node] else None


def _from_report(ending: Ending | None, state: Json) -> PodFailure | None:
    if ending is None or ending.failure is None:
        return None
    said = ending.failure
    kind = FailureCategory.USER if said.exit_code in _USER_CODES else FailureCategory.INFRASTRUCTURE
    if kind is FailureCategory.INFRASTRUCTURE and state.get("reason") == OOM_KILLED:
        return None  # the kernel took the JVM or a worker, and what the driver says of it is what it saw of that
    return PodFailure(category=kind, reason=said.reason, message=_one_line(said.message))


def _from_exit_code(state: Json, phase: str) -> PodFailure:
    if state.get("reason") == OOM_KILLED:
        sentence = (
            "the kernel killed the driver for want of memory; it gets half as much again, as far as "
            "spec.executor.memory.max (with executors of their own: spec.driver.memory) lets it"
        )
        return PodFailure(category=FailureCategory.INFRASTRUCTURE, reason=OOM_KILLED, message=sentence)
    code = state.get("exitCode")
    if code == 0 or (code is None and phase == "Succeeded"):
        sentence = "the driver ended without an error, though the sink should run"
        return PodFailure(category=FailureCategory.INFRASTRUCTURE, reason="EndedByItself", message=sentence)
    reason, said = _BY_CODE.get(code or 1, (errors.SinkError.reason, f"the driver ended with exit code {code}"))
    said = said if code in _BY_CODE or code is not None else "the driver ended, and nothing says how"
    return PodFailure(
        category=FailureCategory.USER if code in _USER_CODES else FailureCategory.INFRASTRUCTURE,
        reason=reason,
        message=said,
    )


def _evicted(status: Json) -> PodFailure | None:
    reason = status.get("reason")
    if not reason or status.get("phase") != "Failed":
        return None
    said = _one_line(status.get("message") or "")
    if reason == "Evicted":
        sentence = f"the kubelet evicted the driver: {said}"
    elif reason in ("NodeLost", "NodeShutdown", "Shutdown", "Terminated"):
        sentence = f"the driver's node went away ({reason}): {said}"
    else:
        sentence = f"Kubernetes ended the driver ({reason}): {said}"
    return PodFailure(category=FailureCategory.INFRASTRUCTURE, reason=str(reason), message=sentence.rstrip(": "))


def _own_termination(status: Json) -> Json | None:
    """How the sink's own container ended, if it has."""
    own = (each for each in status.get("containerStatuses") or () if each.get("name") == _CONTAINER)
    return next((dict(end) for each in own if (end := (each.get("state") or {}).get("terminated"))), None)


def _terminated(pod: Json) -> Json | None:
    for each in _containers(pod.get("status") or {}):
        if found := (each.get("state") or {}).get("terminated"):
            return dict(found)
    return None


def _parse_final_report(state: Json) -> Ending | None:
    text = state.get("message")
    if not text:
        return None
    try:
        return Ending.model_validate_json(text)
    except ValidationError:  # the kernel's or a foreign process's word, not the job's
        return None


def _containers(status: Json) -> Iterator[Json]:
    """The sink's own container first."""
    found = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    yield from sorted(found, key=lambda each: each.get("name") != _CONTAINER)


def _waiting(status: Json) -> Iterator[Json]:
    for each in _containers(status):
        if waiting := (each.get("state") or {}).get("waiting"):
            yield dict(waiting)


def _lacks_rights(message: str) -> bool:
    """As RBAC says it: a verb that is not given, or a role that may not be bound."""
    return ("cannot " in message and " resource " in message) or "attempting to grant RBAC permissions" in message


def _name(pod: Json) -> str:
    return str((pod.get("metadata") or {}).get("name", ""))


def _one_line(message: str) -> str:
    """One line."""
    return " ".join(message.split())
