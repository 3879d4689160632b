"""The section of a manifest for the schema of bare values."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.spec import ObjectSettings
from tests.unit.api.manifests import accepted, spec_errors

TEXT = '"long"'
REGISTRY = {"url": ["https://registry.example.com"]}
HERE = "spec.format.schema"


def avro(**schema: Any) -> dict[str, object]:
    return {"spec.format": {"converter": "Avro", "schema": schema}}


PROTO = 'syntax = "proto3"; package example; message Flight { int64 number = 1; }'


def protobuf(**schema: Any) -> dict[str, object]:
    return {"spec.format": {"converter": "Protobuf", "schema": {"text": PROTO, **schema}}}


def test_a_text_with_its_message_replaces_the_registry_for_protobuf() -> None:
    accepted(protobuf(message="example.Flight"))
    accepted(protobuf(message="Flight"))


def test_protobuf_needs_the_name_of_its_message() -> None:
    assert spec_errors(protobuf()) == [
        f"{HERE}.message: is missing: the converter Protobuf needs the full name of a message"
    ]


def test_a_message_has_no_effect_with_other_converters_than_protobuf() -> None:
    assert spec_errors(avro(text=TEXT, message="example.Flight")) == [
        f"{HERE}.message: example.Flight has no effect with the converter Avro: remove it"
    ]


@pytest.mark.parametrize("name", ["", ".Flight", "example.", "example..Flight", "1.Flight", "a b", "F" * 513])
def test_a_message_is_a_full_name(name: str) -> None:
    (error,) = spec_errors(protobuf(message=name))
    assert error.startswith(f"{HERE}.message: ")
    assert "is not the full name of a Protobuf message: use package.Message or package.Message.Nested" in error


@pytest.mark.parametrize("converter", ["Avro", "JsonSchema"])
def test_a_text_replaces_the_registry(converter: str) -> None:
    accepted(avro(text=TEXT), {"spec.format.converter": converter})


def test_a_key_of_a_config_map_replaces_the_registry() -> None:
    accepted(avro(configMap="flights", key="flight.avsc"))


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"key": "a"}, f"{HERE}.text: is missing: set text, or configMap and key"),
        ({"configMap": "flights"}, f"{HERE}.key: is missing: it names the schema in the ConfigMap flights"),
        ({"text": TEXT, "key": "a"}, f"{HERE}.key: a has no effect without configMap: remove it"),
        (
            {"text": TEXT, "configMap": "flights", "key": "a"},
            f"{HERE}.configMap: cannot be combined with text: set only one of them",
        ),
    ],
)
def test_the_schema_is_at_one_place(schema: Any, error: str) -> None:
    assert error in spec_errors(avro(**schema))


def test_a_key_is_one_of_a_config_map() -> None:
    assert spec_errors(avro(configMap="flights", key="a/b")) == [
        f"{HERE}.key: a/b is not a valid key of a ConfigMap: use letters, digits, - _ and ."
    ]


@pytest.mark.parametrize("converter", ["ConnectJson", "Text"])
def test_a_schema_has_no_effect_with_other_converters(converter: str) -> None:
    assert spec_errors(avro(text=TEXT), {"spec.format.converter": converter}) == [
        f"{HERE}: has no effect with the converter {converter}: remove it, or use Avro, Protobuf, JsonSchema or Json"
    ]


def test_a_registry_has_no_effect_beside_a_schema() -> None:
    assert spec_errors(avro(text=TEXT), {"spec.format.registry": REGISTRY}) == [
        "spec.format.registry: has no effect with spec.format.schema: remove one of them"
    ]


def test_keys_with_a_schema_need_the_registry_beside_the_schema_of_values() -> None:
    keys = {"spec.format.keyConverter": "Avro", "spec.partitioner": {"type": "Field", "fields": ["$key.id"]}}
    accepted(avro(text=TEXT), keys, {"spec.format.registry": REGISTRY})
    assert spec_errors(avro(text=TEXT), keys) == [
        "spec.format.registry: is missing: the converter Avro reads schemas from a registry"
    ]


@pytest.mark.parametrize("compatibility", ["Separate"])
def test_one_schema_needs_no_compatibility(compatibility: str) -> None:
    assert spec_errors(avro(text=TEXT), {"spec.schemaCompatibility": compatibility}) == [
        f"spec.schemaCompatibility: {compatibility} has no effect: all records have the schema of {HERE}; remove it"
    ]


def object_settings(text: str, converter: str = "Avro") -> ObjectSettings:
    return accepted(avro(text=text), {"spec.format.converter": converter}).object_settings()


def test_the_object_settings_have_the_id_of_the_schema_and_not_its_text() -> None:
    found = object_settings(TEXT)
    assert found.bare_values is not None
    assert found.bare_values.id.startswith("text-")
    assert found.format.bare_value_schema is None


def test_another_text_or_language_is_another_schema() -> None:
    assert object_settings(TEXT) == object_settings(TEXT)
    assert (
        len(
            {
                str(each.bare_values)
                for each in (object_settings(TEXT), object_settings('"int"'), object_settings(TEXT, "JsonSchema"))
            }
        )
        == 3
    )


def test_the_text_of_a_config_map_is_as_one_in_the_manifest() -> None:
    sink = accepted(avro(configMap="flights", key="flight.avsc"))
    assert sink.object_settings().bare_values is None
    assert sink.with_schema_text(TEXT).object_settings() == object_settings(TEXT)
