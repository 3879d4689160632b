"""The base of the status models, and their fields with other types in code than in JSON.

In code times are milliseconds since the epoch and sizes bytes; in JSON they are RFC 3339 timestamps of whole seconds
and Kubernetes quantities.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from s3sink_operator.types import Json, to_ms, to_timestamp
from sink_job.api.units.quantities import format_size, parse_size


def _read_time(value: object) -> object:
    return to_ms(value) if isinstance(value, str) else value


def _read_quantity(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_size(value)
    except ValueError:
        return None


Time = Annotated[
    int | None,
    BeforeValidator(_read_time),
    PlainSerializer(lambda ms: None if ms is None else to_timestamp(ms), when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Milliseconds since the epoch. None also for text that is not a timestamp."""
PastTimes = Annotated[
    list[int],
    BeforeValidator(
        lambda value: (
            [ms for each in value if (ms := _read_time(each)) is not None] if isinstance(value, list | tuple) else value
        )
    ),
    PlainSerializer(lambda times: [to_timestamp(ms) for ms in times], when_used="json"),
    WithJsonSchema({"type": "array", "items": {"type": "string", "format": "date-time"}}),
]
Quantity = Annotated[
    int | None,
    BeforeValidator(_read_quantity),
    PlainSerializer(lambda size: None if size is None else format_size(size), when_used="json"),
    WithJsonSchema({"type": "string"}),
]
"""Bytes. None also for text that is not a quantity."""


class StatusModel(BaseModel):
    """A section of the status. Immutable; JSON has camelCase names."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema with an absent field instead of null, and without defaults."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, written in properties.items():
            inner = [each for each in written.pop("anyOf", ()) if each != {"type": "null"}]
            merged = (inner[0] if inner else {}) | written
            merged.pop("default", None)
            if "description" in merged:
                merged["description"] = " ".join(merged["description"].split())
            properties[name] = merged
        return schema

    def document(self) -> Json:
        """The JSON of the section, without absent and empty fields."""
        found = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {name: value for name, value in found.items() if value not in ([], {})}
