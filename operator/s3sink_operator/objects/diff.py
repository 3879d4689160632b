"""Whether an object is as the operator would write it."""

from __future__ import annotations

from typing import Any, Final

from s3sink_operator.objects.rbac import ANNOTATIONS_HASH_ANNOTATION
from s3sink_operator.objects.spark_properties import EXECUTOR_TEMPLATE, PROPERTIES
from s3sink_operator.types import Json, annotation

CLUSTER_MODE_FILES: Final = (PROPERTIES, EXECUTOR_TEMPLATE)


def differs(seen: Json | None, wanted: Json) -> bool:
    """Whether an apply of `wanted` would change what was seen. What others have added does not count."""
    return seen is None or not _covers(seen, wanted) or _has_leftover(seen, wanted)


def _has_leftover(seen: Json, wanted: Json) -> bool:
    """Whether a file is there that only sinks with executors of their own have, or annotations of an earlier spec."""
    there, needed = seen.get("data") or {}, wanted.get("data") or {}
    if annotation(seen, ANNOTATIONS_HASH_ANNOTATION) != annotation(wanted, ANNOTATIONS_HASH_ANNOTATION):
        return True
    return any(file in there and file not in needed for file in CLUSTER_MODE_FILES)


def _covers(seen: Any, wanted: Any, key: str = "") -> bool:
    if isinstance(wanted, dict):
        return isinstance(seen, dict) and all(
            name in seen and _covers(seen[name], inner, name) for name, inner in wanted.items()
        )
    if isinstance(wanted, list):
        if not isinstance(seen, list):
            return False
        if key == "ownerReferences":  # merged by uid: others may have added theirs
            return all(any(_covers(one, each) for one in seen) for each in wanted)
        return len(seen) == len(wanted) and all(map(_covers, seen, wanted))
    return bool(seen == wanted)
