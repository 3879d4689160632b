"""The rules for `spec.format.schema`, the schema of bare values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import ConverterType, SchemaCompatibility
from sink_job.api.field_errors import FieldError, Path
from sink_job.api.sections.schema_section import LANGUAGES, SchemaSpec

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_HERE: Final = ("spec", "format", "schema")
_CONVERTER: Final = ("spec", "format", "converter")


def check_schema(spec: Spec) -> Iterator[FieldError]:
    """The errors in the combination of fields of the section, and with other sections."""
    schema, converter = spec.format.bare_value_schema, spec.format.converter
    if schema is None:
        return
    yield from _source(schema)
    if converter not in LANGUAGES:
        message = f"has no effect with the converter {converter}: remove it, or use Avro, Protobuf, JsonSchema or Json"
        yield FieldError(_HERE, message, (_CONVERTER,))
    yield from _message(schema.message, converter)
    compatibility, here = spec.schema_compatibility, ("spec", "schemaCompatibility")
    if compatibility is not SchemaCompatibility.NONE:
        message = f"{compatibility} has no effect: all records have the schema of {'.'.join(_HERE)}; remove it"
        yield FieldError(here, message, (_HERE,))


def _message(name: str | None, converter: ConverterType) -> Iterator[FieldError]:
    here = (*_HERE, "message")
    if name is None and converter is ConverterType.PROTOBUF:
        yield FieldError(here, "is missing: the converter Protobuf needs the full name of a message", (_CONVERTER,))
    if name is not None and converter in LANGUAGES and converter is not ConverterType.PROTOBUF:
        yield FieldError(here, f"{name} has no effect with the converter {converter}: remove it", (_CONVERTER,))


def _source(schema: SchemaSpec) -> Iterator[FieldError]:
    text, config_map, key = ((*_HERE, name) for name in ("text", "configMap", "key"))
    both: tuple[Path, ...] = (text, config_map)
    if schema.text is None and schema.config_map is None:
        yield FieldError(text, "is missing: set text, or configMap and key", both)
    if schema.text is not None and schema.config_map is not None:
        yield FieldError(config_map, "cannot be combined with text: set only one of them", both)
    if schema.config_map is not None and schema.key is None:
        yield FieldError(key, f"is missing: it names the schema in the ConfigMap {schema.config_map}", (config_map,))
    if schema.config_map is None and schema.key is not None:
        yield FieldError(key, f"{schema.key} has no effect without configMap: remove it", (config_map,))
