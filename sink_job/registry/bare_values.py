"""The schema of bare values as a registry: it knows one id, that of the schema in the manifest.

So the schema has copies in the ledger as those of a registry, and a rebuild needs neither the manifest nor the
ConfigMap that the schema came from.
"""

from __future__ import annotations

from msgspec import structs

from sink_job.api.enums import ConverterType
from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.schema_section import LANGUAGES, text_id
from sink_job.connect.errors import InvalidSchema, rejecting
from sink_job.connect.schema import RegisteredSchema
from sink_job.registry.base import SchemaRegistry


class BareValueSchema:
    """A `SchemaRegistry` with one schema. `other` has the schemas of keys; None if they have none."""

    def __init__(self, schema: RegisteredSchema, other: SchemaRegistry | None = None) -> None:
        self._schema = schema
        self._other = other

    @property
    def url(self) -> str:
        """The registry of keys, or the field of the manifest."""
        return "spec.format.schema" if self._other is None else self._other.url

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        """As `SchemaRegistry.fetch`."""
        if schema_id == self._schema.id and not is_key:
            return self._schema
        return None if self._other is None else self._other.fetch(topic, schema_id, is_key=is_key)

    def close(self) -> None:
        """Closes the other registry."""
        if self._other is not None:
            self._other.close()


def bare_value_schema(settings: FormatSpec) -> RegisteredSchema | None:
    """The schema of bare values; None if there is none.

    Raises ConfigurationError if its text is missing or is no valid schema of the converter's language.
    """
    schema = settings.bare_value_schema
    if schema is None:
        return None
    if schema.text is None:
        raise ConfigurationError(f"spec.format.schema: the ConfigMap {schema.config_map} was not read")
    try:
        found = _registered(settings.converter, schema.text)
        if settings.converter is ConverterType.JSON:
            from sink_job.codecs.schema_check import check_values

            check_values(found, settings)
        else:
            _check(found, schema.message)
    except InvalidSchema as error:
        raise ConfigurationError(
            f"spec.format.schema cannot be used with the converter {settings.converter}: {error}. Correct the schema."
        ) from None
    return found


def _registered(converter: ConverterType, text: str) -> RegisteredSchema:
    """Raises InvalidSchema if the text of a schema of JSON values is in no known language."""
    language = LANGUAGES[converter]
    found = RegisteredSchema(text_id(language, text), language, text)
    if converter is not ConverterType.JSON:
        return found
    from sink_job.json.typed.schema_source import language_of

    return structs.replace(found, language=language_of(text))


def _check(schema: RegisteredSchema, message: str | None) -> None:
    """Raises InvalidSchema if the schema is not valid, or lacks the Protobuf message `message`, and TransientError."""
    match schema.language:
        case "AVRO":
            from sink_job.avro.to_connect import connect_schema, parse_registered

            connect_schema(parse_registered(schema))
        case "JSON":
            from sink_job.json.json_schema.to_connect import json_connect_schema

            json_connect_schema(schema)
        case _:
            _check_message(schema, message)


def _check_message(schema: RegisteredSchema, message: str | None) -> None:
    from sink_job.protobuf import to_connect as protobuf_to_connect
    from sink_job.protobuf.compiler import compile_schema
    from sink_job.protobuf.files import ProtobufFiles

    assert message is not None, "a manifest names the message"
    try:
        with rejecting("the Protobuf schema"):
            protobuf_to_connect.connect_schema(ProtobufFiles(compile_schema(schema)).named(message))
    except OSError as error:
        raise TransientError(f"spec.format.schema cannot be compiled: {error}") from error
