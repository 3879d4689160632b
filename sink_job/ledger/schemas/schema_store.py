"""The schemas in a ledger: copies of a registry's schemas, so that decoding needs no registry.

`<ledger root>schemas/<topic>/` contains, for the first generation of the ledger; those of generation 2 are below
`<ledger root>generation=2/`, and so on: an offset reset makes a sink independent of the registry that it had before.
    <id>.json           the schema with this id, written once, before the first record with the id is decoded; the id of
                        a key has the prefix key-
    inferred.json       the schema that was inferred from the topic's first records; the first one counts for ever
    <id>.version.json   subject and version of a schema that had none when its copy was written; written once
    <id>.unknown.json   a marker: the registry did not know the id once, and records with it may have been rejected then
None is ever changed; only `s3sink forget-schema` deletes them. The driver writes them (`SchemaStore`), workers read
them (`sink_job.ledger.schemas.schema_table`).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping
from typing import Final, TypeVar

import msgspec

from sink_job.api.errors import RegistryChanged, TransientError
from sink_job.api.sections.schema_section import INFERRED_ID, TEXT_PREFIX
from sink_job.connect.schema import RegisteredSchema, registry_schema_id, shown_schema_id
from sink_job.ledger import files
from sink_job.s3 import Conflict, PreconditionFailed, S3Client, S3Outcome

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


class SchemaStore:
    """Writes schemas into a ledger, each once. For the driver."""

    def __init__(self, s3: S3Client, root: str, listed: Mapping[str, frozenset[str]] | None = None) -> None:
        """`root` is a `schemas_root`. `listed`: see `with_listing`."""
        self._s3 = s3
        self._root = root
        self._listed = listed or {}

    def with_listing(self, topics: Collection[str]) -> SchemaStore:
        """The same store, for many calls of `put`: it does not read the files that a listing of the folder of `topics`
        lacks. A file that another driver has written since is read when the put of it fails."""
        folders = {topic: schemas_folder(self._root, topic) for topic in topics}
        listed = {topic: frozenset(each.key for each in self._s3.list(folder)) for topic, folder in folders.items()}
        return SchemaStore(self._s3, self._root, listed)

    def get(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """The ledger's copy of a schema; None if it has none."""
        return self._get(topic, schema_id, None)

    def _get(self, topic: str, schema_id: str, listed: frozenset[str] | None) -> RegisteredSchema | None:
        key = schema_key(self._root, topic, schema_id)
        entry = self._read(key, SchemaEntry) if listed is None or key in listed else None
        if entry is None or not lacks_version(entry.schema):
            return None if entry is None else entry.schema
        key = version_key(self._root, topic, schema_id)
        return with_version(entry.schema, self._read(key, VersionEntry) if listed is None or key in listed else None)

    def _read(self, key: str, kind: type[T]) -> T | None:
        return files.find(self._s3, key, kind, expected_format=FORMAT)

    def put(
        self, topic: str, schema: RegisteredSchema, registry_url: str, *, needs_version: bool = False
    ) -> RegisteredSchema:
        """Puts the schema of `topic` into the ledger if it is absent there. Returns the ledger's copy, which counts for
        subject and version. `needs_version`: versions are compared. Then a copy without a version gets that of
        `schema`: objects with another mode of compatibility were published before.

        Raises RegistryChanged if the copy has another text or other references, or with `needs_version` another subject
        or version; TransientError if nothing is stored after a 409 that persists; and the errors of the store.
        """
        stored = self._get(topic, schema.id, self._listed.get(topic))
        if stored is None:
            stored = self._put(schema_key(self._root, topic, schema.id), SchemaEntry(schema)).schema
        if not is_same_schema(stored, schema):
            raise self._changed(topic, stored, schema, registry_url)
        if needs_version and stored.version is None and schema.version is not None:
            stored = self._add_version(topic, stored, schema)
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
        entry = VersionEntry(theirs.subject, theirs.version)
        try:
            self._s3.put(key, msgspec.json.encode(entry), only_if_absent=True)
        except (PreconditionFailed, Conflict) as rejected:
            existing = self._read(key, VersionEntry)
            if existing is None:
                raise _final(rejected) from rejected
            entry = existing
        return with_version(stored, entry)

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
            f"{what} ({self._s3.url_of(schema_key(self._root, topic, ours.id))}). spec.schemaCompatibility "
            "compares versions within a subject, so records would be written under a wrong schema. Nothing was "
            "written. spec.format.registry.subjects or .url was changed, or the registry was re-created. Restore it, "
            f"set spec.schemaCompatibility to None or Separate, or {self._way_out(topic, ours.id)}"
        )

    def put_first(self, topic: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Puts a schema of `topic` into the ledger if it has none with this id. Returns the ledger's copy, which can be
        another one. Raises as `put`, without RegistryChanged."""
        key = schema_key(self._root, topic, schema.id)
        entry = self._read(key, SchemaEntry)
        return (entry or self._put(key, SchemaEntry(schema))).schema

    def _put(self, key: str, entry: SchemaEntry) -> SchemaEntry:
        """Writes the entry if there is none; returns the stored one."""
        try:
            self._s3.put(key, msgspec.json.encode(entry), only_if_absent=True)
        except (PreconditionFailed, Conflict) as rejected:
            stored = self._read(key, SchemaEntry)
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
            if self._read(key, UnknownMarker) is None:
                raise _final(rejected) from rejected

    def _changed(self, topic: str, ours: RegisteredSchema, theirs: RegisteredSchema, url: str) -> RegistryChanged:
        what = "text differs" if ours.references == theirs.references else "text or the references differ"
        return RegistryChanged(
            f"the schema registry {url} returns another schema for id {shown_schema_id(ours.id)} of topic {topic} than "
            f"the ledger has: the {what} from {self._s3.url_of(schema_key(self._root, topic, ours.id))} "
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
    if _contents(one) == _contents(other) or one.language != "AVRO":
        return _contents(one) == _contents(other)
    from sink_job.avro.comparison import is_same_avro

    return is_same_avro(one, other)


def schemas_folder(root: str, topic: str) -> str:
    """The prefix of the keys of a topic."""
    return f"{root}schemas/{topic}/"


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


def lacks_version(schema: RegisteredSchema) -> bool:
    """Whether the copy is one of a registry without a version, which may be added later."""
    is_registered = registry_schema_id(schema.id)[0] != INFERRED_ID and not schema.id.startswith(TEXT_PREFIX)
    return schema.version is None and is_registered


def with_version(schema: RegisteredSchema, added: VersionEntry | None) -> RegisteredSchema:
    """The schema with the subject and version that were added to its copy."""
    return schema if added is None else msgspec.structs.replace(schema, subject=added.subject, version=added.version)


def _prefix(root: str, topic: str, schema_id: str) -> str:
    if not _ID.fullmatch(schema_id):
        raise ValueError(f"not a schema id: {schema_id!r}")
    return f"{schemas_folder(root, topic)}{schema_id}"


def _final(rejected: S3Outcome) -> S3Outcome | TransientError:
    """The error that ends the driver after the store has rejected a put and holds nothing at its key."""
    return TransientError(str(rejected)) if isinstance(rejected, Conflict) else rejected


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
