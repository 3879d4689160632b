"""The words that the operator's floors share with each other and with users: names, labels, annotations, the finalizer.

They are a contract: an operator that is updated finds the children of the one before by them, users select by them,
and dashboards and policies quote them. All are pure functions of the sink's name and the attempt's number.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sink_job.api.spec import GROUP

PLURAL: Final = "s3sinks"
SINGULAR: Final = "s3sink"
SHORT_NAME: Final = "s3s"
CATEGORY: Final = "sinks"

FIELD_MANAGER: Final = "s3sink-operator"
"""Who writes, in every apply: the API server keeps the fields of each manager apart."""
LEASE_NAME: Final = "s3sink-operator"

FINALIZER: Final = f"{GROUP}/deletion-policy"
"""Holds a deleted sink until what is open is published or discarded; never set with deletionPolicy Retain."""

RESTART_ANNOTATION: Final = f"{GROUP}/restart"
"""Annotation of users: any new text restarts the sink."""
STATE_ANNOTATION: Final = f"{GROUP}/state"
"""Annotation of users: Running, Paused or Stopped, in place of spec.state."""
RESET_OFFSETS_ANNOTATION: Final = f"{GROUP}/reset-offsets"
"""Annotation of users: a request about offsets as JSON, as spec.offsets.reset has it, with a nonce of its own."""
RECONCILE_PAUSED_ANNOTATION: Final = f"reconcile.{GROUP}/paused"
"""Annotation of users: with "true" the operator looks and tells, and touches nothing."""
SPEC_HASH_ANNOTATION: Final = f"{GROUP}/spec-hash"
"""Annotation of pods: what the job was started with."""

SINK_LABEL: Final = f"{GROUP}/sink"
ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
NAME_LABEL: Final = "app.kubernetes.io/name"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"

MAX_SINK_NAME: Final = 40
"""Characters of a sink's name: with an attempt and an executor's number behind it, it is still a host name."""
MAX_HOST_NAME: Final = 63
MAX_ATTEMPT_NAME: Final = 47
"""Characters that leave room for what Spark puts behind them, `-exec-` and a number of ten digits."""
_ATTEMPTS: Final = 10 ** (MAX_ATTEMPT_NAME - MAX_SINK_NAME - 1)


class Component(StrEnum):
    """What a child of a sink is for."""

    DRIVER = "driver"
    EXECUTOR = "executor"
    OPERATION = "operation"
    CONFIG = "config"


def config_map_name(sink: str) -> str:
    """Of the ConfigMap with what the job reads."""
    return f"{sink}-s3sink"


def service_account_name(sink: str) -> str:
    """Of the ServiceAccount that the driver makes executors with."""
    return f"{sink}-s3sink"


def role_binding_name(sink: str) -> str:
    """Of the RoleBinding that lets that account do so."""
    return f"{sink}-s3sink"


def driver_pod_name(sink: str) -> str:
    """Of the driver pod: one name, so that there is never a second one."""
    return f"{sink}-s3sink-driver"


def operation_pod_name(sink: str) -> str:
    """Of the pod that carries out one request: other offsets, or publishing what is open."""
    return f"{sink}-s3sink-operation"


def attempt_name(sink: str, attempt: int) -> str:
    """What tells one attempt from those before it: Spark's application id, and the beginning of executors' names.

    At most 47 characters. The number starts again after a million, long after the pods of the first one are gone.
    """
    return f"{sink}-{attempt % _ATTEMPTS}"


def labels(sink: str, component: Component) -> dict[str, str]:
    """Of every child."""
    return {
        NAME_LABEL: SINGULAR,
        INSTANCE_LABEL: sink,
        COMPONENT_LABEL: component.value,
        MANAGED_BY_LABEL: FIELD_MANAGER,
        SINK_LABEL: sink,
    }


def pod_labels(sink: str, component: Component, attempt: int) -> dict[str, str]:
    """Of the pods of one attempt."""
    return labels(sink, component) | {ATTEMPT_LABEL: str(attempt)}


def selector(sink: str, component: Component | None = None) -> str:
    """A label selector, as text, for the children of a sink: all of them, or those of one component."""
    parts = [f"{SINK_LABEL}={sink}"] + ([f"{COMPONENT_LABEL}={component.value}"] if component else [])
    return ",".join(parts)
