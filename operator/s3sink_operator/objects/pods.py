"""The pods: the driver, the operation pod, and the template of executors.

All comply with the restricted Pod Security Standard: no root, no privileges, a read-only root file system.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from s3sink_operator import names
from s3sink_operator.names import Component
from s3sink_operator.objects import schema_volume, security_context
from s3sink_operator.objects.allocation import ALLOCATION, ALLOCATION_DIR, VOLUME
from s3sink_operator.objects.pod_template import (
    CONTAINER,
    DRIVER_SPILL_VOLUME,
    EXECUTOR_SPILL_VOLUME,
    is_own,
    merge_template,
    requested_cpu,
    without_memory,
)
from s3sink_operator.objects.rbac import service_account_of
from s3sink_operator.objects.spark_properties import (
    BLOCK_MANAGER_PORT,
    CONFIG_DIR,
    DRIVER_PORT,
    EXECUTOR_TEMPLATE,
    PROPERTIES,
    PROPERTIES_FILE,
)
from s3sink_operator.types import Json, Operation, Settings, annotation
from sink_job.api.enums import ExecutorMode
from sink_job.api.report_access import REPORT_TOKEN_VARIABLE
from sink_job.api.spec import GROUP, Sink
from sink_job.api.units.quantities import format_size, parse_size

SECRETS_DIR: Final = f"{CONFIG_DIR}/secrets"
TMP_DIR: Final = "/tmp"
DRIVER_CORES: Final = 1
_REPORT_PORT: Final = 8042
_READY_WAIT_S: Final = 55

RESTARTED_FOR_ANNOTATION: Final = f"{GROUP}/restarted-for"
"""Annotation of a driver pod: the restart annotation of the sink when it was created."""
EXECUTOR_MEMORY_ANNOTATION: Final = f"{GROUP}/executor-memory"
"""Annotation of a driver pod in Cluster mode: memory of each executor in bytes."""
OPERATION_ANNOTATION: Final = f"{GROUP}/operation"
"""Annotation of an operation pod: its operation."""

_RESIZE_POLICY: Final = [{"resourceName": "memory", "restartPolicy": "NotRequired"}]


@dataclass(frozen=True, kw_only=True)
class PodShape:
    """Sizes and annotations of a pod. `memory`: bytes of the pod; `executor_memory`: bytes of each executor, if any.
    `generation` and `skip`: of the sink, and its skip annotation. `take_over_from`: the owner that it takes over from,
    if any."""

    attempt: int
    memory: int
    executor_memory: int | None = None
    spec_hash: str
    source_hash: str = ""
    generation: int = 0
    skip: str | None = None
    restarted_for: str | None = None
    take_over_from: str | None = None


def driver_pod(sink: Sink, owner: Json, settings: Settings, shape: PodShape) -> Json:
    """The driver pod. In Local mode it also runs the tasks."""
    annotations = {
        names.SPEC_HASH_ANNOTATION: shape.spec_hash,
        names.SOURCE_HASH_ANNOTATION: shape.source_hash,
        names.GENERATION_ANNOTATION: names.edition(shape.generation, shape.skip),
        names.REPORT_TOKEN_ANNOTATION: _report_token(settings, str(owner.get("uid", "")), shape.attempt),
    }
    if shape.restarted_for is not None:
        annotations[RESTARTED_FOR_ANNOTATION] = shape.restarted_for
    if shape.executor_memory is not None:
        annotations[EXECUTOR_MEMORY_ANNOTATION] = str(shape.executor_memory)
    if shape.take_over_from is not None:
        annotations[names.TAKE_OVER_ANNOTATION] = shape.take_over_from
    container = _container(sink, settings, shape, _driver_args(sink, settings, shape))
    env = container["env"]
    container |= {
        "ports": _ports(sink, settings),
        "env": [*env, _from_annotation(REPORT_TOKEN_VARIABLE, names.REPORT_TOKEN_ANNOTATION)],
        # Each failed probe is a warning. The port opens within seconds; /readyz answers when the driver is Running, or
        # after its wait. Claim and recovery may take long. The liveness probe ends a driver that hangs.
        "startupProbe": _probe("/healthz", period_s=10, failures=30) | {"initialDelaySeconds": 10},
        "readinessProbe": _probe(f"/readyz?wait={_READY_WAIT_S}", period_s=10, failures=1, timeout_s=_READY_WAIT_S + 5),
        "livenessProbe": _probe("/healthz", period_s=30, failures=4),
        "resizePolicy": _RESIZE_POLICY,
    }
    container["env"].append({"name": "S3SINK_ALLOCATION", "value": f"{ALLOCATION_DIR}/{ALLOCATION}"})
    container["volumeMounts"].append({"name": VOLUME, "mountPath": ALLOCATION_DIR, "readOnly": True})
    pod = _pod(sink, owner, settings, shape, Component.DRIVER, container, annotations)
    items = [{"key": ALLOCATION, "path": ALLOCATION}]
    source = {"name": names.config_map_name(sink.name), "items": items}
    pod["spec"]["volumes"].append({"name": VOLUME, "configMap": source})
    return merge_template(sink.spec.driver.pod_template, pod)


def operation_pod(sink: Sink, owner: Json, settings: Settings, shape: PodShape, operation: str) -> Json:
    """The pod that runs an operation once: `Publish`, `Discard`, or `Reset:<nonce>`."""
    container = _container(sink, settings, shape, _operation_args(sink, settings, shape, operation))
    annotations = {names.SPEC_HASH_ANNOTATION: shape.spec_hash, OPERATION_ANNOTATION: operation}
    if shape.take_over_from is not None:
        annotations[names.TAKE_OVER_ANNOTATION] = shape.take_over_from
    pod = _pod(sink, owner, settings, shape, Component.OPERATION, container, annotations)
    pod["spec"]["activeDeadlineSeconds"] = settings.operation_timeout_ms // 1000  # it has no probes
    return merge_template(sink.spec.driver.pod_template, pod)


def executor_template(sink: Sink, settings: Settings, *, attempt: int) -> Json:
    """The pod template of executors. Spark sets name, image, resources and owner.

    It has no resizePolicy: Spark 4.2 repeats its items, which the API server rejects. The default of Kubernetes is
    NotRequired.
    """
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": names.pod_labels(sink.name, Component.EXECUTOR, attempt)},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": security_context.of_pod(settings),
            "containers": [
                {
                    "name": CONTAINER,
                    "securityContext": security_context.of_container(),
                    "volumeMounts": _mounts(executor_secret_names(sink), EXECUTOR_SPILL_VOLUME),
                }
            ],
            "volumes": _volumes(executor_secret_names(sink), settings, EXECUTOR_SPILL_VOLUME),
        },
    }
    made = merge_template(sink.spec.executor.pod_template, pod)
    containers = made["spec"]["containers"]
    made["spec"]["containers"] = [without_memory(each) if is_own(each) else each for each in containers]
    return made


def sized_memory(pod: Json) -> int | None:
    """The sized memory in bytes at the start of a driver: of each executor, or in Local mode of its own container."""
    text = annotation(pod, EXECUTOR_MEMORY_ANNOTATION)
    if text is not None:
        return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(1 << 63)) else None
    return memory_limit(pod)


def report_port(pod: Json) -> int:
    """The container port with the name `report`."""
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or ()]
    return next((int(port["containerPort"]) for port in ports if port.get("name") == "report"), _REPORT_PORT)


def image_of(pod: Json) -> str | None:
    """The image of the job."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("name") == CONTAINER:
            return str(container.get("image"))
    return None


def has_executors(pod: Json) -> bool:
    """Whether the tasks of this driver run in executor pods."""
    return annotation(pod, EXECUTOR_MEMORY_ANNOTATION) is not None


def memory_limit(pod: Json) -> int | None:
    """The memory limit of the container in bytes."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("name") == CONTAINER:
            return parse_quantity((container.get("resources") or {}).get("limits", {}).get("memory"))
    return None


def actual_memory(pod: Json) -> int | None:
    """The memory limit in bytes that the running container has; None if the kubelet does not report it."""
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if each.get("name") == CONTAINER:
            return parse_quantity(((each.get("resources") or {}).get("limits") or {}).get("memory"))
    return None


def parse_quantity(text: Any) -> int | None:
    """Bytes of a Kubernetes quantity; None for an invalid one."""
    try:
        return parse_size(str(text))
    except ValueError:
        return None


def operation_of(pod: Json) -> str | None:
    """The operation of an operation pod."""
    return annotation(pod, OPERATION_ANNOTATION)


def _pod(
    sink: Sink,
    owner: Json,
    settings: Settings,
    shape: PodShape,
    component: Component,
    container: Json,
    annotations: Mapping[str, str],
) -> Json:
    name = names.driver_pod_name(sink.name) if component is Component.DRIVER else names.operation_pod_name(sink.name)
    spec: Json = {
        "restartPolicy": "Never",
        "serviceAccountName": service_account_of(sink),
        "automountServiceAccountToken": _creates_executors(sink, component),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.termination_grace_s,
        "securityContext": security_context.of_pod(settings),
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": names.config_map_name(sink.name)}},
            *_volumes(secret_names(sink), settings),
            *schema_volume.volumes(sink),
        ],
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


def _report_token(settings: Settings, uid: str, attempt: int) -> str:
    """The token of one driver: known to whoever may read its pod, and to no other driver."""
    return hmac.new(settings.report_salt.encode(), f"{uid}/{attempt}".encode(), hashlib.sha256).hexdigest()[:32]


def _from_annotation(variable: str, name: str) -> Json:
    source = {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{name}']"}
    return {"name": variable, "valueFrom": {"fieldRef": source}}


def _creates_executors(sink: Sink, component: Component) -> bool:
    """Whether the pod calls the API server. Operations run in one process."""
    return component is Component.DRIVER and sink.spec.executor.mode is ExecutorMode.CLUSTER


def _container(sink: Sink, settings: Settings, shape: PodShape, command: Sequence[str]) -> Json:
    return {
        "name": CONTAINER,
        "image": sink.spec.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        # No command: the entry point of the image, tini, reaps orphans and runs the arguments.
        "args": ["s3sink", *(word.replace("$", "$$") for word in command)],  # Kubernetes would expand $(POD_IP)
        "env": [
            *([{"name": "S3SINK_SECRETS_DIR", "value": SECRETS_DIR}] if secret_names(sink) else []),
            *schema_volume.environment(sink),
            {"name": "S3SINK_CLUSTER", "value": settings.cluster_id},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
        ],
        "resources": _resources(sink, shape),
        "securityContext": security_context.of_container(),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [*_config_mounts(sink), *_mounts(secret_names(sink)), *schema_volume.mounts(sink)],
    }


def _driver_args(sink: Sink, settings: Settings, shape: PodShape) -> Sequence[str]:
    line = [*_run_args(sink, shape), "--http", f"0.0.0.0:{settings.report_port}"]
    if sink.spec.executor.mode is ExecutorMode.CLUSTER:
        return [*line, "--spark-properties", PROPERTIES_FILE]
    return line


def _operation_args(sink: Sink, settings: Settings, shape: PodShape, operation: str) -> Sequence[str]:
    """Operations run locally in their own pod: they are short and require no executors."""
    kind, _, _ = operation.partition(":")
    if kind == Operation.PUBLISH:
        return [*_run_args(sink, shape), "--publish-open"]
    file = f"{CONFIG_DIR}/sink.yaml"
    if kind == Operation.DISCARD:
        return ["discard-open", file, "--log", "json", *_take_over(shape)]
    return ["reset-offsets", file, *_reset_args(sink), "--log", "json", *_take_over(shape)]


def _reset_args(sink: Sink) -> Sequence[str]:
    reset = sink.spec.offsets.reset
    if reset is None:
        return []
    line = ["--to", reset.to.value, "--on-existing", reset.on_existing.value]
    if reset.timestamp is not None:
        line += ["--timestamp", str(reset.timestamp)]
    for each in reset.partitions or ():
        line += [f"--offset={each.topic}:{each.partition}:{each.offset}"]  # one argument: it may begin with a dash
    return [*line, f"--nonce={reset.nonce}"]


def _run_args(sink: Sink, shape: PodShape) -> list[str]:
    cores = str(sink.spec.executor.cores)
    line = ["run", f"{CONFIG_DIR}/sink.yaml", "--log", "json", "--memory", str(shape.memory), "--cores", cores]
    return [*line, *_take_over(shape)]


def _take_over(shape: PodShape) -> list[str]:
    return [] if shape.take_over_from is None else [f"--take-over-from={shape.take_over_from}"]


def _resources(sink: Sink, shape: PodShape) -> Json:
    """The memory request equals the limit. CPU has no limit, and local disk neither request nor limit: the volume for
    spilled data has a size limit, and a LimitRange may allow less than any default of the operator."""
    local = sink.spec.executor.mode is ExecutorMode.LOCAL
    cores = max(sink.spec.executor.cores if local else DRIVER_CORES, sink.spec.driver.cores)
    cpu = requested_cpu(sink.spec.driver.pod_template) or str(cores)
    memory = format_size(shape.memory)
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}


def _ports(sink: Sink, settings: Settings) -> list[Json]:
    ports = [{"name": "report", "containerPort": settings.report_port, "protocol": "TCP"}]
    if sink.spec.executor.mode is ExecutorMode.CLUSTER:
        ports += [
            {"name": "spark-driver", "containerPort": DRIVER_PORT, "protocol": "TCP"},
            {"name": "spark-blocks", "containerPort": BLOCK_MANAGER_PORT, "protocol": "TCP"},
        ]
    return ports


def _probe(path: str, *, period_s: int, failures: int, timeout_s: int = 5) -> Json:
    return {
        "httpGet": {"path": path, "port": "report"},
        "periodSeconds": period_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": failures,
    }


def secret_names(sink: Sink) -> Sequence[str]:
    """The names of all Secrets in the manifest, sorted."""
    registry, login = sink.spec.format.registry, sink.spec.kafka.login
    refs = [] if registry is None else [registry.credentials, registry.ca_secret, registry.client_secret]
    refs += [] if login is None else [login.credentials, login.ca_secret, login.token_ca_secret]
    for table in sink.spec.tables:
        refs += [table.catalog.credentials, table.catalog.ca_secret]
    return sorted({*executor_secret_names(sink), *(ref.secret for ref in refs if ref is not None)})


def executor_secret_names(sink: Sink) -> Sequence[str]:
    """The names of the Secrets that executors need, sorted: only the driver connects to a schema registry and to
    catalogs, and executors get the properties of a Kafka login from it."""
    spec = sink.spec
    found = [each.secret for each in spec.kafka.property_secrets]
    refs = [spec.s3.credentials, spec.s3.ca_secret, None if spec.s3.proxy is None else spec.s3.proxy.credentials]
    refs += [None if spec.s3.ledger is None else spec.s3.ledger.credentials]
    if spec.s3.encryption is not None:
        refs += [spec.s3.encryption.customer_key, *spec.s3.encryption.previous_keys]
    found += [ref.secret for ref in refs if ref is not None]
    return sorted(set(found))


def _volumes(secrets: Sequence[str], settings: Settings, tmp: str = DRIVER_SPILL_VOLUME) -> list[Json]:
    return [
        {"name": tmp, "emptyDir": {"sizeLimit": settings.spill_size}},
        *({"name": f"secret-{at}", "secret": {"secretName": name}} for at, name in enumerate(secrets)),
    ]


def _mounts(secrets: Sequence[str], tmp: str = DRIVER_SPILL_VOLUME) -> list[Json]:
    return [
        {"name": tmp, "mountPath": TMP_DIR},
        *(
            {"name": f"secret-{at}", "mountPath": f"{SECRETS_DIR}/{name}", "readOnly": True}
            for at, name in enumerate(secrets)
        ),
    ]


def _config_mounts(sink: Sink) -> list[Json]:
    """One mount for each file: the Secrets cannot be mounted into a read-only directory, and a file with a subPath is
    not updated with the ConfigMap."""
    files = ["sink.yaml"]
    if sink.spec.executor.mode is ExecutorMode.CLUSTER:
        files += [PROPERTIES, EXECUTOR_TEMPLATE]
    return [
        {"name": "config", "mountPath": f"{CONFIG_DIR}/{file}", "subPath": file, "readOnly": True} for file in files
    ]
