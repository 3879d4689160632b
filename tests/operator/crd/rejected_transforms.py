"""Lists of transforms that the API server itself has to reject, with what its sentence says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_COMPLETE: dict[str, dict[str, Any]] = {
    "Insert": {"field": "a", "source": "Topic"},
    "Keep": {"fields": ["a"]},
    "Drop": {"fields": ["a"]},
    "Rename": {"renames": {"a": "b"}},
    "Mask": {"fields": ["a"]},
    "Cast": {"castTo": "Text"},
    "Flatten": {},
    "Extract": {"field": "a"},
    "Hoist": {"field": "a"},
    "Timestamp": {"timestampType": "UnixTime"},
    "Filter": {"when": {"header": "h"}},
}


def rejected_transforms() -> Iterator[tuple[str, dict[str, object], str]]:
    """A name, the changes to a manifest, and words of the sentence."""
    for kind, fields in _COMPLETE.items():
        if fields and kind != "Cast":
            yield (
                f"{kind} without its fields",
                _list({"type": kind}),
                "spec.transforms lacks a field that its type needs",
            )
    cast = "spec.transforms has a transform Cast with both or none of casts and castTo: set one of them"
    yield "no type", _list({"type": "Cast"}), cast
    yield "two types", _list({"type": "Cast", "castTo": "Text", "casts": {"a": "Text"}}), cast
    said = "spec.transforms has a when without a condition: set topic, header, tombstone or field"
    yield "no condition", _list({"type": "Filter", "when": {"not": True}}), said
    flatten = _list({"type": "Flatten"})
    said = "spec.transforms but Filter without field read JSON or values with a schema: use such a"
    for name in ({"converter": "Text"}, {"output": "Bytes"}):
        yield f"transforms with {name}", {**flatten, "spec.format": name}, said


def _list(transform: dict[str, Any]) -> dict[str, object]:
    return {"spec.transforms": [transform]}
