"""JSON schemas for kubeconform, made from what a running API server publishes: nothing is fetched, and CRDs count too.

Unknown fields are rejected, as by `kubectl apply --validate=strict`; what an API server knows beyond its schemas (CEL,
admission) is not checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from devtools.kube.client import Json, Kube

LOCATION: Final = "{{.ResourceKind}}{{.KindSuffix}}.json"
"""How kubeconform finds a schema in the folder."""
_REF: Final = "#/components/schemas/"


def write_schemas(kube: Kube, folder: Path) -> str:
    """Writes a file for each kind into `folder`; returns what `kubeconform -schema-location` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in groups(kube):
        if path.startswith(("api/", "apis/")):
            document = _read(kube, f"/openapi/v3/{path}")
            for name, schema in of_kinds(document.get("components", {}).get("schemas", {})):
                (folder / name).write_text(json.dumps(schema))
    return f"{folder}/{LOCATION}"


def groups(kube: Kube) -> list[str]:
    """What there are schemas for, such as `apis/apps/v1`; a CRD's are there a moment after it is served."""
    return sorted(_read(kube, "/openapi/v3")["paths"])


def _read(kube: Kube, path: str) -> Json:
    """The list of groups comes as JSON that calls itself plain text."""
    found = kube.request("GET", path)
    return dict(json.loads(found["message"])) if found.keys() == {"message"} else found


def of_kinds(schemas: Json) -> Iterator[tuple[str, Json]]:
    """The file's name and the schema of each kind among the `components.schemas` of an OpenAPI document."""
    for name, schema in schemas.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            parts = [kind["kind"], *([kind["group"].split(".")[0]] if kind["group"] else []), kind["version"]]
            needed = {each: _strict(schemas[each]) for each in _reached(schemas, name)}
            yield "-".join(parts).lower() + ".json", {"$ref": f"#/definitions/{name}", "definitions": needed}


def _reached(schemas: Json, name: str) -> set[str]:
    """The schema of this name and all that it refers to."""
    found, left = set[str](), [name]
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += _references(schemas[each])
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield inner.removeprefix(_REF)
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _strict(value: Any) -> Any:
    """The schema with references into `definitions`, and without room for fields that it does not name."""
    if isinstance(value, list):
        return [_strict(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    made = {key: _strict(inner) for key, inner in value.items()}
    if isinstance(reference := made.get("$ref"), str):
        made["$ref"] = reference.replace(_REF, "#/definitions/")
    if isinstance(made.get("properties"), dict) and made.get("type") == "object" and not _is_open(made):
        made["additionalProperties"] = False
    return made


def _is_open(schema: Json) -> bool:
    return "additionalProperties" in schema or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
