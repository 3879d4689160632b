"""The types of the files of a ledger, as JSON schemas without names and texts: what another version has to read."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import msgspec

from sink_job.ledger import ownership, state, store
from sink_job.ledger.schemas import field_ids, object_schemas, schema_store

FILES: Final[dict[str, tuple[type, int]]] = {
    "record": (state.Record, state.FORMAT),
    "snapshot": (state.LedgerState, state.FORMAT),
    "intent": (store.Intent, state.FORMAT),
    "published log": (store.AuditEntry, state.FORMAT),
    "owner": (ownership._OwnershipFile, state.FORMAT),
    "schema": (schema_store.SchemaEntry, schema_store.FORMAT),
    "version of a schema": (schema_store.VersionEntry, schema_store.FORMAT),
    "unknown schema": (schema_store.UnknownMarker, schema_store.FORMAT),
    "object schema": (object_schemas.ObjectSchemaEntry, object_schemas.FORMAT),
    "field ids": (field_ids.FieldIdsEntry, field_ids.FORMAT),
}
"""The kinds of files, the type of each, and the number of its format."""


def fingerprints() -> dict[str, dict[str, Any]]:
    """For each kind of file the number of its format and a hash of its type."""
    return {name: {"format": number, "type": fingerprint(kind)} for name, (kind, number) in FILES.items()}


def fingerprint(kind: type) -> str:
    """A hash of the fields, types and defaults of `kind` and of all types in it. Names of classes do not matter."""
    text = json.dumps(_Types(msgspec.json.schema(kind)).without_names(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Types:
    """A JSON schema and the types that it refers to, which get numbers in place of their names."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._order: list[str] = []

    def without_names(self) -> list[Any]:
        found = [self._plain(self._schema)]
        while len(found) <= len(self._order):
            found.append(self._plain(self._schema["$defs"][self._order[len(found) - 1]]))
        return found

    def _plain(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._plain(inner) for inner in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return self._number(schema["$ref"].rpartition("/")[2])
        plain = {name: self._plain(inner) for name, inner in schema.items() if name not in ("properties", *_TEXTS)}
        fields = {name: self._plain(inner) for name, inner in schema.get("properties", {}).items()}
        return plain | ({"properties": fields} if fields else {})

    def _number(self, name: str) -> int:
        if name not in self._order:
            self._order.append(name)
        return self._order.index(name)


_TEXTS: Final = ("title", "description", "$defs")
