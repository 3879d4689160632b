"""The schemas of a ledger as its workers read them (`sink_job.ledger.schemas.schema_store` describes the files).

A worker reads what its records need: the copies of their ids, in parallel. Most ids have neither a marker nor a version
of their own, so from a few ids on the folder is listed, and only the files that exist are read. A listing decides
about markers and versions alone: both are written before the records that need them are read, and a table is that of
one task. Whether there is a copy is decided by reading it.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.ledger import files
from sink_job.ledger.schemas.schema_store import (
    FORMAT,
    SchemaEntry,
    UnknownMarker,
    VersionEntry,
    lacks_version,
    schema_key,
    schemas_folder,
    unknown_key,
    version_key,
    with_version,
)
from sink_job.s3 import S3Client


@dataclass(frozen=True)
class KnownSchemas:
    """The schema ids that a driver process has resolved, for the tasks of a round. Picklable.

    `resolved`: ids whose schemas are in the ledger, by topic. `unknown`: ids that the registry does not know, with the
    reason for the rejection of their records, by topic.
    """

    resolved: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unknown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class LedgerSchemas:
    """A `SchemaTable` that reads the ledger. Each schema is read once per process and client, each marker and each miss
    once per table: a table is that of one task. Thread-safe.

    With `known`, the table contains what the driver has resolved. Without it, the table contains all schemas of the
    ledger, and an id without one is unknown: for rebuilds and `verify --deep`, which need no registry. With
    `prefer_unknown`, an id that the registry did not know once is unknown, even if the ledger has its schema now.
    """

    _caches: ClassVar[weakref.WeakKeyDictionary[S3Client, dict[str, RegisteredSchema]]] = weakref.WeakKeyDictionary()

    def __init__(
        self, s3: S3Client, root: str, known: KnownSchemas | None = None, *, prefer_unknown: bool = False
    ) -> None:
        """`root` is a `schemas_root`."""
        self._s3 = s3
        self._root = root
        self._known = known
        self._prefer_unknown = prefer_unknown
        self._cache = self._caches.setdefault(s3, {})
        self._missing: set[str] = set()
        self._reasons: dict[str, str | None] = {}
        self._versions: dict[str, RegisteredSchema] = {}
        self._lookups: Counter[str] = Counter()
        self._listed: dict[str, frozenset[str]] = {}

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """The schema with the id `schema_id` in the records of `topic`; None if no driver has resolved it yet.

        Raises UnknownSchema, LedgerUnreadable and the errors of the store.
        """
        if self._known is not None:
            reason = self._known.unknown.get(topic, {}).get(schema_id)
            if reason is not None:
                raise UnknownSchema(reason)
            if schema_id not in self._known.resolved.get(topic, ()):
                return None
        self._load(topic, [schema_id])
        return self._loaded(topic, schema_id)

    def prefetch(self, topic: str, schema_ids: Collection[str]) -> None:
        """Reads what `find` needs for these ids, in parallel. Raises LedgerUnreadable and the errors of the store."""
        if self._known is not None:
            resolved = self._known.resolved.get(topic, frozenset())
            unknown = self._known.unknown.get(topic, {})
            schema_ids = [each for each in schema_ids if each in resolved and each not in unknown]
        self._load(topic, list(schema_ids))

    def _load(self, topic: str, ids: list[str]) -> None:
        """Reads the files that `_loaded` needs for these ids."""
        if self._prefer_unknown:
            self._load_reasons(topic, ids)
            ids = [each for each in ids if self._reasons[unknown_key(self._root, topic, each)] is None]
        self._load_copies([schema_key(self._root, topic, each) for each in ids])
        missing = [each for each in ids if schema_key(self._root, topic, each) in self._missing]
        self._load_reasons(topic, missing)
        self._load_versions(topic, [each for each in ids if each not in missing])

    def _load_copies(self, keys: Sequence[str]) -> None:
        unread = [key for key in keys if key not in self._cache and key not in self._missing]
        for key, entry in files.find_all(self._s3, unread, SchemaEntry, expected_format=FORMAT).items():
            if entry is not None:
                self._cache[key] = entry.schema
            elif self._known is not None:
                raise files.unreadable(self._s3, key, "it does not exist")
            else:
                self._missing.add(key)

    def _load_reasons(self, topic: str, ids: Sequence[str]) -> None:
        keys = [unknown_key(self._root, topic, each) for each in ids]
        unread = [key for key in keys if key not in self._reasons]
        found = files.find_all(self._s3, self._existing(topic, unread), UnknownMarker, expected_format=FORMAT)
        for key in unread:
            marker = found.get(key)
            self._reasons[key] = None if marker is None else marker.reason

    def _load_versions(self, topic: str, ids: Sequence[str]) -> None:
        """A version may be added to a copy: each task reads it again."""
        copies = {version_key(self._root, topic, each): self._copy(topic, each) for each in ids}
        unread = [key for key, copy in copies.items() if lacks_version(copy) and key not in self._versions]
        found = files.find_all(self._s3, self._existing(topic, unread), VersionEntry, expected_format=FORMAT)
        for key in unread:
            self._versions[key] = with_version(copies[key], found.get(key))

    def _existing(self, topic: str, keys: Sequence[str]) -> Sequence[str]:
        """Those of the keys of `topic` that may exist. Lists the folder once many keys were looked up."""
        self._lookups[topic] += len(keys)
        if topic not in self._listed and self._lookups[topic] >= files.MIN_LISTED:
            folder = schemas_folder(self._root, topic)
            self._listed[topic] = frozenset(listed.key for listed in self._s3.list(folder))
        return [key for key in keys if topic not in self._listed or key in self._listed[topic]]

    def _loaded(self, topic: str, schema_id: str) -> RegisteredSchema:
        """The schema of an id whose files are loaded. Raises UnknownSchema."""
        reason = self._reasons.get(unknown_key(self._root, topic, schema_id))
        missing = schema_key(self._root, topic, schema_id) in self._missing
        if missing or (self._prefer_unknown and reason is not None):
            raise UnknownSchema(reason or f"the ledger has no schema with the id {schema_id}")
        return self._versions.get(version_key(self._root, topic, schema_id)) or self._copy(topic, schema_id)

    def _copy(self, topic: str, schema_id: str) -> RegisteredSchema:
        return self._cache[schema_key(self._root, topic, schema_id)]
