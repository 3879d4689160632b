"""What the object cache keeps of an object, and what that costs. Pure.

Whoever may write S3Sinks in one namespace must not use up the memory of the operator. So the manifests of a namespace
have a limit. Of a sink above it the cache keeps what its status and its deletion need, without the spec: the operator
starts nothing for it, and its driver continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from s3sink_operator.nesting import cut
from s3sink_operator.types import Json, without_managed_fields
from sink_job.api.units.quantities import format_size

MAX_NAMESPACE_BYTES: Final = 64 << 20
OMITTED: Final = "omittedSpec"
"""A field of a cached sink without its spec: the size of the whole sink and the limit of its namespace."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with a second copy of a spec, which no decision needs."""
_VALUE_BYTES: Final = 64
"""Memory of a value beside its text."""
_MAX_KEPT_TEXT: Final = 256
_MAX_KEPT_STATUS: Final = 16 << 10
_KEPT_METADATA: Final = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "finalizers",
)  # fmt: skip


def compacted(obj: Json) -> tuple[Json, int]:
    """A copy with what is cached of an object, and about how many bytes it takes. Copies share equal strings: half of
    the memory."""
    whole = _without_last_applied(without_managed_fields(obj))
    try:
        text = to_json(whole)
        copy: Json = from_json(text, cache_strings="all")
    except ValueError:  # nested too deeply
        text = to_json(cut(whole))
        copy = from_json(text, cache_strings="all")
    return copy, len(text) + _VALUE_BYTES * sum(text.count(mark) for mark in b",[{")


def without_spec(sink: Json, *, size: int, limit: int) -> Json:
    """What is cached of a sink whose namespace is above its limit."""
    meta, spec, status = sink["metadata"], sink.get("spec"), sink.get("status")
    annotations = {name: text for name, text in (meta.get("annotations") or {}).items() if _is_short(text)}
    kept = {name: meta[name] for name in _KEPT_METADATA if name in meta}
    return {
        "apiVersion": sink.get("apiVersion"),
        "kind": sink["kind"],
        "metadata": kept | {"annotations": {name: annotations[name] for name in annotations if "s3sink.io/" in name}},
        "spec": {name: value for name, value in spec.items() if _is_short(value)} if isinstance(spec, dict) else {},
        "status": _kept_status(status if isinstance(status, dict) else {}),
        OMITTED: {"size": size, "limit": limit},
    }


def omitted_size(sink: Json) -> int:
    """The size of a sink that is cached without its spec; 0 for other ones."""
    return int((sink.get(OMITTED) or {}).get("size", 0))


def omitted_message(sink: Json) -> str:
    """Why a sink is not operated, and the action to take; empty for a sink that is cached with its spec."""
    if OMITTED not in sink:
        return ""
    size, limit = (format_size(sink[OMITTED][name] >> 10 << 10) for name in ("size", "limit"))
    return (
        f"the S3Sinks of the namespace {sink['metadata'].get('namespace')} exceed the memory that the operator has for "
        f"a namespace, {limit}, so it does not read this one, which takes {size}. Delete S3Sinks, shorten them, such "
        "as by topicsPattern instead of topics, use several namespaces, or increase --namespace-memory of the operator"
    )


def _without_last_applied(obj: Json) -> Json:
    annotations = obj["metadata"].get("annotations") or {}
    if _LAST_APPLIED not in annotations:
        return obj
    kept = {name: value for name, value in annotations.items() if name != _LAST_APPLIED}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_KEPT_TEXT


def _kept_status(status: Mapping[str, Any]) -> Json:
    """The status without its progress, of which each topic takes a part."""
    kept = {name: value for name, value in status.items() if name != "progress"}
    return kept if len(to_json(kept)) <= _MAX_KEPT_STATUS else {}
