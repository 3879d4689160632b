"""Merges the user's pod template under ours, as a strategic merge does: lists of named things by their names.

Where both say something, ours stands: the sink depends on it. What the user adds stays.
"""

from __future__ import annotations

from typing import Any, Final

from s3sink_operator.types import Json

CONTAINER: Final = "s3sink"
"""The sink's own container in all of its pods."""

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
"""Lists of things that have one source each: two merged into one are refused by the API server."""


def merge_template(template: Json | None, ours: Json) -> Json:
    """The pod `ours`, with what `template` adds to its metadata (labels, annotations) and spec."""
    metadata = _section(template, "metadata")
    added = {key: found for key in ("labels", "annotations") if (found := _section(metadata, key))}
    kept = {"metadata": added, "spec": _section(template, "spec")}
    result = _merge(kept, ours)
    assert isinstance(result, dict)
    return result


def requested_cpu(template: Json | None) -> str | None:
    """The CPU that the template's container `s3sink` requests: the one resource that is the user's to choose."""
    containers = _section(template, "spec").get("containers")
    for container in containers if isinstance(containers, list) else ():
        if isinstance(container, dict) and container.get("name") == CONTAINER:
            asked = _section(_section(container, "resources"), "requests").get("cpu")
            return None if asked is None else str(asked)
    return None


def _section(of: Any, key: str) -> Json:
    """A template is free text to the CRD: what is no mapping where there should be one says nothing."""
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
