"""The schema of a record with its key, headers and origin beside its value (`format.envelope`).

The value has its own schema in it, as it came. The data of a struct are those of its fields one after the other, so a
datum of the value is part of that of the envelope, unchanged.
"""

from __future__ import annotations

from typing import Final

import msgspec

from sink_job.avro.from_connect import avro_type, is_union
from sink_job.avro.to_connect import ENUM
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.output_settings import DatumSettings, check_parquet
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.envelope.null_records import NAME, VALUE_IS_NULL

TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
"""The names of org.apache.kafka.common.record.TimestampType, by their ids."""

KEY_BYTES: Final = Schema(SchemaType.BYTES, optional=True)
"""A key without a converter, and one of the converter Bytes."""
KEY_TEXT: Final = Schema(SchemaType.STRING, optional=True)
"""A key of the converter Text."""

VALUE: Final = "value"

_STRING: Final = Schema(SchemaType.STRING)
_HEADER: Final = Schema(
    SchemaType.STRUCT,
    name="s3sink.Header",
    fields=(Field("name", _STRING), Field("value", Schema(SchemaType.BYTES, optional=True))),
)
_TIMESTAMP: Final = Schema(SchemaType.INT64, name=logical_types.TIMESTAMP, version=logical_types.VERSION, optional=True)
_TIMESTAMP_TYPE: Final = Schema(
    SchemaType.STRING,
    optional=True,
    parameters=((ENUM, "s3sink.TimestampType"), *((f"{ENUM}.{each}", each) for each in TIMESTAMP_TYPES)),
    symbols=TIMESTAMP_TYPES,
)
_ORIGIN: Final = (
    Field("headers", Schema(SchemaType.ARRAY, values=_HEADER)),
    Field("timestamp", _TIMESTAMP),
    Field("timestampType", _TIMESTAMP_TYPE),
    Field("topic", _STRING),
    Field("partition", Schema(SchemaType.INT32)),
    Field("offset", Schema(SchemaType.INT64)),
)
_VALUE_IS_NULL: Final = Field(VALUE_IS_NULL, Schema(SchemaType.BOOLEAN))
_MAX_MEMBERS: Final = 63
"""Maximum number of types of a union that gets null as another one: their indexes are single bytes before and after."""


def envelope_schema(value: Schema, key: Schema) -> Schema:
    """The schema of records whose value has the schema `value`, and whose key is a `key_field` of the schema `key`. Its
    version and subject are those of the value's schema, which `schemaCompatibility` compares."""
    fields = (Field("key", key_field(key)), *_ORIGIN, Field(VALUE, value))
    return Schema(SchemaType.STRUCT, name=NAME, version=value.version, subject=value.subject, fields=fields)


def nullable_envelope_schema(value: Schema | None, key: Schema) -> Schema:
    """As `envelope_schema`, where records without a value are written: the value is optional, and the field
    `valueIsNull` distinguishes a value that is null from one that does not exist. `value` None: the schema of records
    without a value, which has no field `value`. Raises InvalidSchema if the value cannot be optional."""
    if value is None:
        return Schema(SchemaType.STRUCT, name=NAME, fields=(Field("key", key_field(key)), *_ORIGIN, _VALUE_IS_NULL))
    if is_union(value) and not value.optional and len(value.fields) > _MAX_MEMBERS:
        raise InvalidSchema(
            f"the value is a union of {len(value.fields)} types, which is too many to add null: the maximum is "
            f"{_MAX_MEMBERS}"
        )
    found = envelope_schema(msgspec.structs.replace(value, optional=True), key)
    return msgspec.structs.replace(found, fields=(*found.fields[:-1], _VALUE_IS_NULL, found.fields[-1]))


def value_schema(envelope: Schema) -> Schema | None:
    """The schema of the value in `envelope`; None if it has no value."""
    last = envelope.fields[-1]
    return last.schema if last.name == VALUE else None


def value_branches(value: Schema) -> tuple[bytes, bytes]:
    """The bytes before a datum of `value` in a field `value` that is optional, and those of null. The datum of a union
    without null has none before it, but another index (`sink_job.envelope.columns.with_null_member`)."""
    return key_branches(value)


def gets_null_member(value: Schema) -> bool:
    """Whether `value` is a union without null."""
    return is_union(value) and not value.optional


def key_field(key: Schema) -> Schema:
    """The schema of the field `key` for keys of the schema `key`: optional. A union, which must not be a member of
    another one, stays as it is."""
    return key if is_union(key) else msgspec.structs.replace(key, optional=True)


def key_branches(key: Schema) -> tuple[bytes, bytes]:
    """The bytes before a datum of `key` in the field `key`, and those of a record without a key."""
    null, branch = (b"\x02", b"\x00") if key.default is not None and not is_union(key) else (b"\x00", b"\x02")
    return (b"" if key.optional or is_union(key) else branch), null


def check_envelope(envelope: Schema, settings: DatumSettings) -> None:
    """Raises InvalidSchema if the output cannot express the schema."""
    if settings.is_parquet:
        check_parquet(envelope)
    avro_type(envelope, settings)
