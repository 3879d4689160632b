"""Merges the pod template of the user into a pod, as a strategic merge: lists of named items are merged by name.

Additions of the user are kept. If both set a field, that of the operator wins, except for its defaults: grace period,
security contexts, image pull policy, the volume for spilled data, and all resources but memory.
"""

from __future__ import annotations

from typing import Any, Final

from s3sink_operator.config.template_merge import (
    CONTAINER,
    DRIVER_SPILL_VOLUME,
    EXECUTOR_SPILL_VOLUME,
    is_own,
    item_key,
    merge,
    own_container,
    section,
)
from s3sink_operator.types import Json

__all__ = [
    "CONTAINER",
    "DRIVER_SPILL_VOLUME",
    "EXECUTOR_SPILL_VOLUME",
    "is_own",
    "merge_template",
    "own_container",
    "requested_cpu",
    "without_memory",
]

_SPILL_VOLUMES: Final = (DRIVER_SPILL_VOLUME, EXECUTOR_SPILL_VOLUME)
_POD_DEFAULTS: Final = ("terminationGracePeriodSeconds", "securityContext")
_CONTAINER_DEFAULTS: Final = ("imagePullPolicy", "securityContext")


def merge_template(template: Json | None, ours: Json) -> Json:
    """The pod `ours` with the labels, annotations and spec fields of `template`."""
    metadata = section(template, "metadata")
    added = {key: found for key in ("labels", "annotations") if (found := section(metadata, key))}
    theirs = section(template, "spec")
    result = merge({"metadata": added, "spec": theirs}, ours)
    assert isinstance(result, dict)
    _override_defaults(theirs, result["spec"])
    return result


def requested_cpu(template: Json | None) -> str | None:
    """The CPU request of the container `s3sink` in the template, or else its limit, as Kubernetes defaults it."""
    resources = section(own_container(template), "resources")
    for kind in ("requests", "limits"):
        cpu = section(resources, kind).get("cpu")
        if cpu is not None:
            return str(cpu)
    return None


def without_memory(container: Json) -> Json:
    """The container with all resources of the template but memory, which the operator or Spark sets."""
    resources = {
        kind: {name: value for name, value in found.items() if name != "memory"} if isinstance(found, dict) else found
        for kind, found in section(container, "resources").items()
    }
    return container | {"resources": resources} if resources else container


def _override_defaults(theirs: Json, spec: Json) -> None:
    """Replaces in `spec`, the merged one, the defaults that the template sets too."""
    _replace_fields(theirs, spec, _POD_DEFAULTS)
    for container in spec["containers"]:
        if is_own(container):
            _replace_fields(own_container({"spec": theirs}), container, _CONTAINER_DEFAULTS)
    own = _named(theirs.get("volumes"), _SPILL_VOLUMES)
    spec["volumes"] = [own.get(_text(each), each) for each in spec["volumes"]]


def _replace_fields(theirs: Json, ours: Json, fields: tuple[str, ...]) -> None:
    for name in fields:
        if name in theirs and name in ours:
            ours[name] = _override(theirs[name], ours[name])


def _override(theirs: Any, ours: Any) -> Any:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {**ours, **{name: _override(inner, ours.get(name)) for name, inner in theirs.items()}}
    return theirs


def _named(items: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The items of a list with one of these names."""
    found = items if isinstance(items, list) else ()
    return {name: each for each in found if (name := _text(each)) in names}


def _text(item: Any) -> str:
    """The name of a list item; empty without one."""
    name = item_key(item, "name")
    return name if isinstance(name, str) else ""
