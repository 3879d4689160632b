"""Values with a JSON Schema as Connect's, as io.confluent.connect.json.JsonSchemaData.toConnectData reads them.

They are read only for the outputs Avro and Parquet, which need typed values. Differences from JsonSchemaData, on
purpose:

- A value of another type than its schema's is rejected. JsonSchemaData reads some of them as 0, null or cut off.
- A property that its schema does not have is rejected. JsonSchemaData drops it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from sink_job.avro.to_connect import UNION
from sink_job.connect.errors import InvalidFieldValue, InvalidValue
from sink_job.connect.json_decoder import JsonReader, Read, expect
from sink_job.connect.schema import INTEGER_BITS, Schema, SchemaType
from sink_job.connect.scopes import Scope, child
from sink_job.json.json_schema.to_connect import ONE_OF

UNIONS: Final = (ONE_OF, UNION)
"""The names of structs that are unions, of JSON Schemas and of Avro."""


def json_schema_reader(schema: Schema) -> Read:
    """A function that reads the result of `decode_json` as a value under `schema`. It raises InvalidValue
    if the value does not conform to the schema, and RecursionError."""
    return JsonSchemaReader().whole(schema)


class JsonSchemaReader(JsonReader):
    """Compiles schemas to functions that read values with a JSON Schema. See `JsonReader`."""

    def struct(self, schema: Schema, scope: Scope[object]) -> Read:
        if is_union(schema):
            return self._union(schema, scope)
        read, names = super().struct(schema, scope), {field.name for field in schema.fields}

        def checked(value: object) -> object:
            if isinstance(value, dict) and not value.keys() <= names:
                unknown = next(name for name in value if name not in names)
                raise InvalidFieldValue("its schema does not have this property", unknown)
            return read(value)

        return checked

    def _union(self, schema: Schema, scope: Scope[object]) -> Read:
        """A value is one of the first member that it conforms to. Of several objects the one with the most of the
        value's properties comes first."""
        members = [
            (field.name, field.schema, self._attempt(self.of_value(field.schema, scope))) for field in schema.fields
        ]
        return lambda value: _member(members, value)

    def _attempt(self, read: Read) -> Read:
        """The same function. The fields of a value that does not conform are not counted."""

        def of_value(value: object) -> object:
            before = self.fields
            try:
                return read(value)
            except InvalidValue:
                self.fields = before
                raise

        return of_value

    def map(self, schema: Schema, scope: Scope[object]) -> Read:
        if child(schema.keys).type is SchemaType.STRING:
            return super().map(schema, scope)
        key, item = self.read(child(schema.keys), scope), self.read(child(schema.values), scope)

        def read(value: object) -> object:
            entries = [expect(dict, entry, "an object") for entry in expect(list, value, "an array")]
            return [(key(entry.get("key")), item(entry.get("value"))) for entry in entries]

        return read

    def scalar(self, schema: Schema) -> Read:
        read = super().scalar(schema)
        return (lambda value: read(_whole(value))) if schema.type in INTEGER_BITS else read


def is_union(schema: Schema) -> bool:
    """Whether values under `schema` have the type of one of its fields."""
    return schema.type is SchemaType.STRUCT and schema.name in UNIONS


def _whole(value: object) -> object:
    """A number without a fraction, such as 1.0, is an integer in JSON Schema."""
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and value.adjusted() < 19
        and value == value.to_integral_value()
    ):
        return int(value)
    return value


def _member(members: list[tuple[str, Schema, Read]], value: Any) -> dict[str, object]:
    reasons = []
    for name, _, read in sorted(members, key=lambda member: -_common(member[1], value)):
        try:
            return {name: read(value)}
        except InvalidValue as error:
            reasons.append(str(error))
    raise InvalidValue(f"no member of its schema has this value: {'; '.join(reasons)}")


def _common(schema: Schema, value: object) -> int:
    """The number of properties that an object has in common with the schema."""
    return len(value.keys() & {field.name for field in schema.fields}) if isinstance(value, dict) else 0
