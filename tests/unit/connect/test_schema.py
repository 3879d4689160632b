"""Ids of schemas, in the ledger and in the registry, and labels for messages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.connect.schema import (
    Default,
    Field,
    RegisteredSchema,
    Schema,
    SchemaType,
    key_schema_id,
    of_subject,
    registry_schema_id,
    schema_id,
    shown_schema_id,
)
from tests.unit.connect.strategies import schema_pairs

INT = Schema(SchemaType.INT32)


@settings(max_examples=50)
@given(schema_pairs())
def test_schemas_have_one_id_exactly_if_they_are_equal(pair: tuple[Schema, Schema]) -> None:
    one, other = pair
    assert (schema_id(one) == schema_id(other)) == (one == other)


@pytest.mark.parametrize(
    "changed",
    [
        Schema(SchemaType.INT64),
        Schema(SchemaType.INT32, "n"),
        Schema(SchemaType.INT32, optional=True),
        Schema(SchemaType.INT32, version=1),
        Schema(SchemaType.INT32, doc=""),
        Schema(SchemaType.INT32, parameters=(("a", "b"),)),
        Schema(SchemaType.INT32, default=Default("0")),
        Schema(SchemaType.INT32, fields=(Field("a", INT),)),
        Schema(SchemaType.INT32, keys=INT),
        Schema(SchemaType.INT32, values=INT),
        Schema(SchemaType.INT32, logical="date"),
        Schema(SchemaType.INT32, symbols=("A",)),
        Schema(SchemaType.INT32, subject="s"),
    ],
)
def test_every_attribute_is_part_of_the_id(changed: Schema) -> None:
    assert schema_id(changed) != schema_id(INT)


def test_an_id_in_the_ledger_never_changes() -> None:
    schema = Schema(SchemaType.STRUCT, "a.B", version=2, fields=(Field("x", INT),))
    assert schema_id(schema) == "97f0976afa787a0e89b2509d0cc8e477"


@given(st.text(max_size=5).filter(lambda text: not text.startswith("key-")))
def test_an_id_of_keys_is_another_one_and_leads_back(text: str) -> None:
    assert registry_schema_id(text) == (text, False)
    assert registry_schema_id(key_schema_id(text)) == (text, True)


def test_an_id_of_keys_is_shown_as_such() -> None:
    assert shown_schema_id("7") == "7"
    assert shown_schema_id(key_schema_id("7")) == "7 (of the key)"


@pytest.mark.parametrize(
    ("more", "label"),
    [
        ({}, "schema 7"),
        ({"subject": "s"}, "schema 7 (subject s)"),
        ({"subject": "s", "version": 3}, "schema 7 (subject s version 3)"),
        ({"version": 3}, "schema 7"),
    ],
)
def test_a_rejection_names_the_schema_with_its_subject(more: dict[str, object], label: str) -> None:
    found = RegisteredSchema("7", "AVRO", "{}", **more)  # type: ignore[arg-type]
    assert found.label == label
    assert found.reject("it is odd") == f"{label}: it is odd"


def test_the_whole_schema_has_the_subject_of_the_registered_one() -> None:
    assert of_subject(INT, RegisteredSchema("7", "AVRO", "{}", subject="s")) == Schema(SchemaType.INT32, subject="s")


def test_parameters_are_found_by_name() -> None:
    assert Schema(SchemaType.INT32, parameters=(("a", "1"), ("b", "2"))).parameter == {"a": "1", "b": "2"}
