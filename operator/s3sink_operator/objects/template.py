"""Merges the user's pod template under ours, as a strategic merge does: lists of named things by their names.

Where both say something, ours stands: the sink depends on it. What the user adds stays.
"""

from __future__ import annotations

from typing import Any, Final

from s3sink_operator.model import Json

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


def merged(template: Json | None, ours: Json) -> Json:
    """The pod `ours`, with what `template` adds to its metadata (labels, annotations) and spec."""
    template = template or {}
    metadata = template.get("metadata") or {}
    added = {key: dict(metadata[key]) for key in ("labels", "annotations") if metadata.get(key)}
    kept = {"metadata": added, "spec": template.get("spec") or {}}
    result = _merge(kept, ours)
    assert isinstance(result, dict)
    return result


def _merge(theirs: Any, ours: Any, key: str = "") -> Any:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {
            **{name: inner for name, inner in theirs.items() if name not in ours},
            **{name: _merge(theirs[name], inner, name) if name in theirs else inner for name, inner in ours.items()},
        }
    if isinstance(theirs, list) and isinstance(ours, list) and key in _KEYS:
        return _merge_named(theirs, ours, _KEYS[key])
    return ours


def _merge_named(theirs: list[Any], ours: list[Any], by: str) -> list[Any]:
    known = {_key(each, by): each for each in theirs}
    mine = [_merge(known[each[by]], each) if each[by] in known else each for each in ours]
    taken = {each[by] for each in ours}
    return [*mine, *(each for each in theirs if _key(each, by) not in taken)]


def _key(each: Any, by: str) -> Any:
    return each.get(by) if isinstance(each, dict) else None
