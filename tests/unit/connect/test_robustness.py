"""Schema texts of any form: a schema is translated or rejected as invalid, and nothing else happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.avro.connect_values import normaliser
from sink_job.avro.to_connect import connect_schema, parse_registered
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_encoder import json_encoder
from sink_job.connect.projection import can_project
from sink_job.connect.schema import RegisteredSchema, Schema, schema_id
from sink_job.json.connect_envelope import envelope_schema
from sink_job.json.json_schema.to_connect import json_connect_schema
from tests.unit.avro.reading_schema import reading_schema


def of_avro(text: str) -> Schema:
    avro = parse_registered(RegisteredSchema("1", "AVRO", text))
    json.dumps(reading_schema(avro))
    normaliser(avro)
    return connect_schema(avro, 1)


def of_json_schema(text: str) -> Schema:
    return json_connect_schema(RegisteredSchema("1", "JSON", text))


def of_envelope(text: str) -> Schema:
    found = envelope_schema(text.encode())
    if found is None:
        raise InvalidSchema("no schema")
    return found


_KEYS: dict[Callable[[str], Schema], list[str]] = {
    of_avro: [
        *("type", "name", "namespace", "fields", "symbols", "size", "items", "values", "default", "doc", "logicalType"),
        *("scale", "precision", "connect.name", "connect.type", "connect.version", "connect.default", "avro.x"),
        *("connect.parameters", "connect.internal.type"),
    ],
    of_json_schema: [
        *("type", "properties", "items", "oneOf", "anyOf", "allOf", "$ref", "enum", "title", "default", "definitions"),
        *("$id", "connect.type", "connect.index", "connect.version", "connect.parameters", "additionalProperties"),
    ],
    of_envelope: [
        *("type", "fields", "field", "items", "keys", "values", "optional", "name", "version", "parameters", "default"),
    ],
}
_WORDS = [
    *(
        "record",
        "enum",
        "fixed",
        "array",
        "map",
        "int",
        "long",
        "bytes",
        "string",
        "null",
        "decimal",
        "date",
        "R",
        "n.R",
    ),
    *("object", "integer", "number", "#", "#/definitions/R", "x.json", "struct", "int32", "float", "MapEntry", "int8"),
    *("io.confluent.connect.avro.MapEntry", "org.apache.kafka.connect.data.Decimal", "key", "value", "R", ""),
]


def documents(keys: list[str]) -> st.SearchStrategy[Any]:
    """JSON values with the keywords of a schema language."""
    scalars = st.sampled_from(_WORDS) | st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats()
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*keys, "R", "key"]), inner, max_size=5)
        ),
        max_leaves=25,
    )


@pytest.mark.parametrize("translate", list(_KEYS))
@given(data=st.data())
def test_any_document_is_translated_or_rejected(translate: Callable[[str], Schema], data: st.DataObject) -> None:
    document = data.draw(documents(_KEYS[translate]))
    try:
        found = translate(json.dumps(document))
        json_encoder(found)
        reason = can_project(found, found)
    except InvalidSchema:
        return
    assert reason is None
    assert len(schema_id(found)) == 32
