"""Deliberate defects of schemas of a registry, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from sink_job.connect import compatibility
from sink_job.ledger.schemas import schema_store
from sink_job.ledger.schemas.schema_store import SchemaEntry, SchemaStore
from sink_job.ledger.schemas.schema_table import LedgerSchemas
from sink_job.writer import row_selection
from sink_job.writer.row_slices import RowSelection

Patches = Sequence[AbstractContextManager[Any]]


def schema_change_closes_nothing() -> Patches:
    """In the modes that project, a record with another schema than the open object's does not close it."""
    return [patch.object(compatibility, "closes", lambda *given: False)]


def rebuilt_by_the_wrong_schema() -> Patches:
    """A rebuild writes projected records under their own schema."""
    return [patch.object(row_selection, "RowSelection", lambda schema, rows: RowSelection(None, rows))]


def schema_not_copied() -> Patches:
    """A schema is decoded with, but the ledger has no copy of it."""

    def put(self: SchemaStore, key: str, entry: SchemaEntry) -> SchemaEntry:
        LedgerSchemas._caches.setdefault(self._s3, {})[key] = entry.schema
        return entry

    return [patch.object(SchemaStore, "_put", put)]


def changed_schema_accepted() -> Patches:
    """Another schema of the registry for an id that the ledger knows is not reported."""
    return [patch.object(schema_store, "is_same_schema", lambda one, other: True)]


def changed_version_accepted() -> Patches:
    """Another version of the registry for an id that the ledger knows is not reported."""
    return [patch.object(SchemaStore, "_report_version", lambda self, *given, **named: None)]


REGISTRY_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        schema_change_closes_nothing,
        rebuilt_by_the_wrong_schema,
        schema_not_copied,
        changed_schema_accepted,
        changed_version_accepted,
    )
}

REGISTRY_INCLUDE = {
    **dict.fromkeys(("schema_change_closes_nothing", "schema_not_copied"), ("registry",)),
    "rebuilt_by_the_wrong_schema": ("registry", "lost-uploads"),
    **dict.fromkeys(("changed_schema_accepted", "changed_version_accepted"), ("registry", "lying-registry")),
}
"""The features that a run needs to find a defect."""
