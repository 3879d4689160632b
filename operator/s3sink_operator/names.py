"""Names, labels, annotations and the finalizer of a sink and its children.

They are a contract: a newer operator finds the children of an older one by them, and users select by them. All are pure
functions of the name of the sink and the number of the attempt.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final

from sink_job.api.sections import skip_section
from sink_job.api.spec import GROUP

PLURAL: Final = "s3sinks"
SINGULAR: Final = "s3sink"
SHORT_NAME: Final = "s3s"
CATEGORY: Final = "sinks"

FIELD_MANAGER: Final = "s3sink-operator"
"""Field manager of every apply."""
LEASE_NAME: Final = "s3sink-operator"

FINALIZER: Final = f"{GROUP}/deletion-policy"
"""Holds a deleted sink until its open objects are published or discarded. Not set with deletionPolicy Retain."""

RESTART_ANNOTATION: Final = f"{GROUP}/restart"
"""Annotation by users: any new text restarts the driver."""
STATE_ANNOTATION: Final = f"{GROUP}/state"
"""Annotation by users: Running, Paused or Stopped; overrides spec.state."""
RESET_OFFSETS_ANNOTATION: Final = f"{GROUP}/reset-offsets"
"""Annotation by users: an offset reset as JSON, in the format of spec.offsets.reset, with its own nonce."""
SKIP_ANNOTATION: Final = skip_section.SKIP_ANNOTATION
"""Annotation by users: records to pass over beside those of spec.errors.skip, topic-partition@offset each."""
TAKE_OVER_ANNOTATION: Final = f"{GROUP}/take-over"
"""Annotation by users: the owner that the driver may take over from, cluster/namespace/name/sinkId. On pods: the owner
that the pod was started to take over from."""
RECONCILE_PAUSED_ANNOTATION: Final = f"reconcile.{GROUP}/paused"
"""Annotation by users: with "true" the operator only writes the status of the sink."""
SPEC_HASH_ANNOTATION: Final = f"{GROUP}/spec-hash"
"""Annotation of pods: hash of the settings that the job was started with."""
SOURCE_HASH_ANNOTATION: Final = f"{GROUP}/source-hash"
"""Annotation of driver pods: as SPEC_HASH_ANNOTATION, without what the operator adds to the spec of the sink."""
GENERATION_ANNOTATION: Final = f"{GROUP}/generation"
"""Annotation of driver pods: the edition of the sink that the job was started with."""

REPORT_TOKEN_ANNOTATION: Final = f"{GROUP}/report-token"
"""Annotation of driver pods: the token for its report and its metrics."""

SINK_LABEL: Final = f"{GROUP}/sink"
ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
NAME_LABEL: Final = "app.kubernetes.io/name"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"

MAX_SINK_NAME: Final = 40
"""Maximum length of a sink's name. With the numbers of attempt and executor it is still a host name."""
MAX_ATTEMPT_NAME: Final = 47
"""Maximum length that leaves room for the suffix of Spark: `-exec-` and a number of ten digits."""
_ATTEMPTS: Final = 10 ** (MAX_ATTEMPT_NAME - MAX_SINK_NAME - 1)


class Component(StrEnum):
    """The component label of a child."""

    DRIVER = "driver"
    EXECUTOR = "executor"
    OPERATION = "operation"
    CONFIG = "config"


def config_map_name(sink: str) -> str:
    """Name of the ConfigMap with the input of the job."""
    return f"{sink}-s3sink"


def service_account_name(sink: str) -> str:
    """Name of the ServiceAccount of the pods."""
    return f"{sink}-s3sink"


def role_binding_name(sink: str) -> str:
    """Name of the RoleBinding that lets the driver create executors."""
    return f"{sink}-s3sink"


def driver_pod_name(sink: str) -> str:
    """Name of the driver pod. The fixed name prevents a second driver."""
    return f"{sink}-s3sink-driver"


def operation_pod_name(sink: str) -> str:
    """Name of the operation pod, which publishes or discards open objects or resets offsets."""
    return f"{sink}-s3sink-operation"


def attempt_name(sink: str, attempt: int) -> str:
    """The name of an attempt: Spark's application id and the prefix of the names of executors.

    At most 47 characters. The number wraps around after a million attempts.
    """
    return f"{sink}-{attempt % _ATTEMPTS}"


def edition(generation: int, skip: str | None) -> str:
    """What a user has written by a time: the generation of the sink, and a digest of its skip annotation if it has one,
    which changes no generation."""
    return str(generation) if skip is None else f"{generation}/{hashlib.sha256(skip.encode()).hexdigest()[:16]}"


def labels(sink: str, component: Component) -> dict[str, str]:
    """The labels of every child."""
    return {
        NAME_LABEL: SINGULAR,
        INSTANCE_LABEL: sink,
        COMPONENT_LABEL: component.value,
        MANAGED_BY_LABEL: FIELD_MANAGER,
        SINK_LABEL: sink,
    }


def pod_labels(sink: str, component: Component, attempt: int) -> dict[str, str]:
    """The labels of the pods of one attempt."""
    return labels(sink, component) | {ATTEMPT_LABEL: str(attempt)}


def selector(sink: str, component: Component | None = None) -> str:
    """The label selector of the children of a sink, or of those of one component."""
    parts = [f"{SINK_LABEL}={sink}"] + ([f"{COMPONENT_LABEL}={component.value}"] if component else [])
    return ",".join(parts)
