"""Converts the JSON schema of the models to a structural schema of Kubernetes.

References are inlined, keywords for documents are removed, and the bounds of sizes and durations become CEL rules.
Settings that this version does not implement (`sink_job.api.rules.unsupported`) are left out: the API server rejects
their enum values by name, and reports their fields as unknown.

A field that `sinkDefaults` of the operator can set has its default in the description alone: the API server would write
a default of the schema into each sink, where it wins over the one of the operator (ADR 21).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

from s3sink_operator.crd import pod_template
from s3sink_operator.crd.cel import CelRule, bound, duration_notation
from sink_job.api.base_model import OPERATOR_DEFAULT
from sink_job.api.rules import unsupported

Json = dict[str, Any]


def _map_list(*keys: str) -> Json:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


_LISTS: Final[dict[str, Json]] = {
    "spec.kafka.topics": {"x-kubernetes-list-type": "set"},
    "spec.kafka.propertySecrets": _map_list("name"),
    "spec.errors.skip": _map_list("topic", "partition", "offset"),
    "spec.offsets.reset.partitions": _map_list("topic", "partition"),
    "status.conditions": _map_list("type"),
    "status.progress.topics": _map_list("topic"),
    "status.progress.mostLagging": _map_list("topic", "partition"),
    "status.attempts[].positions": _map_list("topic", "partition"),
    "status.offsetReset.partitions": _map_list("topic", "partition"),
}
"""Lists whose items are unique by a key. All other lists are atomic."""

SIZE: Final = "Quantity such as 64Mi, or bytes."
"""The type of a size, as its description begins: `kubectl explain` shows no type of an int-or-string (ADR 22)."""

_FOR_DOCUMENTS: Final = ("title", "examples", "x-s3sink-type", "x-s3sink-connector-key", "additionalProperties")
_BOUNDS: Final = ("x-s3sink-minimum", "x-s3sink-maximum")


def structural(schema: Json, *, path: str, model: str | None = None) -> Json:
    """The structural schema at `path`: of the root of `schema`, or of `model`, one of its definitions."""
    definitions = schema.get("$defs", {})
    written = {"$ref": f"#/$defs/{model}"} if model else {key: at for key, at in schema.items() if key != "$defs"}
    return _node(written, definitions, path, in_list=False)


def _node(written: Json, models: dict[str, Json], path: str, *, in_list: bool) -> Json:
    meant = models[written["$ref"].rsplit("/", 1)[1]] if "$ref" in written else {}
    both = {name: value for name, value in (meant | written).items() if name != "$ref"}
    made = {name: value for name, value in both.items() if name not in (*_FOR_DOCUMENTS, *_BOUNDS)}
    if made.get("x-kubernetes-int-or-string"):
        made["description"] = f"{SIZE} {made['description']}"
    if made.pop(OPERATOR_DEFAULT, False):
        made["description"] += f" Default: {_as_text(made.pop('default'))}, or that of the operator."
    if in_list:  # Argo CD would report a default in a list item as a permanent difference
        made.pop("default", None)
    if made.get("type") == "integer":
        made["format"] = "int64"
    if isinstance(both.get("additionalProperties"), dict):
        made["additionalProperties"] = _node(both["additionalProperties"], models, f"{path}{{}}", in_list=True)
    if "enum" in made:
        made["enum"] = [value for value in made["enum"] if value in _values(path, made["enum"])]
    if "properties" in both:
        made["properties"] = {
            name: _node(inner, models, f"{path}.{name}", in_list=in_list)
            for name, inner in both["properties"].items()
            if is_supported(f"{path}.{name}")
        }
    if made.get("default") == {}:  # written out: it is validated by the rules before the API server fills its fields
        made["default"] = {name: at["default"] for name, at in made["properties"].items() if "default" in at}
    if "items" in both:
        item = _node(both["items"], models, f"{path}[]", in_list=True)
        item.pop("description", None)  # that of the list explains it
        made |= {"items": item} | _LISTS.get(path, {})
    if path in pod_template.PATHS:
        made["properties"] = pod_template.SCHEMA
    rules = list(_quantity_rules(both, path))
    if both.get("x-s3sink-type") == "duration":
        made = {name: value for name, value in made.items() if name not in ("pattern", "minLength")}
    if rules:
        made["x-kubernetes-validations"] = [rule.manifest() for rule in rules]
    return made


def _as_text(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default)


def is_supported(path: str) -> bool:
    """Whether this version implements more than one value of the field at `path`."""
    steps = tuple(path.split("."))
    return steps not in unsupported.ABSENT and len(unsupported.CHOICES.get(steps, (0, 0))) > 1


def _values(path: str, values: list[str]) -> Collection[str]:
    """The values of an enum that this version implements."""
    return unsupported.CHOICES.get(tuple(path.split(".")), values)


def _quantity_rules(schema: Json, path: str) -> Iterator[CelRule]:
    """The bounds of a size or duration, and the notation of a duration."""
    if schema.get("x-s3sink-type") == "duration":
        yield duration_notation(path)
    for name in _BOUNDS:
        if schema.get(name) not in (None, "0", "0s"):
            yield bound(schema["x-s3sink-type"], path, name.rsplit("-", 1)[1], schema[name])


def attach(schema: Json, rules: tuple[CelRule, ...]) -> None:
    """Adds each rule to `schema`, that of the whole object. Raises KeyError for an unknown path."""
    for rule in rules:
        place = schema
        for step in filter(None, rule.path.split(".")):
            place = place["properties"][step]
        place.setdefault("x-kubernetes-validations", []).append(rule.manifest())


def fields(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every field of `schema` with its path (`spec.kafka.propertySecrets[].name`), outer fields first.

    The fields of a pod template are those of Kubernetes, and left out.
    """
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, inner
        yield from fields(inner, here)
