"""The rules for the schema of bare values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.manifests import accepted, spec_errors

HERE = "spec.format.schema"


def manifest(converter: str = "Avro", compatibility: str | None = None, **schema: str) -> dict[str, object]:
    section: Any = {"converter": converter, "schema": schema}
    if converter == "Json":
        section["output"] = "Avro"
    return {"spec.format": section} | ({"spec.schemaCompatibility": compatibility} if compatibility else {})


VALID = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'


@pytest.mark.parametrize(
    "changes",
    [
        manifest(text=VALID),
        manifest(configMap="c", key="k"),
        manifest("Json", text=VALID),
        manifest("Protobuf", configMap="c", key="k", message="M"),
        manifest(text=VALID, compatibility="None"),
        {},
    ],
)
def test_a_schema_is_a_text_or_in_a_config_map(changes: dict[str, object]) -> None:
    accepted(changes)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (manifest(), f"{HERE}.text: is missing: set text, or configMap and key"),
        (manifest(text=VALID, configMap="c", key="k"), f"{HERE}.configMap: cannot be combined with text: "),
        (manifest(configMap="c"), f"{HERE}.key: is missing: it names the schema in the ConfigMap c"),
        (manifest(text=VALID, key="k"), f"{HERE}.key: k has no effect without configMap: remove it"),
        (manifest("Text", text=VALID), f"{HERE}: has no effect with the converter Text: remove it, or use Avro"),
        (manifest("Protobuf", text="x"), f"{HERE}.message: is missing: the converter Protobuf needs the full name"),
        (manifest(text=VALID, message="M"), f"{HERE}.message: M has no effect with the converter Avro: remove it"),
        (manifest(text=VALID, compatibility="Backward"), "spec.schemaCompatibility: Backward has no effect: all"),
    ],
)  # fmt: skip
def test_another_combination_is_rejected_at_its_field(changes: dict[str, object], error: str) -> None:
    assert [found for found in spec_errors(changes) if found.startswith(error)]
