"""Merges the pod template of the user into a pod, as a strategic merge: lists of named items are merged by name.

If both set a field, that of the operator wins. Additions of the user are kept.
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


def merge_template(template: Json | None, ours: Json) -> Json:
    """The pod `ours` with the labels, annotations and spec fields that `template` adds."""
    metadata = _section(template, "metadata")
    added = {key: found for key in ("labels", "annotations") if (found := _section(metadata, key))}
    kept = {"metadata": added, "spec": _section(template, "spec")}
    result = _merge(kept, ours)
    assert isinstance(result, dict)
    return result


def requested_cpu(template: Json | None) -> str | None:
    """The CPU request of the container `s3sink` in the template: the only resource that the user sets."""
    containers = _section(template, "spec").get("containers")
    for container in containers if isinstance(containers, list) else ():
        if isinstance(container, dict) and container.get("name") == CONTAINER:
            cpu = _section(_section(container, "resources"), "requests").get("cpu")
            return None if cpu is None else str(cpu)
    return None


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
