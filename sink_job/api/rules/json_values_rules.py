"""Rules for JSON values that are read under a schema: the schema of the converter Json, its inference, and properties
that a schema lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import ConverterType, SchemaCompatibility, SchemaInference, UnknownFields
from sink_job.api.field_errors import FieldError, Path

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_FORMAT: Final = ("spec", "format")
_CONVERTER: Final[Path] = (*_FORMAT, "converter")
_OUTPUT: Final[Path] = (*_FORMAT, "output")
_SCHEMA: Final[Path] = (*_FORMAT, "schema")
_INFERENCE: Final[Path] = (*_FORMAT, "inference")
_UNKNOWN_FIELDS: Final[Path] = (*_FORMAT, "unknownFields")
_COMPATIBILITY: Final[Path] = ("spec", "schemaCompatibility")
_OF_OBJECTS: Final = (ConverterType.JSON, ConverterType.JSON_SCHEMA)
"""The converters that read JSON texts under a schema."""


def has_json_schema(spec: Spec) -> bool:
    """True if the converter Json has a schema: a given or an inferred one."""
    return spec.format.converter is ConverterType.JSON and (
        spec.format.bare_value_schema is not None or spec.format.inference is SchemaInference.ONCE
    )


def check_json_values(spec: Spec) -> Iterator[FieldError]:
    """The errors in the settings of JSON values under a schema."""
    yield from _schema(spec)
    if spec.format.inference is SchemaInference.ONCE:
        yield from _inference(spec)
    yield from _unknown_fields(spec)


def _schema(spec: Spec) -> Iterator[FieldError]:
    output = spec.format.output
    if has_json_schema(spec) and spec.format.bare_value_schema is not None and not output.has_datums:
        message = (
            f"has no effect with the converter Json and the output {output}: remove it, or use the output Avro or "
            "Parquet"
        )
        yield FieldError(_SCHEMA, message, (_CONVERTER, _OUTPUT))


def _inference(spec: Spec) -> Iterator[FieldError]:
    converter, output, compatibility = spec.format.converter, spec.format.output, spec.schema_compatibility
    if converter is not ConverterType.JSON:
        message = f"Once has no effect with the converter {converter}: remove it, or use Json"
        yield FieldError(_INFERENCE, message, (_CONVERTER,))
    elif not output.has_datums:
        message = f"Once has no effect with the output {output}: remove it, or use the output Avro or Parquet"
        yield FieldError(_INFERENCE, message, (_OUTPUT,))
    elif compatibility is not SchemaCompatibility.NONE:
        message = f"{compatibility} has no effect: all records of a topic have its inferred schema; remove it"
        yield FieldError(_COMPATIBILITY, message, (_INFERENCE,))
    if spec.format.bare_value_schema is not None:
        message = "Once cannot be combined with spec.format.schema: set only one of them"
        yield FieldError(_INFERENCE, message, (_SCHEMA,))


def transforms_json_schema(spec: Spec) -> bool:
    """Whether values are read under their JSON Schema for any output, because transforms change them."""
    is_json_schema = spec.format.converter is ConverterType.JSON_SCHEMA
    return is_json_schema and any(each.reads_value for each in spec.transforms)


def _unknown_fields(spec: Spec) -> Iterator[FieldError]:
    choice, converter, output = spec.format.unknown_fields, spec.format.converter, spec.format.output
    if choice is UnknownFields.FAIL:
        return
    if converter not in _OF_OBJECTS:
        message = f"{choice} has no effect with the converter {converter}: remove it, or use Json or JsonSchema"
        yield FieldError(_UNKNOWN_FIELDS, message, (_CONVERTER,))
    elif not output.has_datums and not transforms_json_schema(spec):
        message = f"{choice} has no effect with the output {output}: remove it, or use the output Avro or Parquet"
        yield FieldError(_UNKNOWN_FIELDS, message, (_OUTPUT,))
