"""What every section of a manifest has in common: camelCase outside, snake_case inside, no unknown fields."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from sink_job.api.quantities import format_duration, format_size


class SpecModel(BaseModel):
    """A part of a manifest. Immutable; built by `load_sink`, or in code by the snake_case names of its fields.

    The text below a field is its description in the CRD and in docs/spec.md: what it is, what happens without it.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema as a manifest is written: defaults in its units, and leaving out instead of null."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name, written in properties.items():
            properties[name] = _as_written(written)
        return schema


def description(*, key: str | None = None, example: Any = None, **bounds: Any) -> Any:
    """A field's annotation: the connector `key` that it stands for, an example, its bounds (`ge`, `max_length`, …)."""
    extra: JsonDict = {"x-s3sink-connector-key": key} if key else {}
    return Field(examples=None if example is None else [example], json_schema_extra=extra, **bounds)


def _as_written(schema: JsonSchemaValue) -> JsonSchemaValue:
    made = dict(schema)
    choices = made.pop("anyOf", None)
    if choices is not None:
        inner = [choice for choice in choices if choice != {"type": "null"}]
        made |= inner[0] if len(inner) == 1 else {"anyOf": inner}
    default = made.pop("default", None)
    if default is not None:
        made["default"] = _default_as_written(default, made)
    if "description" in made:
        made["description"] = " ".join(made["description"].split())
    return made


def _default_as_written(default: Any, schema: JsonSchemaValue) -> Any:
    if "$ref" in schema and isinstance(default, dict):
        return {}  # a section's fields have defaults of their own
    kind = schema.get("x-s3sink-type")
    return format_duration(default) if kind == "duration" else format_size(default) if kind == "size" else default
