"""The objects beside the pods, and the manifest that the job reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import yaml

from s3sink_operator import names
from s3sink_operator.objects.allocation import ALLOCATION, allocation_of
from s3sink_operator.objects.pods import executor_template
from s3sink_operator.objects.rbac import child_object, role_binding, service_account
from s3sink_operator.objects.spark_properties import EXECUTOR_TEMPLATE, PROPERTIES, properties_file, spark_properties
from s3sink_operator.types import Json, Settings
from sink_job.api.enums import ExecutorMode
from sink_job.api.spec import GROUP, KIND, VERSION, Sink

_OPERATOR_FIELDS: Final = (
    "state", "restartNonce", "offsets", "deletionPolicy", "executor", "driver", "image", "imagePullSecrets",
    "serviceAccount",
)  # fmt: skip
_FIELDS_WITHOUT_RESTART: Final = ("state", "offsets", "deletionPolicy")
_EXECUTOR_FIELDS_WITHOUT_RESTART: Final = ("instances", "memory", "scaling")


def job_manifest(sink: Sink) -> Json:
    """The manifest that the job reads, without fields of the operator and without defaults."""
    spec = _spec(sink)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": sink.name, "namespace": sink.namespace},
        "spec": {key: inner for key, inner in spec.items() if key not in _OPERATOR_FIELDS},
    }


def spec_hash(sink: Sink, settings: Settings) -> str:
    """A digest of the settings that a driver is started with. Different spellings of a value have the same digest."""
    return _digest(_started_with(sink) | {"image": sink.spec.image or settings.image})


def source_hash(sink: Sink) -> str:
    """A digest of the part of these settings that is in the spec of the sink, not in the operator's."""
    return _digest(_started_with(sink))


def template_hash(settings: Settings) -> str:
    """A digest of what the operator adds to every sink. While it is unchanged, a rollout is the same rollout."""
    defaults = settings.sink_defaults.document()
    return _digest({"image": settings.image, "version": settings.version, "defaults": defaults})


def _started_with(sink: Sink) -> Json:
    spec = {key: inner for key, inner in _spec(sink).items() if key not in _FIELDS_WITHOUT_RESTART}
    executor = {k: inner for k, inner in spec.pop("executor", {}).items() if k not in _EXECUTOR_FIELDS_WITHOUT_RESTART}
    if executor:
        spec["executor"] = executor
    return {"id": [sink.namespace, sink.name], "spec": spec}


def _digest(document: Json) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def config_map(
    sink: Sink,
    owner: Json,
    settings: Settings,
    *,
    attempt: int,
    memory: int,
    executors: int | None = None,
    bounds: str | None = None,
    by_defaults: bool = False,
) -> Json:
    """The ConfigMap with the input of the job. In Cluster mode also the Spark properties of this attempt. `executors`,
    `bounds` and `by_defaults`: see `allocation_of`."""
    data = {
        "sink.yaml": _yaml(job_manifest(sink)),
        ALLOCATION: allocation_of(
            sink, memory=memory, executors=executors, bounds=bounds, by_defaults=by_defaults
        ).text(),
    }
    if sink.spec.executor.mode is ExecutorMode.CLUSTER:
        data[PROPERTIES] = properties_file(
            spark_properties(sink, settings, attempt=attempt, memory=memory, executors=executors)
        )
        template = executor_template(sink, settings, attempt=attempt)
        data[EXECUTOR_TEMPLATE] = _yaml(template)
    return child_object("v1", "ConfigMap", names.config_map_name(sink.name), sink, owner) | {"data": data}


def supporting_objects(
    sink: Sink,
    owner: Json,
    settings: Settings,
    *,
    attempt: int,
    memory: int,
    executors: int | None = None,
    bounds: str | None = None,
    by_defaults: bool = False,
) -> Sequence[Json]:
    """All objects beside the pods, in the order in which a driver requires them. In Local mode no RoleBinding: the
    driver calls no API server."""
    of_all = (
        config_map(
            sink,
            owner,
            settings,
            attempt=attempt,
            memory=memory,
            executors=executors,
            bounds=bounds,
            by_defaults=by_defaults,
        ),
        service_account(sink, owner),
    )
    if sink.spec.executor.mode is ExecutorMode.LOCAL:
        return of_all
    return (*of_all, role_binding(sink, owner, settings))


def _spec(sink: Sink) -> Json:
    document = sink.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return dict(document["spec"])


def _yaml(document: Json) -> str:
    return _yaml_of(json.dumps(document))


@lru_cache(maxsize=4096)
def _yaml_of(text: str) -> str:
    """The YAML of a JSON text. Serializing YAML takes longer than the rest of a pass, and the text rarely changes."""
    return yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True)
