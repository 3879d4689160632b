"""Compares an object with its desired manifest."""

from __future__ import annotations

from typing import Any, Final

from s3sink_operator.objects.rbac import ANNOTATIONS_HASH_ANNOTATION
from s3sink_operator.objects.spark_properties import EXECUTOR_TEMPLATE, PROPERTIES
from s3sink_operator.types import Json, annotation

CLUSTER_MODE_FILES: Final = (PROPERTIES, EXECUTOR_TEMPLATE)


def differs(current: Json | None, desired: Json) -> bool:
    """Whether an apply of `desired` would change the current object. Fields of other managers are ignored."""
    return current is None or not _covers(current, desired) or _has_obsolete_field(current, desired)


def _has_obsolete_field(current: Json, desired: Json) -> bool:
    """Whether there is a file of Cluster mode in Local mode, or an annotation of an earlier spec."""
    files, needed = current.get("data") or {}, desired.get("data") or {}
    if annotation(current, ANNOTATIONS_HASH_ANNOTATION) != annotation(desired, ANNOTATIONS_HASH_ANNOTATION):
        return True
    return any(file in files and file not in needed for file in CLUSTER_MODE_FILES)


def _covers(current: Any, desired: Any, key: str = "") -> bool:
    if isinstance(desired, dict):
        return isinstance(current, dict) and all(
            name in current and _covers(current[name], inner, name) for name, inner in desired.items()
        )
    if isinstance(desired, list):
        if not isinstance(current, list):
            return False
        if key == "ownerReferences":  # merged by uid: others may have added theirs
            return all(any(_covers(one, each) for one in current) for each in desired)
        return len(current) == len(desired) and all(map(_covers, current, desired))
    return bool(current == desired)
