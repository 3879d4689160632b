"""Schemas of simulated records: structs with fields of primitive types, in Kafka Connect's data model."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from sink_job.connect.schema import Default, Field, Schema, SchemaType

Primitive = Literal["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes"]


class FieldInput(msgspec.Struct, forbid_unknown_fields=True):
    """A field of a record's schema. `default` is any JSON; a missing one is no default."""

    name: str
    type: Primitive
    optional: bool = False
    default: msgspec.Raw = msgspec.Raw()


class SchemaInput(msgspec.Struct, forbid_unknown_fields=True):
    """The schema of a record."""

    name: str | None = None
    version: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    fields: list[FieldInput] = []

    def schema(self) -> Schema:
        """The schema in Connect's data model. Raises ValueError for two fields with the same name."""
        names = [field.name for field in self.fields]
        if len(set(names)) < len(names):
            raise ValueError('"schema": two fields have the same name')
        fields = tuple(Field(field.name, _field_schema(field)) for field in self.fields)
        return Schema(SchemaType.STRUCT, name=self.name, version=self.version, fields=fields)


def _field_schema(field: FieldInput) -> Schema:
    default = Default(_canonical(field.default)) if bytes(field.default) not in (b"", b"null") else None
    return Schema(SchemaType(field.type), optional=field.optional, default=default)


def _canonical(value: msgspec.Raw) -> str:
    return msgspec.json.encode(msgspec.json.decode(value), order="sorted").decode()
