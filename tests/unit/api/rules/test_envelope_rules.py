"""`spec.format.envelope` in combination with outputs, keys and schemas."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import accepted, spec_errors

ENVELOPE: dict[str, object] = {"spec.format.envelope": True}
REGISTRY: dict[str, object] = {"spec.format.registry": {"url": ["https://registry.example.com"]}}
AVRO: dict[str, object] = {"spec.format.converter": "Avro", **REGISTRY}
AVRO_KEYS: dict[str, object] = {"spec.format.keyConverter": "Avro"}


def output(name: str) -> dict[str, object]:
    return {"spec.format.output": name}


@pytest.mark.parametrize("name", ["Json", "Avro", "Parquet"])
@pytest.mark.parametrize("compatibility", ["None", "Separate", "Backward", "Forward", "Full"])
def test_an_envelope_can_be_in_json_avro_and_parquet(name: str, compatibility: str) -> None:
    accepted(ENVELOPE, AVRO, output(name), {"spec.schemaCompatibility": compatibility})


def test_an_envelope_cannot_be_in_bytes() -> None:
    assert spec_errors(ENVELOPE, output("Bytes")) == [
        "spec.format.envelope: true cannot be used with the output Bytes: remove it, or use the output Json, Avro or "
        "Parquet"
    ]


def test_an_envelope_needs_records_with_schemas_in_parquet() -> None:
    (error,) = spec_errors(ENVELOPE, output("Parquet"))
    assert error.startswith("spec.format.output: Parquet needs records with a schema")


@pytest.mark.parametrize("converter", ["Json", "Text", "Bytes", "Cbor", "MessagePack", "ConnectJson"])
def test_an_envelope_needs_no_path_with_the_key_for_a_converter_of_keys(converter: str) -> None:
    accepted(ENVELOPE, {"spec.format.keyConverter": converter})


def test_a_registry_for_keys_alone_is_accepted_with_an_envelope() -> None:
    accepted(ENVELOPE, AVRO_KEYS, REGISTRY)


@pytest.mark.parametrize("name", ["Avro", "Parquet"])
@pytest.mark.parametrize("converter", ["Json", "Cbor", "MessagePack"])
def test_keys_without_a_schema_cannot_be_in_avro_and_parquet(name: str, converter: str) -> None:
    assert spec_errors(ENVELOPE, AVRO, output(name), {"spec.format.keyConverter": converter}) == [
        f"spec.format.keyConverter: {converter} cannot be used with an envelope and the output {name}: its keys have "
        "no schema; use Text, or Bytes, or a converter with schemas, or the output Json"
    ]


@pytest.mark.parametrize("compatibility", ["Backward", "Forward", "Full"])
def test_keys_with_schemas_cannot_be_projected(compatibility: str) -> None:
    chosen: dict[str, object] = {"spec.schemaCompatibility": compatibility}
    assert spec_errors(ENVELOPE, AVRO, AVRO_KEYS, output("Avro"), chosen) == [
        f"spec.schemaCompatibility: {compatibility} cannot be used with an envelope, keyConverter Avro and the output "
        "Avro: schemas of keys are not projected; use None or Separate, keyConverter Bytes, or the output Json"
    ]
    accepted(ENVELOPE, AVRO, AVRO_KEYS, chosen)
    accepted(ENVELOPE, AVRO, {"spec.format.keyConverter": "Text"}, output("Avro"), chosen)


def test_an_envelope_has_a_timestamp_also_if_values_have_none() -> None:
    iso: dict[str, object] = {"spec.format.timestamps": "Iso"}
    accepted(ENVELOPE, iso)
    (error,) = spec_errors(ENVELOPE, AVRO, iso, output("Parquet"))
    assert error.startswith("spec.format.timestamps: Iso has no effect with the output Parquet")
