"""Strategic merge of two pod templates: lists of named items are merged by name. Pure."""

from __future__ import annotations

from typing import Any, Final

CONTAINER: Final = "s3sink"
"""Name of the sink's container in all of its pods."""
DRIVER_SPILL_VOLUME: Final = "tmp"
EXECUTOR_SPILL_VOLUME: Final = "spark-local-dir-tmp"
"""Spark uses a volume with this prefix for its local data, instead of adding one."""

LIST_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "topologySpreadConstraints": "topologyKey",
}
REPLACED_ITEMS: Final = ("volumes", "volumeMounts", "env")
"""Lists whose items have one source each: the API server rejects a merge of two of them."""


def merge(theirs: Any, ours: Any, key: str = "") -> Any:
    """`ours` with the additions of `theirs`. If both set a field, or a list without names, that of `ours` wins."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {
            **{name: inner for name, inner in theirs.items() if name not in ours},
            **{name: merge(theirs[name], inner, name) if name in theirs else inner for name, inner in ours.items()},
        }
    if isinstance(theirs, list) and isinstance(ours, list) and key in LIST_KEYS:
        return _merge_named(theirs, ours, key)
    return ours


def item_key(item: Any, by: str) -> Any:
    """The field of a list item that names it; None without one."""
    return item.get(by) if isinstance(item, dict) else None


def section(of: Any, key: str) -> dict[str, Any]:
    """A section of a template, which the CRD does not validate; empty if it is not a mapping."""
    found = of.get(key) if isinstance(of, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def is_own(container: Any) -> bool:
    """Whether this is the container `s3sink`."""
    return bool(item_key(container, "name") == CONTAINER)


def own_container(template: Any) -> dict[str, Any]:
    """The container `s3sink` of the template; empty without one."""
    containers = section(template, "spec").get("containers")
    for container in containers if isinstance(containers, list) else ():
        if is_own(container):
            return dict(container)
    return {}


def _merge_named(theirs: list[Any], ours: list[Any], key: str) -> list[Any]:
    by = LIST_KEYS[key]
    known = {item_key(each, by): each for each in theirs if isinstance(item_key(each, by), str | int)}
    if key in REPLACED_ITEMS:
        known = {}
    names = [item_key(each, by) for each in ours]
    mine = [merge(known[name], each) if _is_in(name, known) else each for name, each in zip(names, ours, strict=True)]
    return [*mine, *(each for each in theirs if item_key(each, by) not in names)]


def _is_in(name: Any, known: dict[Any, Any]) -> bool:
    return isinstance(name, str | int) and name in known
