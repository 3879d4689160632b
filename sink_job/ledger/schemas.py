"""The schemas in a ledger: copies of a registry's schemas, so that decoding needs no registry.

`<ledger root>schemas/<topic>/` contains
    <id>.json           the schema with this id, written once, before the first record with the id is decoded; the id of
                        a key has the prefix key-
    inferred.json       the schema that was inferred from the topic's first records; the first one counts for ever
    <id>.unknown.json   a marker: the registry did not know the id once, and records with it may have been rejected then
Neither is ever changed or deleted. The driver writes them (`SchemaStore`), workers read them (`LedgerSchemas`).
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeVar

import msgspec

from sink_job.api.errors import RegistryChanged, TransientError
from sink_job.converters.base import UnknownSchema
from sink_job.ledger import files
from sink_job.s3 import Conflict, NotFound, PreconditionFailed, S3Client, S3Outcome
from sink_job.schemas.avro_comparison import is_same_avro
from sink_job.schemas.model import RegisteredSchema, shown_schema_id

FORMAT: Final = 1
_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
T = TypeVar("T", bound="SchemaEntry | UnknownMarker")


class SchemaEntry(msgspec.Struct, frozen=True):
    """The file of a schema."""

    schema: RegisteredSchema
    format: int = FORMAT


class UnknownMarker(msgspec.Struct, frozen=True):
    """The file of an id that the registry did not know once. `reason` is the reason in the records' rejections."""

    id: str
    reason: str
    format: int = FORMAT


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
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._root = root
        self._known = known
        self._prefer_unknown = prefer_unknown
        self._cache = self._caches.setdefault(s3, {})
        self._missing: set[str] = set()
        self._reasons: dict[str, str | None] = {}

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
        return self._cached(topic, schema_id)

    def _cached(self, topic: str, schema_id: str) -> RegisteredSchema:
        key = schema_key(self._root, topic, schema_id)
        if self._prefer_unknown and (reason := self._reason(topic, schema_id)) is not None:
            raise UnknownSchema(reason)
        if key not in self._cache and key not in self._missing:
            entry = _read(self._s3, key, SchemaEntry)
            if entry is not None:
                self._cache[key] = entry.schema
            elif self._known is not None:
                raise files.unreadable(self._s3, key, "it does not exist")
            else:
                self._missing.add(key)
        if key in self._missing:
            raise UnknownSchema(self._reason(topic, schema_id) or f"the ledger has no schema with the id {schema_id}")
        return self._cache[key]

    def _reason(self, topic: str, schema_id: str) -> str | None:
        """The reason in the marker of an unknown id; None without a marker. Each is read once per table."""
        key = unknown_key(self._root, topic, schema_id)
        if key not in self._reasons:
            marker = _read(self._s3, key, UnknownMarker)
            self._reasons[key] = None if marker is None else marker.reason
        return self._reasons[key]


class SchemaStore:
    """Writes schemas into a ledger, each once. For the driver."""

    def __init__(self, s3: S3Client, root: str) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._root = root

    def get(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """The ledger's copy of a schema; None if it has none."""
        entry = _read(self._s3, schema_key(self._root, topic, schema_id), SchemaEntry)
        return None if entry is None else entry.schema

    def put(self, topic: str, schema: RegisteredSchema, registry_url: str) -> RegisteredSchema:
        """Puts the schema of `topic` into the ledger if it is absent there. Returns the ledger's copy, which counts for
        subject and version.

        Raises RegistryChanged if the copy has another text or other references, TransientError if nothing is stored
        after a 409 that persists, and the errors of the store.
        """
        key = schema_key(self._root, topic, schema.id)
        entry = _read(self._s3, key, SchemaEntry)
        if entry is None:
            entry = self._put(key, SchemaEntry(schema))
        if not is_same_schema(entry.schema, schema):
            raise self._changed(topic, entry.schema, schema, registry_url)
        return entry.schema

    def put_first(self, topic: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Puts a schema of `topic` into the ledger if it has none with this id. Returns the ledger's copy, which can be
        another one. Raises as `put`, without RegistryChanged."""
        key = schema_key(self._root, topic, schema.id)
        entry = _read(self._s3, key, SchemaEntry)
        return (entry or self._put(key, SchemaEntry(schema))).schema

    def _put(self, key: str, entry: SchemaEntry) -> SchemaEntry:
        """Writes the entry if there is none; returns the stored one."""
        try:
            self._s3.put(key, msgspec.json.encode(entry), only_if_absent=True)
        except (PreconditionFailed, Conflict) as rejected:
            stored = _read(self._s3, key, SchemaEntry)
            if stored is None:
                raise _final(rejected) from rejected
            return stored
        return entry

    def put_unknown(self, topic: str, schema_id: str, reason: str) -> None:
        """Marks the id as one that the registry did not know once. Raises as `put`."""
        key = unknown_key(self._root, topic, schema_id)
        try:
            self._s3.put(key, msgspec.json.encode(UnknownMarker(schema_id, reason)), only_if_absent=True)
        except (PreconditionFailed, Conflict) as rejected:
            if _read(self._s3, key, UnknownMarker) is None:
                raise _final(rejected) from rejected

    def _changed(self, topic: str, ours: RegisteredSchema, theirs: RegisteredSchema, url: str) -> RegistryChanged:
        what = "text differs" if ours.references == theirs.references else "text or the references differ"
        return RegistryChanged(
            f"the schema registry {url} returns another schema for id {shown_schema_id(ours.id)} of topic {topic} than "
            f"the ledger has: the {what} from s3://{self._s3.bucket}/{schema_key(self._root, topic, ours.id)} "
            f"({_described(ours)}; the registry: {_described(theirs)}). Nothing was written. The registry was restored "
            "or re-created, or spec.format.registry.url is another registry. Restore the registry with its ids, or "
            "produce the records of the new registry to another topic."
        )


def is_same_schema(one: RegisteredSchema, other: RegisteredSchema) -> bool:
    """Whether two copies of a schema decode records in the same way: same language, texts and references.

    Texts are compared without their layout, and Avro texts as `is_same_avro`: registries format a text again after an
    upgrade. Subjects and versions are not compared.
    """
    if one.language != other.language:
        return False
    return _contents(one) == _contents(other) or (one.language == "AVRO" and is_same_avro(one, other))


def schema_key(root: str, topic: str, schema_id: str) -> str:
    """The key of a schema. Raises ValueError for an id that is neither a number nor a UUID."""
    return f"{_prefix(root, topic, schema_id)}.json"


def unknown_key(root: str, topic: str, schema_id: str) -> str:
    """The key of the marker of an unknown id. Raises ValueError as `schema_key`."""
    return f"{_prefix(root, topic, schema_id)}.unknown.json"


def _prefix(root: str, topic: str, schema_id: str) -> str:
    if not _ID.fullmatch(schema_id):
        raise ValueError(f"not a schema id: {schema_id!r}")
    return f"{root}schemas/{topic}/{schema_id}"


def _final(rejected: S3Outcome) -> S3Outcome | TransientError:
    """The error that ends the driver after the store has rejected a put and holds nothing at its key."""
    return TransientError(str(rejected)) if isinstance(rejected, Conflict) else rejected


def _read(s3: S3Client, key: str, kind: type[T]) -> T | None:
    try:
        return files.read(s3, key, kind, expected_format=FORMAT)
    except NotFound:
        return None


def _contents(schema: RegisteredSchema) -> tuple[object, ...]:
    return _content(schema.language, schema.text), [
        (reference.name, _content(schema.language, reference.text)) for reference in schema.references
    ]


def _content(language: str, text: str) -> object:
    if language == "PROTOBUF":
        return text.split()
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def _described(schema: RegisteredSchema) -> str:
    version = f"version {schema.version} of subject {schema.subject}" if schema.version else "in no known subject"
    return f"{schema.language}, {version}"
