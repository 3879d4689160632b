"""The section of a manifest for bare values (`spec.format.schema`): one schema for all of them."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Final

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import ConverterType
from sink_job.api.field_types import ObjectName, TextValidator, check_data_key

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
"""The converters that read bare values, and the language of their schemas. `JSON VALUES`: the text shows
whether it is an Avro schema, a JSON Schema or a field list."""

TEXT_PREFIX: Final = "text-"
"""The prefix of the ids of schemas that are in no registry."""
INFERRED_ID: Final = "inferred"
"""The id of the inferred schema of a topic."""


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
    """The schema of bare values. Set either text, or configMap and key."""

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


class BareValueSettings(SpecModel):
    """The schema of bare values. `id` is the one of its copies in the ledger, `message` the full name of a
    Protobuf message in it."""

    id: str
    message: str | None = None


def bare_value_settings(
    converter: ConverterType, schema: SchemaSpec | None, *, infers: bool = False
) -> BareValueSettings | None:
    """The settings for a schema whose text is known, or for an inferred one; None without one."""
    if infers:
        return BareValueSettings(id=INFERRED_ID)
    if schema is None or schema.text is None or converter not in LANGUAGES:
        return None
    return BareValueSettings(id=text_id(LANGUAGES[converter], schema.text), message=schema.message)


def text_id(language: str, text: str) -> str:
    """The id of a schema that is in no registry: `text-` and 32 hexadecimal digits of a hash of its content."""
    return f"{TEXT_PREFIX}{hashlib.sha256(f'{language} {text}'.encode()).hexdigest()[:32]}"
