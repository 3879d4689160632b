"""JSON texts under the schema of a sink: what is read, what is rejected, and what happens to unknown properties."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.enums import UnknownFields
from sink_job.avro.to_connect import UNION
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.json.typed.decoder import TextReading
from sink_job.json.typed.field_list import JSON_NAME
from sink_job.json.typed.unknown_properties import COLUMN

LONG = Schema(SchemaType.INT64)
OPTIONAL = Schema(SchemaType.INT64, optional=True)
TEXT = Schema(SchemaType.STRING)


def struct(*fields: tuple[str, Schema], name: str | None = None, optional: bool = False) -> Schema:
    return Schema(SchemaType.STRUCT, name, optional, fields=tuple(Field(key, of) for key, of in fields))


def reading(schema: Schema, unknown: UnknownFields = UnknownFields.FAIL, *, bare: bool = False) -> TextReading:
    return TextReading(schema, unknown, is_bare_json=bare)


def read(found: TextReading, value: Any) -> Any:
    """The result for a text, or for the text of a value."""
    return found.read(value if isinstance(value, bytes) else json.dumps(value).encode())


def reason(found: TextReading, value: Any) -> str:
    with pytest.raises(InvalidValue) as caught:
        read(found, value)
    return str(caught.value)


@pytest.mark.parametrize("text", [b"", b"{", b'{"a": 1} x', b"\xff", b"NaN"])
def test_a_text_that_is_no_json_is_rejected(text: bytes) -> None:
    assert reason(reading(struct(("a", LONG))), text).startswith("the value cannot be read: ")


def test_a_value_has_all_fields_of_the_schema() -> None:
    found = reading(struct(("a", LONG), ("b", OPTIONAL)))
    assert read(found, {"a": 1}) == {"a": 1, "b": None}
    assert reason(found, {"b": 1}) == "the field a: a required value of type int64 is null or missing"


# -- unknown properties ----------------------------------------------------------------------------------------------


NESTED = struct(("a", LONG), ("s", struct(("b", LONG), optional=True)))
VALUE = {"a": 1, "x": 2, "s": {"b": 3, "y": {"z": 4}}}


def test_an_unknown_property_is_rejected_with_its_path() -> None:
    found = reading(NESTED)
    assert reason(found, VALUE) == "the field x: its schema does not have this property"
    assert reason(found, {"a": 1, "s": {"b": 3, "y": 0}}) == "the field s.y: its schema does not have this property"


def test_dropped_properties_are_counted_over_all_values() -> None:
    found = reading(NESTED, UnknownFields.DROP)
    assert found.schema is NESTED
    for dropped in (2, 4):
        assert read(found, VALUE) == {"a": 1, "s": {"b": 3}}
        assert found.dropped == dropped
    assert read(found, {"a": 1}) == {"a": 1, "s": None}
    assert found.dropped == 4


def test_with_json_the_unknown_properties_are_a_column_of_their_own() -> None:
    found = reading(NESTED, UnknownFields.JSON)
    assert [field.name for field in found.schema.fields] == ["a", "s", COLUMN]
    assert found.schema.fields[-1].schema.optional
    assert read(found, VALUE) == {"a": 1, "s": {"b": 3}, COLUMN: '{"x":2,"s":{"y":{"z":4}}}'}
    assert read(found, {"a": 1}).get(COLUMN) is None
    assert found.dropped == 0


@pytest.mark.parametrize("unknown", [UnknownFields.DROP, UnknownFields.JSON])
def test_other_errors_are_rejected_beside_an_unknown_property(unknown: UnknownFields) -> None:
    found = reading(NESTED, unknown)
    assert reason(found, {"a": "x", "unknown": 1}) == "the field a: a JSON value must be an integer"
    assert found.dropped == 0


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (LONG, "a struct that is not recursive"),
        (Schema(SchemaType.MAP, keys=TEXT, values=LONG), "a struct that is not recursive"),
        (struct(("a", LONG), name=UNION), "a struct that is not recursive"),
        (
            struct(("next", Schema(SchemaType.REFERENCE, "Node", optional=True)), name="Node"),
            "a struct that is not recursive",
        ),
        (struct((COLUMN, TEXT)), f"its field {COLUMN} has the name of the column"),
    ],
    ids=["number", "map", "union", "recursive", "a field of the name"],
)
def test_a_schema_that_cannot_have_the_column_is_rejected_and_works_with_drop(schema: Schema, words: str) -> None:
    with pytest.raises(InvalidSchema, match=words):
        reading(schema, UnknownFields.JSON)
    assert reading(schema, UnknownFields.DROP).schema is schema


def test_a_member_without_unknown_properties_is_preferred_over_an_earlier_one_with_some() -> None:
    one, two = struct(("b", OPTIONAL), name="One"), struct(("b", OPTIONAL), ("c", LONG), name="Two")
    schema = struct(("u", struct(("One", one), ("Two", two), name=UNION)))
    for unknown in UnknownFields:
        assert read(reading(schema, unknown), {"u": {"c": 1}})["u"] == {"Two": {"b": None, "c": 1}}
    found = reading(schema, UnknownFields.DROP)
    assert read(found, {"u": {"b": 1, "x": 2}}) == {"u": {"One": {"b": 1}}}
    assert found.dropped == 1
    assert "no member of its schema has this value" in reason(reading(schema), {"u": {"b": 1, "x": 2}})


def maps(keys: Schema, *more: tuple[str, Schema]) -> Schema:
    """A struct with the optional field `m`, a map of structs."""
    inner = struct(("b", LONG))
    return struct(("m", Schema(SchemaType.MAP, optional=True, keys=keys, values=inner)), *more)


def test_unknown_properties_in_entries_with_other_keys_than_texts_are_rejected() -> None:
    """They have no path."""
    found = reading(maps(LONG), UnknownFields.DROP)
    assert read(found, {"m": [{"key": 1, "value": {"b": 2}}]})
    assert "this property" in reason(found, {"m": [{"key": 1, "value": {"b": 2, "x": 3}}]})
    dropping = reading(maps(TEXT), UnknownFields.DROP)
    assert read(dropping, {"m": {"k": {"b": 2, "x": 3}}}) == {"m": {"k": {"b": 2}}}
    assert dropping.dropped == 1


def test_a_field_after_such_a_map_may_have_unknown_properties_again() -> None:
    found = reading(maps(LONG, ("s", struct(("b", LONG)))), UnknownFields.DROP)
    assert read(found, {"s": {"b": 1, "x": 2}}) == {"m": None, "s": {"b": 1}}
    assert found.dropped == 1


# -- values of the converter Json ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "text", "number"),
    [
        (Schema(SchemaType.INT32, logical_types.DATE), "1970-01-02", 1),
        (Schema(SchemaType.INT32, logical_types.TIME), "00:00:01.5", 1500),
        (Schema(SchemaType.INT64, logical_types.TIMESTAMP), "1970-01-01T00:00:01Z", 1000),
        (Schema(SchemaType.INT64, logical_types.TIMESTAMP), "1970-01-01T01:00:01+01:00", 1000),
        (Schema(SchemaType.INT64, logical="timestamp-micros"), "1970-01-01T00:00:01.000001Z", 1_000_001),
        (Schema(SchemaType.INT64, logical="timestamp-nanos"), "1970-01-01T00:00:00.000000001Z", 1),
        (Schema(SchemaType.INT64, logical="local-timestamp-millis"), "1970-01-01T00:00:01", 1000),
        (Schema(SchemaType.INT64, logical="time-micros"), "00:00:01", 1_000_000),
    ],
    ids=str,
)
def test_dates_and_times_are_texts_or_numbers(schema: Schema, text: str, number: int) -> None:
    bare, registered = reading(schema, bare=True), reading(schema)
    assert read(bare, text) == read(bare, number) == read(registered, number)
    assert "must be an integer" in reason(registered, text)
    assert reason(bare, "soon")
    assert (bare.reads_any(schema), registered.reads_any(schema)) == (True, False)


def test_a_json_field_is_the_text_of_its_value() -> None:
    field = Schema(SchemaType.STRING, JSON_NAME)
    bare = reading(struct(("j", field)), bare=True)
    assert read(bare, b'{"j": {"a": [1, 2.50, "x"]}}') == {"j": '{"a":[1,2.50,"x"]}'}
    assert bare.reads_any(field)
    assert read(reading(struct(("j", field))), {"j": "x"}) == {"j": "x"}


def test_a_text_that_is_no_symbol_of_its_enum_is_rejected() -> None:
    found = reading(Schema(SchemaType.STRING, symbols=("A", "B")), bare=True)
    assert read(found, "A") == "A"
    assert reason(found, "C") == "'C' is not a symbol of its enum"
    assert len(reason(found, "C" * 500)) < 150


# -- parts of the schema ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", [UnknownFields.FAIL, UnknownFields.DROP])
def test_a_part_of_the_schema_is_read_alone_and_an_unknown_property_of_it_is_rejected(unknown: UnknownFields) -> None:
    part = reading(NESTED, unknown).reader_of(NESTED.fields[1].schema)
    assert part({"b": 1}) == {"b": 1}
    assert part(None) is None
    with pytest.raises(InvalidValue):
        part({"b": 1, "y": 2})


def test_the_column_of_unknown_properties_is_no_property() -> None:
    found = reading(NESTED, UnknownFields.JSON)
    column = found.schema.fields[-1].schema
    assert found.reads_any(column)
    for value in (None, "x"):
        with pytest.raises(InvalidValue, match=f"{COLUMN} is the name of the column for unknown properties"):
            found.reader_of(column)(value)
    assert read(found, {"a": 1, COLUMN: None}) == {"a": 1, "s": None, COLUMN: '{"_unknown":null}'}


@pytest.mark.parametrize("schema", [LONG, TEXT, Schema(SchemaType.BYTES)])
def test_other_types_have_the_form_of_their_type(schema: Schema) -> None:
    assert not reading(schema, bare=True).reads_any(schema)
