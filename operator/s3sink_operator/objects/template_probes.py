"""The pods by which the API server checks the pod templates of a spec: created as a dry run, never stored.

A probe with `strict` is the template as the user wrote it, so that the API server names unknown fields. The other one
is the pod that the operator or Spark would create, without references to objects that may not exist yet: the service
account, and the owner of an executor. The owner of the driver is the sink, which exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from s3sink_operator.objects.pod_template import CONTAINER, is_own
from s3sink_operator.objects.pods import PodShape, driver_pod, executor_template
from s3sink_operator.types import Json, Settings
from sink_job.api.enums import ExecutorMode
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import GI


@dataclass(frozen=True, kw_only=True)
class TemplateProbe:
    """A pod to create as a dry run. `field`: the template that it checks."""

    field: str
    pod: Json
    strict: bool


def template_probes(sink: Sink, owner: Json, settings: Settings) -> list[TemplateProbe]:
    """The probes of the pod templates that the spec has; none for a spec without templates. `owner`: the reference to
    the sink."""
    found: list[TemplateProbe] = []
    driver, executor = sink.spec.driver.pod_template, sink.spec.executor.pod_template
    if driver is not None:
        shape = PodShape(attempt=1, memory=GI, spec_hash="")
        found += _probes("spec.driver.podTemplate", sink, driver, driver_pod(sink, owner, settings, shape))
    if executor is not None and sink.spec.executor.mode is ExecutorMode.CLUSTER:
        pod = executor_template(sink, settings, attempt=1)
        pod["spec"]["restartPolicy"] = "Never"
        for container in pod["spec"]["containers"]:
            if is_own(container):
                container.setdefault("image", sink.spec.image or settings.image)
        found += _probes("spec.executor.podTemplate", sink, executor, pod)
    return found


def _probes(field: str, sink: Sink, template: Json, merged: Json) -> list[TemplateProbe]:
    merged["spec"].pop("serviceAccountName", None)
    written = {"apiVersion": "v1", "kind": "Pod", **template}
    spec = written.setdefault("spec", {})
    if isinstance(spec, dict) and not spec.get("containers"):
        written["spec"] = {**spec, "containers": [{"name": CONTAINER, "image": _image_of(merged)}]}
    return [
        TemplateProbe(field=field, pod=_named(written, sink), strict=True),
        TemplateProbe(field=field, pod=_named(merged, sink), strict=False),
    ]


def _image_of(pod: Json) -> str:
    """The image of the first container."""
    return str(pod["spec"]["containers"][0]["image"])


def _named(pod: Json, sink: Sink) -> Json:
    """The pod with a generated name: a name of its own cannot exist already."""
    metadata: Any = pod.get("metadata") or {}
    if isinstance(metadata, dict):
        kept = {key: value for key, value in metadata.items() if key != "name"}
        metadata = {**kept, "generateName": f"{sink.name}-s3sink-check-", "namespace": sink.namespace}
    return {**pod, "metadata": metadata}
