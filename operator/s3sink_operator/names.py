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
SHORT: Final = "s3s"
CATEGORY: Final = "sinks"

FIELD_MANAGER: Final = "s3sink-operator"
"""Who writes, in every apply: the API server keeps the fields of each manager apart."""
LEASE: Final = "s3sink-operator"

FINALIZER: Final = f"{GROUP}/deletion-policy"
"""Holds a deleted sink until what is open is published or discarded; never set with deletionPolicy Retain."""

RESTART: Final = f"{GROUP}/restart"
"""Annotation of users: any new text restarts the sink."""
STATE: Final = f"{GROUP}/state"
"""Annotation of users: Running, Paused or Stopped, in place of spec.state."""
RESET_OFFSETS: Final = f"{GROUP}/reset-offsets"
"""Annotation of users: a request about offsets as JSON, as spec.offsets.reset has it, with a nonce of its own."""
PAUSED: Final = f"reconcile.{GROUP}/paused"
"""Annotation of users: with "true" the operator looks and tells, and touches nothing."""
SPEC_HASH: Final = f"{GROUP}/spec-hash"
"""Annotation of pods: what the job was started with."""

SINK: Final = f"{GROUP}/sink"
ATTEMPT: Final = f"{GROUP}/attempt"
NAME: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
COMPONENT: Final = "app.kubernetes.io/component"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"

LONGEST_SINK: Final = 40
"""Characters of a sink's name: with an attempt and an executor's number behind it, it is still a host name."""
LONGEST_HOST_NAME: Final = 63
LONGEST_ATTEMPT_NAME: Final = 47
"""Characters that leave room for what Spark puts behind them, `-exec-` and a number of ten digits."""
_ATTEMPTS: Final = 10 ** (LONGEST_ATTEMPT_NAME - LONGEST_SINK - 1)


class Component(StrEnum):
    """What a child of a sink is for."""

    DRIVER = "driver"
    EXECUTOR = "executor"
    TASK = "task"
    CONFIG = "config"


def config_name(sink: str) -> str:
    """Of the ConfigMap with what the job reads."""
    return f"{sink}-s3sink"


def account_name(sink: str) -> str:
    """Of the ServiceAccount that the driver makes executors with."""
    return f"{sink}-s3sink"


def binding_name(sink: str) -> str:
    """Of the RoleBinding that lets that account do so."""
    return f"{sink}-s3sink"


def driver_name(sink: str) -> str:
    """Of the driver pod: one name, so that there is never a second one."""
    return f"{sink}-s3sink-driver"


def task_name(sink: str) -> str:
    """Of the pod that carries out one request: other offsets, or publishing what is open."""
    return f"{sink}-s3sink-task"


def attempt_name(sink: str, attempt: int) -> str:
    """What tells one attempt from those before it: Spark's application id, and the beginning of executors' names.

    At most 47 characters. The number starts again after a million, long after the pods of the first one are gone.
    """
    return f"{sink}-{attempt % _ATTEMPTS}"


def labels(sink: str, component: Component) -> dict[str, str]:
    """Of every child."""
    return {
        NAME: SINGULAR,
        INSTANCE: sink,
        COMPONENT: component.value,
        MANAGED_BY: FIELD_MANAGER,
        SINK: sink,
    }


def pod_labels(sink: str, component: Component, attempt: int) -> dict[str, str]:
    """Of the pods of one attempt."""
    return labels(sink, component) | {ATTEMPT: str(attempt)}


def selector(sink: str, component: Component | None = None) -> str:
    """A label selector, as text, for the children of a sink: all of them, or those of one component."""
    parts = [f"{SINK}={sink}"] + ([f"{COMPONENT}={component.value}"] if component else [])
    return ",".join(parts)
