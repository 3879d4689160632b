"""The rules of `spec.transforms`."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.enums import TransformType
from sink_job.api.rules.transform_rules import FIELDS_OF
from tests.unit.api.manifests import accepted, spec_errors

HERE = "spec.transforms"
VALID: list[dict[str, Any]] = [
    {"type": "Filter", "when": {"topic": "f.*", "header": "h", "tombstone": False, "field": "a", "values": ["x"]}},
    {"type": "Insert", "field": "t", "source": "Topic", "when": {"header": "h", "not": True}},
    {"type": "Insert", "field": "t", "source": "Text", "text": ""},
    {"type": "Keep", "fields": ["a"]},
    {"type": "Drop", "fields": ["a"]},
    {"type": "Rename", "renames": {"a": "b"}},
    {"type": "Mask", "fields": ["a"], "replacement": "*"},
    {"type": "Cast", "casts": {"a": "Int8"}},
    {"type": "Cast", "castTo": "Text"},
    {"type": "Flatten", "delimiter": "_"},
    {"type": "Extract", "field": "a"},
    {"type": "Hoist", "field": "a"},
    {"type": "Timestamp", "timestampType": "Text", "timestampFormat": "yyyy"},
    {"type": "Timestamp", "timestampType": "UnixTime", "unit": "Seconds", "field": "a"},
]
TYPED: dict[str, Any] = {"type": "Timestamp", "timestampType": "Date", "field": "a"}


def test_each_type_is_accepted_with_its_fields() -> None:
    assert len(accepted({HERE: VALID}).spec.transforms) == len(VALID)
    assert {each["type"] for each in VALID} == set(TransformType) - {TransformType.UNWRAP}
    assert set(FIELDS_OF) == set(TransformType)


@pytest.mark.parametrize(
    ("transform", "error"),
    [
        ({"type": "Filter"}, ".when: is missing: Filter needs it"),
        ({"type": "Extract"}, ".field: is missing: Extract needs it"),
        ({"type": "Keep", "fields": ["a"], "field": "a"}, ".field: a has no effect on Keep: remove it"),
        ({"type": "Insert", "field": "a", "source": "Text"}, ".text: is missing: the source Text needs it"),
        (
            {"type": "Insert", "field": "a", "source": "Topic", "text": "x"},
            ".text: x has no effect with the source Topic: remove it, or use the source Text",
        ),
        ({"type": "Cast"}, ": needs either casts, for fields, or castTo, for the whole value"),
        (
            {"type": "Cast", "casts": {"a": "Int8"}, "castTo": "Int8"},
            ": needs either casts, for fields, or castTo, for the whole value",
        ),
        (
            {"type": "Rename", "renames": {"a": "x", "b": "x"}},
            ".renames: needs at least one name, and must not have a new name twice",
        ),
        ({"type": "Cast", "casts": {"": "Int8"}}, ".casts: has a name that is empty"),
        ({"type": "Timestamp", "timestampType": "Text"}, ".timestampFormat: is missing: the type Text needs it"),
        (
            {"type": "Timestamp", "timestampType": "Text", "timestampFormat": "yy"},
            ".timestampFormat: yy has yy: use yyyy, M or MM, and X to XXX",
        ),
        (
            {"type": "Filter", "when": {"not": True}},
            ".when: has no condition: set topic, header, tombstone or field",
        ),
        (
            {"type": "Filter", "when": {"header": "h", "values": ["a"]}},
            ".when.values: a list has no effect without field: set field",
        ),
    ],
)
def test_an_incomplete_transform_is_an_error(transform: dict[str, Any], error: str) -> None:
    assert spec_errors({HERE: [transform]}) == [f"{HERE}[0]{error}"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            {"spec.format": {"converter": "Text"}},
            "cannot be used with spec.format.converter Text: transforms but Filter without field read JSON or values "
            "with a schema; use the converter Json, ConnectJson, Avro, Protobuf or JsonSchema",
        ),
        (
            {"spec.format": {"output": "Bytes"}},
            "cannot be used with spec.format.output Bytes, which writes values as they came; use another output",
        ),
    ],
)
def test_what_transforms_cannot_change_is_an_error(changes: dict[str, object], error: str) -> None:
    assert spec_errors(changes, {HERE: VALID[:1]}) == [f"{HERE}: {error}"]


@pytest.mark.parametrize("converter", ["Text", "Bytes", "ConnectJson"])
def test_a_filter_that_reads_no_field_can_be_used_with_each_converter(converter: str) -> None:
    when = {"topic": "f.*", "header": "h", "tombstone": True}
    accepted({"spec.format": {"converter": converter}, HERE: [{"type": "Filter", "when": when}]})


def test_the_schema_of_transformed_values_can_be_inferred() -> None:
    accepted({"spec.format": {"output": "Parquet", "inference": "Once"}, HERE: VALID[:1]})


REGISTRY: dict[str, Any] = {"url": ["https://registry"]}


@pytest.mark.parametrize("converter", ["Avro", "Protobuf", "JsonSchema"])
def test_values_with_the_schema_of_a_registry_can_be_transformed(converter: str) -> None:
    every = [*VALID, TYPED, {"type": "Unwrap"}]
    accepted({"spec.format": {"converter": converter, "registry": REGISTRY}, HERE: every})


def test_unknown_properties_of_transformed_values_are_dropped_for_each_output() -> None:
    json_schema = {"converter": "JsonSchema", "registry": REGISTRY, "unknownFields": "Drop"}
    accepted({"spec.format": {**json_schema, "decimals": "Numeric"}, HERE: VALID[:1]})
    (error,) = spec_errors({"spec.format": json_schema, HERE: [{"type": "Filter", "when": {"header": "h"}}]})
    assert error.startswith("spec.format.unknownFields: Drop has no effect with the output Json")


def test_change_events_need_a_schema() -> None:
    unwrap = {"type": "Unwrap", "deletes": "Rewrite", "addFields": ["op", "source.ts_ms"]}
    accepted({"spec.format": {"converter": "ConnectJson"}, HERE: [unwrap]})
    assert spec_errors({HERE: [unwrap]}) == [
        f"{HERE}[0].type: Unwrap needs change events with a schema: use Extract with the field after, or a converter "
        "with schemas"
    ]


def test_types_of_times_need_values_with_a_schema() -> None:
    accepted({"spec.format": {"converter": "ConnectJson"}, HERE: [TYPED]})
    assert spec_errors({HERE: [TYPED]}) == [
        f"{HERE}[0].timestampType: Date needs values with a schema: use Text or UnixTime, or a converter with schemas"
    ]
