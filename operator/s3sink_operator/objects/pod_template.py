"""Merges the pod template of the user into a pod, as a strategic merge: lists of named items are merged by name.

Additions of the user are kept. If both set a field, that of the operator wins, except for its defaults: grace period,
security contexts, image pull policy, the volume for spilled data, and all resources but memory.
"""

from __future__ import annotations

from typing import Any, Final

from s3sink_operator.types import Json

CONTAINER: Final = "s3sink"
"""Name of the sink's container in all of its pods."""

_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "topologySpreadConstraints": "topologyKey",
}
_REPLACED: Final = ("volumes", "volumeMounts", "env")
"""Lists whose items have one source each: the API server rejects a merge of two of them."""

DRIVER_SPILL_VOLUME: Final = "tmp"
EXECUTOR_SPILL_VOLUME: Final = "spark-local-dir-tmp"
"""Spark uses a volume with this prefix for its local data, instead of adding one."""
_SPILL_VOLUMES: Final = (DRIVER_SPILL_VOLUME, EXECUTOR_SPILL_VOLUME)
_POD_DEFAULTS: Final = ("terminationGracePeriodSeconds", "securityContext")
_CONTAINER_DEFAULTS: Final = ("imagePullPolicy", "securityContext")


def merge_template(template: Json | None, ours: Json) -> Json:
    """The pod `ours` with the labels, annotations and spec fields of `template`."""
    metadata = _section(template, "metadata")
    added = {key: found for key in ("labels", "annotations") if (found := _section(metadata, key))}
    theirs = _section(template, "spec")
    result = _merge({"metadata": added, "spec": theirs}, ours)
    assert isinstance(result, dict)
    _override_defaults(theirs, result["spec"])
    return result


def requested_cpu(template: Json | None) -> str | None:
    """The CPU request of the container `s3sink` in the template, or else its limit, as Kubernetes defaults it."""
    resources = _section(own_container(template), "resources")
    for kind in ("requests", "limits"):
        cpu = _section(resources, kind).get("cpu")
        if cpu is not None:
            return str(cpu)
    return None


def is_own(container: Any) -> bool:
    """Whether this is the container `s3sink`."""
    return bool(_key(container, "name") == CONTAINER)


def own_container(template: Json | None) -> Json:
    """The container `s3sink` of the template; empty without one."""
    containers = _section(template, "spec").get("containers")
    for container in containers if isinstance(containers, list) else ():
        if is_own(container):
            return dict(container)
    return {}


def without_memory(container: Json) -> Json:
    """The container with all resources of the template but memory, which the operator or Spark sets."""
    resources = {
        kind: {name: value for name, value in found.items() if name != "memory"} if isinstance(found, dict) else found
        for kind, found in _section(container, "resources").items()
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
    name = _key(item, "name")
    return name if isinstance(name, str) else ""


def _section(of: Any, key: str) -> Json:
    """A section of a template, which the CRD does not validate; empty if it is not a mapping."""
    found = of.get(key) if isinstance(of, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _merge(theirs: Any, ours: Any, key: str = "") -> Any:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {
            **{name: inner for name, inner in theirs.items() if name not in ours},
            **{name: _merge(theirs[name], inner, name) if name in theirs else inner for name, inner in ours.items()},
        }
    if isinstance(theirs, list) and isinstance(ours, list) and key in _KEYS:
        return _merge_named(theirs, ours, key)
    return ours


def _merge_named(theirs: list[Any], ours: list[Any], key: str) -> list[Any]:
    by = _KEYS[key]
    known = {_key(each, by): each for each in theirs if isinstance(_key(each, by), str | int)}
    if key in _REPLACED:
        known = {}
    mine = [_merge(known[each[by]], each) if each[by] in known else each for each in ours]
    taken = [each[by] for each in ours]
    return [*mine, *(each for each in theirs if _key(each, by) not in taken)]


def _key(each: Any, by: str) -> Any:
    return each.get(by) if isinstance(each, dict) else None
