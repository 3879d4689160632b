"""A schema in Kafka Connect's data model (org.apache.kafka.connect.data.Schema).

All converters translate their schemas into this model. Schemas are compared in it, as in the Kafka Connect S3 sink.
"""

from __future__ import annotations

import hashlib
from enum import Enum, StrEnum
from typing import Final

import msgspec


class SchemaType(StrEnum):
    """Connect's types, and REFERENCE for a use of an enclosing named schema (recursion)."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"
    REFERENCE = "reference"


INTEGER_BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
"""The integer types and their sizes."""


class Default(msgspec.Struct, frozen=True, gc=False):
    """A default value, as canonical JSON text: bytes are base64, as JsonConverter writes them."""

    json: str


class Schema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schema. Hashable; equal schemas are equal in all attributes that Connect's `ConnectSchema.equals` compares.

    `name` is the full name, `version` the version within the `subject`, which only the whole schema has and which
    Connect does not know: versions of two subjects are not comparable. `parameters` are sorted by name. `fields` are
    those of a STRUCT, `keys` and `values` of a MAP; `values` also of an ARRAY. A REFERENCE has the `name` of the
    enclosing struct.

    Connect has neither `logical`, an Avro logical type of int64, string or bytes that Connect does not know, nor the
    order of the `symbols` of an Avro enum. They are set for the outputs Avro and Parquet only.
    """

    type: SchemaType
    name: str | None = None
    optional: bool = False
    version: int | None = None
    doc: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    default: Default | None = None
    fields: tuple[Field, ...] = ()
    keys: Schema | None = None
    values: Schema | None = None
    logical: str | None = None
    symbols: tuple[str, ...] = ()
    subject: str | None = None

    @property
    def parameter(self) -> dict[str, str]:
        """The parameters by name."""
        return dict(self.parameters)


class Field(msgspec.Struct, frozen=True):
    """A field of a struct."""

    name: str
    schema: Schema


def of_subject(schema: Schema, registered: RegisteredSchema) -> Schema:
    """The whole schema of `registered`, with its subject."""
    return msgspec.structs.replace(schema, subject=registered.subject)


def schema_id(schema: Schema) -> str:
    """The id of a schema in the ledger: 32 hexadecimal digits, a SHA-256 of its canonical JSON text. Equal schemas have
    equal ids."""
    return hashlib.sha256(msgspec.json.encode(schema, order="deterministic")).hexdigest()[:32]


KEY_PREFIX: Final = "key-"


def key_schema_id(schema_id: str) -> str:
    """The id by which the ledger and the driver name the schema `schema_id` of keys. The same id of values is another
    one: its version counts in another subject."""
    return f"{KEY_PREFIX}{schema_id}"


def registry_schema_id(schema_id: str) -> tuple[str, bool]:
    """The id in the registry of an id in the ledger, and whether it is that of keys."""
    return schema_id.removeprefix(KEY_PREFIX), schema_id.startswith(KEY_PREFIX)


def shown_schema_id(schema_id: str) -> str:
    """An id in the ledger, for messages."""
    text, is_key = registry_schema_id(schema_id)
    return f"{text} (of the key)" if is_key else text


class RegisteredSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schema of a registry, as the ledger keeps it. It is complete: decoding needs no registry.

    `id` is the id in the record's wire format as text (a decimal number, a UUID); that of a key has the prefix `key-`.
    `language` is `AVRO`, `PROTOBUF` or `JSON`. `text` is the schema as the registry returned it. `references` are all
    schemas that it refers to, directly or indirectly, each after those that it refers to itself. `subject` and
    `version` are None where no subject is known.
    """

    id: str
    language: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    subject: str | None = None
    version: int | None = None

    @property
    def label(self) -> str:
        """The schema for messages."""
        if self.subject is None:
            return f"schema {self.id}"
        version = "" if self.version is None else f" version {self.version}"
        return f"schema {self.id} (subject {self.subject}{version})"

    def reject(self, reason: str) -> str:
        """The reason for the rejection of a value with this schema, which names the schema."""
        return f"{self.label}: {reason}"


class SchemaReference(msgspec.Struct, frozen=True):
    """A schema that another one refers to: the name by which it is referred to, its subject and version, its text."""

    name: str
    subject: str
    version: int
    text: str


class Extension(Enum):
    """What a schema has beyond Connect's data model."""

    NONE = 0
    SYMBOLS = 1
    """The order of the symbols of enums."""
    LOGICAL_TYPES = 2
    """Also the logical types of `EXTENDED`."""
