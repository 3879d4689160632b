"""Base class of all sections of a manifest: camelCase in YAML, snake_case in Python, no unknown fields."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from sink_job.api.units.quantities import format_duration, format_size

OPERATOR_DEFAULT: Final = "x-s3sink-operator-default"
"""Key in the schema of a field that the operator can have a default for."""


class SpecModel(BaseModel):
    """A section of a manifest. Immutable. `load_sink` builds it from YAML; code builds it with snake_case names.

    The docstring of a field is its description in the CRD and in docs/spec.md: its meaning and its default.
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
        """The schema of the YAML form: defaults carry units, and an optional field is omitted instead of null."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name, written in properties.items():
            properties[name] = _as_written(written)
        return schema


def description(*, key: str | None = None, example: Any = None, operator_default: bool = False, **bounds: Any) -> Any:
    """The annotation of a field: the equivalent connector `key`, an example, and bounds (`ge`, `max_length`, …).

    `operator_default`: `sinkDefaults` of the operator can set the field. The CRD then has no default for it: the API
    server would write that into the sink, and it would win over the one of the operator.
    """
    extra: JsonDict = {"x-s3sink-connector-key": key} if key else {}
    if operator_default:
        extra[OPERATOR_DEFAULT] = True
    return Field(examples=None if example is None else [example], json_schema_extra=extra, **bounds)


def _as_written(schema: JsonSchemaValue) -> JsonSchemaValue:
    result = dict(schema)
    choices = result.pop("anyOf", None)
    if choices is not None:
        inner = [choice for choice in choices if choice != {"type": "null"}]
        result |= inner[0] if len(inner) == 1 else {"anyOf": inner}
    default = result.pop("default", None)
    if default is not None:
        result["default"] = _default_as_written(default, result)
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    return result


def _default_as_written(default: Any, schema: JsonSchemaValue) -> Any:
    if "$ref" in schema and isinstance(default, dict):
        return {}  # the fields of a section have their own defaults
    kind = schema.get("x-s3sink-type")
    return format_duration(default) if kind == "duration" else format_size(default) if kind == "size" else default
