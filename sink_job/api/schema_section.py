"""The section of a manifest for values without framing (`spec.format.schema`): one schema for all of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import ConverterType, SchemaCompatibility
from sink_job.api.field_errors import FieldError, Path
from sink_job.api.field_types import ObjectName, TextValidator, check_data_key

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

MAX_TEXT: Final = 262_144
"""Maximum length of a schema in the manifest."""
MAX_NAME: Final = 512
"""Maximum length of the full name of a message."""

LANGUAGES: Final = {
    ConverterType.AVRO: "AVRO",
    ConverterType.PROTOBUF: "PROTOBUF",
    ConverterType.JSON_SCHEMA: "JSON",
    ConverterType.JSON: "JSON VALUES",
}
"""The converters that read values without framing, and the language of their schemas. `JSON VALUES`: the text shows
whether it is an Avro schema, a JSON Schema or a field list."""

INFERRED_ID: Final = "inferred"
"""The id of the inferred schema of a topic."""

_HERE: Final = ("spec", "format", "schema")
_CONVERTER: Final = ("spec", "format", "converter")


def check_config_map_key(text: str) -> None:
    """Checks a key of a Kubernetes ConfigMap: as one of a Secret."""
    try:
        check_data_key(text)
    except ValueError as error:
        raise ValueError(str(error).replace("a Secret", "a ConfigMap")) from None


_KEY = TextValidator(check_config_map_key, {"pattern": "^[-._a-zA-Z0-9]+$", "minLength": 1, "maxLength": 253})


def check_message_name(text: str) -> None:
    """Checks the full name of a Protobuf message."""
    if len(text) > MAX_NAME or not re.fullmatch(_FULL_NAME, text):
        raise ValueError("is not the full name of a Protobuf message: use package.Message or package.Message.Nested")


_FULL_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
_MESSAGE = TextValidator(check_message_name, {"pattern": f"^{_FULL_NAME}$", "minLength": 1, "maxLength": MAX_NAME})


class SchemaSpec(SpecModel):
    """The schema of values without framing. Set either text, or configMap and key."""

    text: Annotated[
        str | None,
        description(
            example='{"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": "string"}]}',
            min_length=1,
            max_length=MAX_TEXT,
        ),
    ] = None
    """The schema. For the converter Json: a field list, an Avro record or a JSON Schema. A change closes the open
    objects."""
    config_map: Annotated[ObjectName | None, description(example="flights-schema")] = None
    """ConfigMap with the schema. A driver reads it when it starts: restart the sink after a change of the ConfigMap."""
    key: Annotated[Annotated[str, _KEY] | None, description(example="flight.avsc")] = None
    """Key in the ConfigMap."""
    message: Annotated[Annotated[str, _MESSAGE] | None, description(example="example.Flight")] = None
    """Full name of the message of the values. Required by the converter Protobuf, and rejected with others."""


class UnframedSettings(SpecModel):
    """The schema of values without framing. `id` is the one of its copies in the ledger, `message` the full name of a
    Protobuf message in it."""

    id: str
    message: str | None = None


def unframed_settings(
    converter: ConverterType, schema: SchemaSpec | None, *, infers: bool = False
) -> UnframedSettings | None:
    """The settings for a schema whose text is known, or for an inferred one; None without one."""
    if infers:
        return UnframedSettings(id=INFERRED_ID)
    if schema is None or schema.text is None or converter not in LANGUAGES:
        return None
    return UnframedSettings(id=text_id(LANGUAGES[converter], schema.text), message=schema.message)


def text_id(language: str, text: str) -> str:
    """The id of a schema that is in no registry: `text-` and 32 hexadecimal digits of a hash of its content."""
    return f"text-{hashlib.sha256(f'{language} {text}'.encode()).hexdigest()[:32]}"


def check_schema(spec: Spec) -> Iterator[FieldError]:
    """The errors in the combination of fields of the section, and with other sections."""
    schema, converter = spec.format.unframed_schema, spec.format.converter
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
