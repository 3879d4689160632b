"""`spec.schemaCompatibility`: when a record whose schema differs from that of the open object closes it.

The rules are those of io.confluent.connect.storage.schema.StorageSchemaCompatibility, with two differences: a record
that cannot be projected closes the object, and so does one whose schema is of another subject. Versions are numbered
within a subject, so those of two subjects have no order (docs/semantics.md, section 7).
"""

from __future__ import annotations

from sink_job.api.enums import SchemaCompatibility
from sink_job.connect.projection import can_project
from sink_job.connect.schema import Schema


def rejection(mode: SchemaCompatibility, record: Schema | None) -> str | None:
    """The reason why a record with the schema `record` is a data error in this mode; None if it is not one.

    The modes that project compare versions, so a schema must have one. A record without a schema is valid.
    """
    if record is None or record.version is not None or not mode.projects:
        return None
    schema = "its schema" if record.name is None else f"its schema {record.name}"
    subject = "its subject" if record.subject is None else f"the subject {record.subject}"
    return f"{schema} is in no version of {subject}, which schemaCompatibility {mode} requires"


def closes(mode: SchemaCompatibility, open_schema: Schema | None, record: Schema | None) -> bool:
    """True if a record with the schema `record` closes an open object with the schema `open_schema`.

    None is a record without a schema. If this is False, and the mode projects, the record can be projected to the
    open object's schema. Raises ValueError if the mode needs versions and a schema has none (see `rejection`).
    """
    if open_schema == record or mode is SchemaCompatibility.SEPARATE:
        return False
    if open_schema is None or record is None or mode is SchemaCompatibility.NONE:
        return True
    if open_schema.subject != record.subject:
        return True
    return can_project(record, open_schema) is not None or _version_closes(mode, open_schema, record)


def _version_closes(mode: SchemaCompatibility, open_schema: Schema, record: Schema) -> bool:
    ours, theirs = open_schema.version, record.version
    if ours is None or theirs is None:
        raise ValueError(f"schemaCompatibility {mode} requires schemas with versions")
    return theirs < ours if mode is SchemaCompatibility.FORWARD else theirs > ours
