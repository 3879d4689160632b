"""JSON values under a schema in a manifest: the converter Json with schema or inference, and unknown properties."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.manifests import accepted, spec_errors

FIELDS = "- {name: carrier, type: string}"


def json_format(**given: Any) -> dict[str, object]:
    return {"spec.format": {"output": "Parquet", **given}}


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
@pytest.mark.parametrize("source", [{"schema": {"text": FIELDS}}, {"inference": "Once"}])
def test_json_with_a_schema_can_be_avro_and_parquet(output: str, source: dict[str, Any]) -> None:
    sink = accepted(json_format(**source), {"spec.format.output": output})
    assert sink.object_settings().has_schemas
    assert sink.object_settings().bare_values is not None


def test_the_inferred_schema_has_a_fixed_id() -> None:
    bare_values = accepted(json_format(inference="Once")).object_settings().bare_values
    assert bare_values is not None
    assert bare_values.id == "inferred"


def test_parquet_of_json_needs_a_schema_or_inference() -> None:
    (error,) = spec_errors(json_format())
    assert error.endswith("ConnectJson, or Json with schema or inference")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"inference": "once"}, "spec.format.inference: once is not one of None, Once; did you mean Once?"),
        (
            {"schema": [{"name": "carrier", "type": "string"}]},
            "spec.format.schema: a list is not a mapping: put a field list into "
            "spec.format.schema.text, as text after `text: |`",
        ),
        (
            {"schema": {"text": [{"name": "carrier", "type": "string"}]}},
            "spec.format.schema.text: a list is not text: write it as text, after `text: |`",
        ),
        (
            {"schema": {"fields": [{"name": "carrier", "type": "string"}]}},
            "spec.format.schema.fields: is not a field of spec.format.schema: put a field list into "
            "spec.format.schema.text, as text after `text: |`",
        ),
    ],
)
def test_a_misspelled_schema_is_one_error_that_says_how_to_write_it(given: dict[str, Any], error: str) -> None:
    assert spec_errors(json_format(**given)) == [error]


@pytest.mark.parametrize("output", ["Json", "Bytes"])
def test_a_schema_has_no_effect_where_json_is_written_as_it_came(output: str) -> None:
    (error,) = spec_errors(json_format(schema={"text": FIELDS}), {"spec.format.output": output})
    assert error == (
        f"spec.format.schema: has no effect with the converter Json and the output {output}: remove it, or use the "
        "output Avro or Parquet"
    )


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            {"converter": "ConnectJson", "inference": "Once"},
            "spec.format.inference: Once has no effect with the converter ConnectJson: remove it, or use Json",
        ),
        (
            {"output": "Json", "inference": "Once"},
            "spec.format.inference: Once has no effect with the output Json: remove it, or use the output Avro or "
            "Parquet",
        ),
        (
            {"inference": "Once", "schema": {"text": FIELDS}},
            "spec.format.inference: Once cannot be combined with spec.format.schema: set only one of them",
        ),
        (
            {"converter": "ConnectJson", "unknownFields": "Drop"},
            "spec.format.unknownFields: Drop has no effect with the converter ConnectJson: remove it, or use Json or "
            "JsonSchema",
        ),
        (
            {"output": "Json", "unknownFields": "Json"},
            "spec.format.unknownFields: Json has no effect with the output Json: remove it, or use the output Avro or "
            "Parquet",
        ),
    ],
)
def test_a_setting_without_effect_is_rejected(given: dict[str, Any], error: str) -> None:
    assert spec_errors(json_format(**given)) == [error]


@pytest.mark.parametrize("source", [{"schema": {"text": FIELDS}}, {"inference": "Once"}])
def test_the_compatibility_of_one_schema_has_no_effect(source: dict[str, Any]) -> None:
    (error,) = spec_errors(json_format(**source), {"spec.schemaCompatibility": "Separate"})
    assert error.startswith("spec.schemaCompatibility: Separate has no effect: all records")


def test_unknown_fields_apply_to_json_schemas_of_a_registry() -> None:
    registry = {"url": ["https://registry.example.com"]}
    accepted(json_format(converter="JsonSchema", registry=registry, unknownFields="Drop"))


def test_a_change_of_the_handling_of_unknown_fields_closes_open_objects() -> None:
    one, other = (
        accepted(json_format(inference="Once", unknownFields=each)).object_settings() for each in ("Fail", "Json")
    )
    assert one != other
