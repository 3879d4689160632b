"""The schemas in a ledger: copies of a registry's schemas, so that decoding needs no registry.

`<ledger root>schemas/<topic>/` contains, for the first generation of the ledger; those of generation 2 are below
`<ledger root>generation=2/`, and so on: an offset reset makes a sink independent of the registry that it had before.
    <id>.json           the schema with this id, written once, before the first record with the id is decoded; the id of
                        a key has the prefix key-
    inferred.json       the schema that was inferred from the topic's first records; the first one counts for ever
    <id>.version.json   subject and version of a schema that had none when its copy was written; written once
    <id>.unknown.json   a marker: the registry did not know the id once, and records with it may have been rejected then
None is ever changed; only `s3sink forget-schema` deletes them. The driver writes them (`SchemaStore`), workers read
them (`LedgerSchemas`).
"""

from __future__ import annotations

import json
import logging
import re
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeVar

import msgspec

from sink_job.api.errors import RegistryChanged, TransientError
from sink_job.api.schema_section import INFERRED_ID, TEXT_PREFIX
from sink_job.avro.comparison import is_same_avro
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema, registry_schema_id, shown_schema_id
from sink_job.ledger import files
from sink_job.s3 import Conflict, NotFound, PreconditionFailed, S3Client, S3Outcome

FORMAT: Final = 1
_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
T = TypeVar("T", bound="SchemaEntry | UnknownMarker | VersionEntry")
_log = logging.getLogger(__name__)


class SchemaEntry(msgspec.Struct, frozen=True):
    """The file of a schema."""

    schema: RegisteredSchema
    format: int = FORMAT


class VersionEntry(msgspec.Struct, frozen=True):
    """The file with the subject and the version of a schema whose copy has none."""

    subject: str | None
    version: int
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
        """`root` is a `schemas_root`."""
        self._s3 = s3
        self._root = root
        self._known = known
        self._versions: dict[str, RegisteredSchema] = {}
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
        found = self._cache[key]
        if found.version is not None or not _has_versions(found):
            return found
        if key not in self._versions:  # a version may be added to the copy: it is read again by each task
            self._versions[key] = _with_version(self._s3, version_key(self._root, topic, schema_id), found)
        return self._versions[key]

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
        """`root` is a `schemas_root`."""
        self._s3 = s3
        self._root = root

    def get(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """The ledger's copy of a schema; None if it has none."""
        entry = _read(self._s3, schema_key(self._root, topic, schema_id), SchemaEntry)
        if entry is None:
            return None
        return _with_version(self._s3, version_key(self._root, topic, schema_id), entry.schema)

    def put(
        self, topic: str, schema: RegisteredSchema, registry_url: str, *, needs_version: bool = False
    ) -> RegisteredSchema:
        """Puts the schema of `topic` into the ledger if it is absent there. Returns the ledger's copy, which counts for
        subject and version. `needs_version`: versions are compared. Then a copy without a version gets that of
        `schema`: objects with another mode of compatibility were published before.

        Raises RegistryChanged if the copy has another text or other references, or with `needs_version` another subject
        or version; TransientError if nothing is stored after a 409 that persists; and the errors of the store.
        """
        stored = self.get(topic, schema.id)
        if stored is None:
            stored = self._put(schema_key(self._root, topic, schema.id), SchemaEntry(schema)).schema
        if not is_same_schema(stored, schema):
            raise self._changed(topic, stored, schema, registry_url)
        if needs_version and stored.version is None and schema.version is not None:
            return self._add_version(topic, stored, schema)
        if schema.version is not None and (stored.subject, stored.version) != (schema.subject, schema.version):
            self._report_version(topic, stored, schema, registry_url, needs_version=needs_version)
        return stored

    def forget(self, topic: str, schema_id: str) -> bool:
        """Deletes the copy of a schema with what belongs to it. Returns whether there was one. For a command that owns
        the ledger; no object may need the copy any more."""
        keys = (version_key, unknown_key, schema_key)
        found = self.get(topic, schema_id) is not None
        for key_of in keys:  # the copy last: an interrupted command is repeated
            self._s3.delete([key_of(self._root, topic, schema_id)])
        return found

    def _add_version(self, topic: str, stored: RegisteredSchema, theirs: RegisteredSchema) -> RegisteredSchema:
        """Adds subject and version to a copy without them; returns the copy with the stored ones."""
        key = version_key(self._root, topic, stored.id)
        assert theirs.version is not None
        try:
            entry = VersionEntry(theirs.subject, theirs.version)
            self._s3.put(key, msgspec.json.encode(entry), only_if_absent=True)
        except (PreconditionFailed, Conflict) as rejected:
            if _read(self._s3, key, VersionEntry) is None:
                raise _final(rejected) from rejected
        return _with_version(self._s3, key, stored)

    def _report_version(
        self, topic: str, ours: RegisteredSchema, theirs: RegisteredSchema, url: str, *, needs_version: bool
    ) -> None:
        """Reports another subject or version of a schema: an error if versions are compared, else a warning."""
        what = (
            f"the schema registry {url} has the schema id {shown_schema_id(ours.id)} of topic {topic} as "
            f"{_position(theirs)}, and the ledger as {_position(ours)}"
        )
        if not needs_version:
            _log.warning("%s. The ledger's version stays in force", what)
            return
        raise RegistryChanged(
            f"{what} (s3://{self._s3.bucket}/{schema_key(self._root, topic, ours.id)}). spec.schemaCompatibility "
            "compares versions within a subject, so records would be written under a wrong schema. Nothing was "
            "written. spec.format.registry.subjects or .url was changed, or the registry was re-created. Restore it, "
            f"set spec.schemaCompatibility to None or Separate, or {self._way_out(topic, ours.id)}"
        )

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
            "or re-created, or spec.format.registry.url is or was another registry. If the registry is the wrong one, "
            f"correct it. If the ledger's copy is, {self._way_out(topic, ours.id)}"
        )

    def _way_out(self, topic: str, schema_id: str) -> str:
        """How a copy is given up."""
        text, is_key = registry_schema_id(schema_id)
        return (
            "publish the open objects with `s3sink run SINK.yaml --publish-open` and delete the copy with `s3sink "
            f"forget-schema SINK.yaml --topic {topic} --id {text}{' --key' if is_key else ''}`. An offset reset starts "
            "without copies, too: `s3sink reset-offsets`."
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


def version_key(root: str, topic: str, schema_id: str) -> str:
    """The key of the subject and version that a copy lacks. Raises ValueError as `schema_key`."""
    return f"{_prefix(root, topic, schema_id)}.version.json"


def schemas_root(root: str, generation: int) -> str:
    """The prefix of the schemas of a generation. `root` is the ledger's prefix and ends with `/`."""
    return root if generation == 1 else f"{root}generation={generation}/"


def _has_versions(schema: RegisteredSchema) -> bool:
    """Whether the schema is one of a registry, of which versions may be known later."""
    return registry_schema_id(schema.id)[0] != INFERRED_ID and not schema.id.startswith(TEXT_PREFIX)


def _with_version(s3: S3Client, key: str, schema: RegisteredSchema) -> RegisteredSchema:
    """The schema with the subject and version of the file `key`, if it has none of its own and the file exists."""
    if schema.version is not None or not _has_versions(schema):
        return schema
    added = _read(s3, key, VersionEntry)
    return schema if added is None else msgspec.structs.replace(schema, subject=added.subject, version=added.version)


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
    return f"{schema.language}, {_position(schema)}"


def _position(schema: RegisteredSchema) -> str:
    return f"version {schema.version} of subject {schema.subject}" if schema.version else "in no known subject"
