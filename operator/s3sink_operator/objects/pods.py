"""The pods: the driver, the task that carries out one request, and the template of executors.

All fit the restricted pod security profile: no root, no privileges, nothing written but the folders for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from s3sink_operator import names
from s3sink_operator.names import Component
from s3sink_operator.objects.pod_template import CONTAINER, asked_cpu, merged
from s3sink_operator.objects.rbac import account_of
from s3sink_operator.objects.spark_properties import (
    BLOCK_MANAGER_PORT,
    CONFIG_DIR,
    DRIVER_PORT,
    EXECUTOR_TEMPLATE,
    PROPERTIES,
    PROPERTIES_FILE,
)
from s3sink_operator.types import Json, Request, Settings, annotation
from sink_job.api.enums import ExecutorMode
from sink_job.api.quantities import format_size, parse_size
from sink_job.api.spec import GROUP, Sink

SECRETS_DIR: Final = f"{CONFIG_DIR}/secrets"
TMP: Final = "/tmp"
DRIVER_TMP: Final = "tmp"
EXECUTOR_TMP: Final = "spark-local-dir-tmp"
"""Spark takes a volume whose name begins so for what it writes, instead of adding one."""
CPU_OF_DRIVER_ALONE: Final = 1

RESTARTED_FOR: Final = f"{GROUP}/restarted-for"
"""Annotation of a driver pod: the text of the sink's restart annotation that it was started under."""
EXECUTOR_MEMORY: Final = f"{GROUP}/executor-memory"
"""Annotation of a driver pod whose tasks run in executors: what each of those is given, in bytes."""
TASK_REQUEST: Final = f"{GROUP}/request"
"""Annotation of a task pod: what it is for."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a pod is made with. `memory`: bytes of the pod; `executor_memory`: of each executor, if there are any."""

    attempt: int
    memory: int
    executor_memory: int | None = None
    spec_hash: str
    restarted_for: str | None = None


def driver_pod(sink: Sink, owner: Json, settings: Settings, shape: Shape) -> Json:
    """The pod that plans, records and publishes; in Local mode it runs the tasks as well."""
    annotations = {names.SPEC_HASH: shape.spec_hash}
    if shape.restarted_for is not None:
        annotations[RESTARTED_FOR] = shape.restarted_for
    if shape.executor_memory is not None:
        annotations[EXECUTOR_MEMORY] = str(shape.executor_memory)
    container = _container(sink, settings, shape, _run(sink, settings, shape)) | {
        "ports": _ports(sink, settings),
        # Claiming and recovering may take long; what is stuck for good is ended by its liveness.
        "startupProbe": _probe(period_s=5, failures=60),
        "livenessProbe": _probe(period_s=30, failures=4),
        "resizePolicy": [{"resourceName": "memory", "restartPolicy": "NotRequired"}],
    }
    pod = _pod(sink, owner, settings, shape, Component.DRIVER, container, annotations)
    return merged(sink.spec.driver.pod_template, pod)


def task_pod(sink: Sink, owner: Json, settings: Settings, shape: Shape, request: str) -> Json:
    """The pod that carries out `request` once and ends: `Publish`, `Discard`, or `Reset:<nonce>`."""
    container = _container(sink, settings, shape, _task(sink, settings, shape, request))
    annotations = {names.SPEC_HASH: shape.spec_hash, TASK_REQUEST: request}
    pod = _pod(sink, owner, settings, shape, Component.TASK, container, annotations)
    pod["spec"]["activeDeadlineSeconds"] = settings.task_ms // 1000  # it has no probes: what hangs is tried again
    return merged(sink.spec.driver.pod_template, pod)


def executor_template(sink: Sink, settings: Settings, *, attempt: int) -> Json:
    """What Spark makes executors from; it sets their names, image, resources and owner itself."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": names.pod_labels(sink.name, Component.EXECUTOR, attempt)},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": _pod_security(settings),
            "containers": [
                {
                    "name": CONTAINER,
                    "resources": _disk(settings),
                    "securityContext": _security(),
                    "volumeMounts": _mounts(sink, EXECUTOR_TMP),
                }
            ],
            "volumes": _volumes(sink, settings, EXECUTOR_TMP),
        },
    }
    return merged(sink.spec.executor.pod_template, pod)


def memory_of(pod: Json) -> int | None:
    """The memory that a sink is sized by: of each executor, or in Local mode the limit of the pod's container."""
    said = annotation(pod, EXECUTOR_MEMORY)
    if said is not None:
        return int(said) if said.isascii() and said.isdigit() and len(said) <= len(str(1 << 63)) else None
    return size_of(pod)


def image_of(pod: Json) -> str | None:
    """What the job of the pod was started from."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("name") == CONTAINER:
            return str(container.get("image"))
    return None


def has_executors(pod: Json) -> bool:
    """Whether the tasks of this driver run in pods of their own."""
    return annotation(pod, EXECUTOR_MEMORY) is not None


def size_of(pod: Json) -> int | None:
    """The memory limit of the pod's container, in bytes."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("name") == CONTAINER:
            return quantity((container.get("resources") or {}).get("limits", {}).get("memory"))
    return None


def quantity(text: Any) -> int | None:
    """Bytes of a Kubernetes quantity; None for what is none."""
    try:
        return parse_size(str(text))
    except ValueError:
        return None


def request_of(pod: Json) -> str | None:
    """What a task pod is for."""
    return annotation(pod, TASK_REQUEST)


def _pod(
    sink: Sink,
    owner: Json,
    settings: Settings,
    shape: Shape,
    component: Component,
    container: Json,
    annotations: Mapping[str, str],
) -> Json:
    name = names.driver_name(sink.name) if component is Component.DRIVER else names.task_name(sink.name)
    spec: Json = {
        "restartPolicy": "Never",
        "serviceAccountName": account_of(sink),
        "automountServiceAccountToken": sink.spec.executor.mode is ExecutorMode.CLUSTER,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.grace_s,
        "securityContext": _pod_security(settings),
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": names.config_name(sink.name)}}, *_volumes(sink, settings)],
    }
    if sink.spec.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": ref.name} for ref in sink.spec.image_pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": sink.namespace,
            "labels": names.pod_labels(sink.name, component, shape.attempt),
            "annotations": dict(annotations),
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _container(sink: Sink, settings: Settings, shape: Shape, command: Sequence[str]) -> Json:
    return {
        "name": CONTAINER,
        "image": sink.spec.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        # No command: the image's entry point reaps orphans (tini) and becomes what is given to it.
        "args": ["s3sink", *(word.replace("$", "$$") for word in command)],  # else Kubernetes puts in $(POD_IP)
        "env": [
            *([{"name": "S3SINK_SECRETS_DIR", "value": SECRETS_DIR}] if secret_names(sink) else []),
            {"name": "S3SINK_CLUSTER", "value": settings.cluster},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
        ],
        "resources": _resources(sink, settings, shape),
        "securityContext": _security(),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [*_config_mounts(sink), *_mounts(sink)],
    }


def _run(sink: Sink, settings: Settings, shape: Shape) -> Sequence[str]:
    line = [*_base(sink, shape), "--http", f"0.0.0.0:{settings.port}"]
    if sink.spec.executor.mode is ExecutorMode.CLUSTER:
        return [*line, "--spark-properties", PROPERTIES_FILE]
    return line


def _task(sink: Sink, settings: Settings, shape: Shape, request: str) -> Sequence[str]:
    """Requests run locally in their own pod: they are short, and need no executors."""
    kind, _, _ = request.partition(":")
    if kind == Request.PUBLISH:
        return [*_base(sink, shape), "--publish-open"]
    file = f"{CONFIG_DIR}/sink.yaml"
    if kind == Request.DISCARD:
        return ["discard-open", file, "--log", "json"]
    return ["reset-offsets", file, *_reset(sink), "--log", "json"]


def _reset(sink: Sink) -> Sequence[str]:
    reset = sink.spec.offsets.reset
    if reset is None:
        return []
    line = ["--to", reset.to.value, "--on-existing", reset.on_existing.value]
    if reset.timestamp is not None:
        line += ["--timestamp", str(reset.timestamp)]
    for each in reset.partitions or ():
        line += [f"--offset={each.topic}:{each.partition}:{each.offset}"]  # one word: it may begin with a dash
    return [*line, f"--nonce={reset.nonce}"]


def _base(sink: Sink, shape: Shape) -> list[str]:
    cores = str(sink.spec.executor.cores)
    return ["run", f"{CONFIG_DIR}/sink.yaml", "--log", "json", "--memory", str(shape.memory), "--cores", cores]


def _resources(sink: Sink, settings: Settings, shape: Shape) -> Json:
    """Memory that is asked for is what is given, so that no neighbour can take it; CPU may be shared."""
    local = sink.spec.executor.mode is ExecutorMode.LOCAL
    cores = max(sink.spec.executor.cores if local else CPU_OF_DRIVER_ALONE, sink.spec.driver.cores)
    cpu = asked_cpu(sink.spec.driver.pod_template) or str(cores)
    memory = format_size(shape.memory)
    disk = _disk(settings)
    return {
        "requests": {"cpu": cpu, "memory": memory} | disk["requests"],
        "limits": {"memory": memory} | disk["limits"],
    }


def _disk(settings: Settings) -> Json:
    return {"requests": {"ephemeral-storage": "1Gi"}, "limits": {"ephemeral-storage": settings.spill}}


def _ports(sink: Sink, settings: Settings) -> list[Json]:
    ports = [{"name": "report", "containerPort": settings.port, "protocol": "TCP"}]
    if sink.spec.executor.mode is ExecutorMode.CLUSTER:
        ports += [
            {"name": "spark-driver", "containerPort": DRIVER_PORT, "protocol": "TCP"},
            {"name": "spark-blocks", "containerPort": BLOCK_MANAGER_PORT, "protocol": "TCP"},
        ]
    return ports


def _probe(*, period_s: int, failures: int) -> Json:
    return {
        "httpGet": {"path": "/healthz", "port": "report"},
        "periodSeconds": period_s,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _pod_security(settings: Settings) -> Json:
    made: Json = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if settings.user is not None:
        made |= {"runAsUser": settings.user, "runAsGroup": settings.user, "fsGroup": settings.user}
    return made


def _security() -> Json:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def secret_names(sink: Sink) -> Sequence[str]:
    """Every secret that the manifest names, once, in order."""
    spec = sink.spec
    found = [each.secret for each in spec.kafka.property_secrets]
    found += [ref.secret for ref in (spec.s3.credentials, spec.s3.ca_secret) if ref is not None]
    return sorted(set(found))


def _volumes(sink: Sink, settings: Settings, tmp: str = DRIVER_TMP) -> list[Json]:
    return [
        {"name": tmp, "emptyDir": {"sizeLimit": settings.spill}},
        *({"name": f"secret-{at}", "secret": {"secretName": name}} for at, name in enumerate(secret_names(sink))),
    ]


def _mounts(sink: Sink, tmp: str = DRIVER_TMP) -> list[Json]:
    return [
        {"name": tmp, "mountPath": TMP},
        *(
            {"name": f"secret-{at}", "mountPath": f"{SECRETS_DIR}/{name}", "readOnly": True}
            for at, name in enumerate(secret_names(sink))
        ),
    ]


def _config_mounts(sink: Sink) -> list[Json]:
    """File by file: a folder that is read-only has no room for those of the secrets, and such a file stays as it was
    when the pod was made, whatever happens to the ConfigMap."""
    files = ["sink.yaml"]
    if sink.spec.executor.mode is ExecutorMode.CLUSTER:
        files += [PROPERTIES, EXECUTOR_TEMPLATE]
    return [
        {"name": "config", "mountPath": f"{CONFIG_DIR}/{file}", "subPath": file, "readOnly": True} for file in files
    ]
