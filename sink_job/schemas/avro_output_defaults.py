"""Connect's defaults as those of Avro's fields, in JSON."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final

from sink_job.schemas import logical
from sink_job.schemas.avro import UNION
from sink_job.schemas.avro_names import avro_name
from sink_job.schemas.errors import InvalidSchema, InvalidValue
from sink_job.schemas.json_reading import default_value
from sink_job.schemas.model import Schema, SchemaType
from sink_job.schemas.scopes import child

_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)


class NoDefault(Exception):
    """A field has no default, or one that Avro cannot express."""


def avro_default_json(schema: Schema, *, of_field: bool = True) -> object:
    """The default of a schema, as JSON: null for an optional one without its own. Raises NoDefault.

    `of_field`: as the default of a field, where Avro allows of each union only a value of its first member."""
    if schema.default is None:
        if schema.optional:
            return None
        raise NoDefault
    try:
        return _Defaults(of_field).required(schema, default_value(schema))
    except (InvalidValue, InvalidSchema):
        raise NoDefault from None


class _Defaults:
    def __init__(self, of_field: bool) -> None:
        self._of_field = of_field

    def value(self, schema: Schema, value: object) -> object:
        """The default of a type within another one."""
        is_first = (schema.default is None) == (value is None)
        if schema.optional and self._of_field and not is_first:
            raise NoDefault
        return None if value is None else self.required(schema, value)

    def required(self, schema: Schema, value: Any) -> object:
        match schema.type:
            case SchemaType.STRUCT if schema.name == UNION and len(schema.fields) > 1:
                return self._member(schema, value)
            case SchemaType.STRUCT:
                return {avro_name(each.name): self.value(each.schema, value.get(each.name)) for each in schema.fields}
            case SchemaType.ARRAY:
                return [self.value(child(schema.values), item) for item in value]
            case SchemaType.MAP:
                return self._map(child(schema.keys), child(schema.values), value)
            case SchemaType.REFERENCE:
                raise NoDefault
        return _scalar(schema, value)

    def _member(self, schema: Schema, value: dict[str, object]) -> object:
        first = schema.fields[0] if schema.fields else None
        given = [name for name, member in value.items() if member is not None]
        if first is None or schema.optional or given != [first.name]:
            raise NoDefault
        return self.required(first.schema, value[first.name])

    def _map(self, keys: Schema, values: Schema, value: Any) -> object:
        if keys.type is SchemaType.STRING and not keys.optional:
            return {key: self.value(values, item) for key, item in value.items()}
        entries = value.items() if isinstance(value, dict) else value
        return [{"key": self.value(keys, key), "value": self.value(values, item)} for key, item in entries]


def _scalar(schema: Schema, value: Any) -> object:
    if isinstance(value, Decimal):
        return logical.decimal_to_bytes(value, logical.scale_of(schema)).decode("latin-1")
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if schema.type in _FLOATS and not math.isfinite(value):
        raise NoDefault
    return value
