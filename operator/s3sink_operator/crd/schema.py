"""From the models' JSON schema to the structural schema that Kubernetes asks for.

References are put in their places, what only documents need is left out, and the bounds of sizes and durations, which
a schema cannot compare, become rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from s3sink_operator.crd.rules import CelRule, bound

Json = dict[str, Any]

_LISTS: Final[dict[str, Json]] = {
    "spec.kafka.topics": {"x-kubernetes-list-type": "set"},
    "spec.kafka.propertySecrets": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    "spec.offsets.reset.partitions": {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["topic", "partition"],
    },
}
"""Lists whose items have a name: none may come twice. The order of all others has a meaning, or none depends on it."""

_FOR_DOCUMENTS: Final = ("title", "examples", "x-s3sink-type", "x-s3sink-connector-key", "additionalProperties")
_BOUNDS: Final = ("x-s3sink-minimum", "x-s3sink-maximum")


def structural(schema: Json, model: str) -> Json:
    """The structural schema of `model`, one of the definitions in `schema`, as it stands under the path `spec`."""
    return _node({"$ref": f"#/$defs/{model}"}, schema["$defs"], "spec", in_list=False)


def _node(written: Json, models: dict[str, Json], path: str, *, in_list: bool) -> Json:
    meant = models[written["$ref"].rsplit("/", 1)[1]] if "$ref" in written else {}
    both = {name: value for name, value in (meant | written).items() if name != "$ref"}
    made = {name: value for name, value in both.items() if name not in (*_FOR_DOCUMENTS, *_BOUNDS)}
    if in_list:  # a default there is a difference that Argo CD sees for ever
        made.pop("default", None)
    if made.get("type") == "integer":
        made["format"] = "int64"
    if isinstance(both.get("additionalProperties"), dict):
        made["additionalProperties"] = both["additionalProperties"]
    if "properties" in both:
        made["properties"] = {
            name: _node(inner, models, f"{path}.{name}", in_list=in_list) for name, inner in both["properties"].items()
        }
    if made.get("default") == {}:  # written out, for it has to pass the rules at its place before its fields are filled
        made["default"] = {name: at["default"] for name, at in made["properties"].items() if "default" in at}
    if "items" in both:
        made |= {"items": _node(both["items"], models, f"{path}[]", in_list=True)} | _LISTS.get(path, {})
    rules = list(_bounds(both, path))
    if rules:
        made["x-kubernetes-validations"] = [rule.manifest() for rule in rules]
    return made


def _bounds(schema: Json, path: str) -> Iterator[CelRule]:
    for name in _BOUNDS:
        if schema.get(name) not in (None, "0", "0s"):
            yield bound(schema["x-s3sink-type"], path, name.rsplit("-", 1)[1], schema[name])


def attach(schema: Json, rules: tuple[CelRule, ...]) -> None:
    """Puts each rule at its place in `schema`, that of the whole object. KeyError where there is no such place."""
    for rule in rules:
        place = schema
        for step in filter(None, rule.path.split(".")):
            place = place["properties"][step]
        place.setdefault("x-kubernetes-validations", []).append(rule.manifest())


def fields(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every field below `schema` with its path (`spec.kafka.propertySecrets[].name`), outer ones before inner ones."""
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, inner
        yield from fields(inner, here)
