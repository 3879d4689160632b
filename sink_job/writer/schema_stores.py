"""The schemas that the records of a task need: those of a registry, those of objects, and the field ids of objects.

A task reads and writes them in the ledger (`sink_job.ledger`). The stores in this module are those of one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sink_job.connect.field_ids import FieldIds, numbered
from sink_job.connect.schema import Schema, schema_id
from sink_job.converters.base import SchemaTable


class ObjectSchemaStore(Protocol):
    """The schemas of objects, by their ids (`schema_id`)."""

    def find(self, object_schema: str) -> Schema: ...
    def prefetch(self, object_schemas: Iterable[str]) -> None: ...
    def put_all(self, schemas: Iterable[Schema]) -> None: ...


class InMemoryObjectSchemas:
    """The schemas of objects of one process."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    def find(self, object_schema: str) -> Schema:
        return self.schemas[object_schema]

    def prefetch(self, object_schemas: Iterable[str]) -> None:
        pass

    def put_all(self, schemas: Iterable[Schema]) -> None:
        self.schemas |= {schema_id(each): each for each in schemas}


class FieldIdStore(Protocol):
    """The field ids of the paths of each topic. An id never changes."""

    def find(self, topic: str, paths: Sequence[str]) -> FieldIds: ...
    def add(self, topic: str, paths: Sequence[str]) -> None: ...


class InMemoryFieldIds:
    """The field ids of one process."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, int]] = {}

    def find(self, topic: str, paths: Sequence[str]) -> FieldIds:
        return self.topics[topic]

    def add(self, topic: str, paths: Sequence[str]) -> None:
        known = self.topics.setdefault(topic, {})
        known |= numbered([path for path in paths if path not in known], len(known) + 1)


@dataclass(frozen=True)
class SchemaStores:
    """`registered` has the schemas of a registry, None without one."""

    registered: SchemaTable | None = None
    objects: ObjectSchemaStore = field(default_factory=InMemoryObjectSchemas)
    field_ids: FieldIdStore = field(default_factory=InMemoryFieldIds)
