"""The schemas of objects whose records are projected, in a ledger.

`<ledger root>object-schemas/<id>.json` contains a schema in Connect's data model; the id is its hash (`schema_id`). A
task writes it before it returns a result with an object of this schema, so a ledger record never refers to a missing
file. Any task may write it, also one of a superseded driver: the id determines the content. It is never changed or
deleted.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Collection, Iterable
from itertools import islice
from typing import ClassVar, Final

import msgspec

from sink_job.connect.schema import Schema, schema_id
from sink_job.ledger import files
from sink_job.s3 import Conflict, NotFound, PreconditionFailed, S3Client

FORMAT: Final = 1
MAX_CACHED: Final = 1_000
MAX_LISTED_RATIO: Final = 10
"""Maximum number of listed keys for each key that is looked for."""
_ID: Final = re.compile(r"[0-9a-f]{32}")


class ObjectSchemaEntry(msgspec.Struct, frozen=True):
    """The file of a schema."""

    schema: Schema
    format: int = FORMAT


class ObjectSchemas:
    """Reads and writes the schemas of objects. Each is read or written once per process and client. Thread-safe."""

    _lock: ClassVar = threading.Lock()
    _caches: ClassVar[weakref.WeakKeyDictionary[S3Client, dict[str, Schema]]] = weakref.WeakKeyDictionary()

    def __init__(self, s3: S3Client, root: str) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._root = root
        self._cache = self._caches.setdefault(s3, {})

    def find(self, object_schema: str) -> Schema:
        """The schema with the id `object_schema`. Raises LedgerUnreadable and the errors of the store."""
        key = object_schema_key(self._root, object_schema)
        found = self._cache.get(key)
        if found is None:
            found = self._read(key)
            if schema_id(found) != object_schema:
                raise files.unreadable(self._s3, key, "its schema has another id")
            self._remember(key, found)
        return found

    def _read(self, key: str) -> Schema:
        try:
            return files.read(self._s3, key, ObjectSchemaEntry, expected_format=FORMAT).schema
        except NotFound:
            raise files.unreadable(self._s3, key, "it does not exist") from None

    def prefetch(self, object_schemas: Iterable[str]) -> None:
        """Reads the schemas with these ids for `find`, in parallel. Raises as `find`."""
        ids = dict.fromkeys(object_schemas)
        files.together(self.find, [each for each in ids if object_schema_key(self._root, each) not in self._cache])

    def put(self, schema: Schema) -> None:
        """Writes the schema if it is absent. Raises the errors of the store."""
        self.put_all([schema])

    def put_all(self, schemas: Iterable[Schema]) -> None:
        """Writes those of the schemas that are absent, in parallel. Raises the errors of the store."""
        keys = {object_schema_key(self._root, schema_id(each)): each for each in schemas}
        new = {key: each for key, each in keys.items() if key not in self._cache}
        for key in self._existing(new):
            self._remember(key, new.pop(key))
        files.together(lambda item: self._put(*item), new.items())

    def _existing(self, keys: Collection[str]) -> list[str]:
        """Some of the keys that exist. A folder of all topics may be large: its listing is not read to the end."""
        if len(keys) < files.MIN_LISTED:
            return []
        listed = islice(self._s3.list(f"{self._root}object-schemas/"), MAX_LISTED_RATIO * len(keys))
        return [each.key for each in listed if each.key in keys]

    def _put(self, key: str, schema: Schema) -> None:
        try:
            self._s3.put(key, msgspec.json.encode(ObjectSchemaEntry(schema)), only_if_absent=True)
        except PreconditionFailed:
            pass
        except Conflict:
            self._s3.put(key, msgspec.json.encode(ObjectSchemaEntry(schema)))
        self._remember(key, schema)

    def _remember(self, key: str, schema: Schema) -> None:
        with self._lock:
            while len(self._cache) >= MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = schema


def object_schema_key(root: str, object_schema: str) -> str:
    """The key of the schema of objects. Raises ValueError for an id that is no hash of a schema."""
    if not _ID.fullmatch(object_schema):
        raise ValueError(f"not the id of an object's schema: {object_schema!r}")
    return f"{root}object-schemas/{object_schema}.json"
