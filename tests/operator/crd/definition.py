"""The CustomResourceDefinition as the models make it, and what tests read of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from s3sink_operator import crd
from s3sink_operator.crd.schema import fields

ROOT = Path(__file__).parents[3]
FILE = ROOT / crd.FILE
MADE = crd.crd()
VERSION = MADE["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
FIELDS = [(path, field) for path, field in fields(SCHEMA) if path != "metadata"]


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema in a schema, itself first."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for below in ("items", "additionalProperties"):
        if isinstance(schema.get(below), dict):
            yield from nodes(schema[below])


def rules() -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Every rule of the schema, with the node that it belongs to."""
    for node in nodes(SCHEMA):
        for rule in node.get("x-kubernetes-validations", ()):
            yield node, rule
