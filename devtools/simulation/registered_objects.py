"""What the oracle knows of objects with records of a registry: the values under the schema of their first record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devtools.bucket_listing import decompressed
from devtools.simulation import containers, registry
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.schemas.schema_store import schema_key, schemas_root


@dataclass(frozen=True)
class Source:
    """A record in Kafka: its position, its timestamp, and the value of its field `kind`."""

    tp: TopicPartition
    offset: int
    time: int
    kind: str


class RegisteredObjects:
    """Compares objects with their records. Does not use the product's converters or projection."""

    def __init__(self) -> None:
        self.copies: set[str] = set()
        """The keys of the copies of schemas in the ledger."""
        self.root = ""
        """The ledger's prefix."""
        self._records: dict[str, tuple[Source, int, dict[str, Any]]] = {}

    def produced(self, source: Source, version: int, value: dict[str, Any]) -> None:
        """Takes a record; its field `at` is unique."""
        self._records[value["at"]] = source, version, value

    def put(self, key: str) -> None:
        """Takes the key of a file of the ledger."""
        if "/schemas/" in key and key.endswith(".json"):
            self.copies.add(key)
            self.root = self.root or f"{key.partition('/schemas/')[0].partition('/generation=')[0]}/"

    def is_copied(self, generation: int, topic: str, schema_id: str) -> bool:
        """Whether the ledger has a copy of the schema in this generation."""
        return schema_key(schemas_root(self.root, generation), topic, schema_id) in self.copies

    def sources(self, key: str, body: bytes) -> Sequence[Source]:
        """The records of an object. Raises ValueError if it has another line or row."""
        return [self._records[row["at"]][0] for row in self._rows(key, body)]

    def difference(self, key: str, body: bytes, settings: str, generation: int) -> str | None:
        """What is wrong with an object whose records are `sources`; None if nothing is."""
        mode = ObjectSettings.model_validate_json(settings).schema_compatibility.value
        rows = self._rows(key, body)
        _, first, _ = self._records[rows[0]["at"]]
        for row in rows:
            source, version, value = self._records[row["at"]]
            where = f"offset {source.offset} of {source.tp} (version {version}) in an object of version {first}"
            if not self.is_copied(generation, source.tp.topic, str(registry.FIRST_ID + version)):
                return f"{where}: the ledger has no copy of its schema"
            reason = registry.contradiction(mode, first, version)
            if reason is not None:
                return f"{where}, {mode}: {reason}"
            expected = registry.projected(value, version, first)
            if containers.canonical(row) != containers.canonical(expected):
                return f"{where}: it is {row}, and not {expected}"
        return None

    def _rows(self, key: str, body: bytes) -> list[dict[str, Any]]:
        if containers.is_container(key):
            texts = containers.values(key, body)
        else:
            *texts, rest = decompressed(body, key).decode().split("\n")
            if rest:
                raise ValueError("it does not end with a whole line")
        rows = [json.loads(text) for text in texts]
        if not rows or any(row["at"] not in self._records for row in rows):
            raise ValueError(f"it has no record, or other records: {texts}")
        return rows
