"""Values with a JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.avro.to_connect import UNION
from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_decoder import decode_json
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.json.json_schema.decoder import is_union, json_schema_reader
from sink_job.json.json_schema.to_connect import ONE_OF

LONG, TEXT = Schema(SchemaType.INT64), Schema(SchemaType.STRING)
OPTIONAL = Schema(SchemaType.INT64, optional=True)


def struct(*fields: tuple[str, Schema], name: str | None = None, optional: bool = False) -> Schema:
    return Schema(SchemaType.STRUCT, name, optional, fields=tuple(Field(key, of) for key, of in fields))


def read(schema: Schema, text: str) -> Any:
    return json_schema_reader(schema)(decode_json(text))


def reason(schema: Schema, text: str) -> str:
    with pytest.raises(InvalidValue) as caught:
        read(schema, text)
    return str(caught.value)


def test_a_property_that_the_schema_lacks_is_rejected_with_its_place() -> None:
    schema = struct(("a", struct(("b", LONG))))
    assert read(schema, '{"a": {"b": 1}}') == {"a": {"b": 1}}
    assert reason(schema, '{"a": {"b": 1, "c": 2}}') == "the field a.c: its schema does not have this property"


@pytest.mark.parametrize(("text", "value"), [("1.0", 1), ("-2.00", -2), ("1e3", 1000), ("9.0e18", 9 * 10**18)])
def test_a_number_without_a_fraction_is_an_integer(text: str, value: int) -> None:
    found = read(LONG, text)
    assert (found, type(found)) == (value, int)


@pytest.mark.parametrize("text", ["1.5", "1e19", "1e9999", "true", '"1"'])
def test_another_number_is_none(text: str) -> None:
    assert reason(LONG, text) == "a JSON value must be an integer"


@pytest.mark.parametrize("name", [ONE_OF, UNION])
def test_a_union_is_the_first_member_that_the_value_conforms_to(name: str) -> None:
    schema = struct(("int", LONG), ("text", TEXT), ("more", TEXT), name=name)
    assert is_union(schema)
    assert read(schema, "1") == {"int": 1}
    assert read(schema, '"a"') == {"text": "a"}
    assert reason(schema, "true") == (
        "no member of its schema has this value: a JSON value must be an integer; "
        "a JSON value must be a text; a JSON value must be a text"
    )


def test_of_several_objects_the_one_with_the_most_common_properties_comes_first() -> None:
    few, many = struct(("a", OPTIONAL)), struct(("a", OPTIONAL), ("b", OPTIONAL), ("c", OPTIONAL))
    schema = struct(("few", few), ("many", many), name=ONE_OF)
    assert read(schema, '{"a": 1, "b": 2}') == {"many": {"a": 1, "b": 2, "c": None}}
    assert read(schema, '{"a": 1}') == {"few": {"a": 1}}
    assert reason(schema, '{"a": 1, "b": "x", "d": 3}').startswith(
        "no member of its schema has this value: the field d: its schema does not have this property; the field b: "
    )


def test_a_struct_of_another_name_is_no_union() -> None:
    assert not is_union(struct(("a", LONG), name="Other"))
    assert not is_union(Schema(SchemaType.STRING, ONE_OF))


def test_a_map_without_text_keys_is_an_array_of_objects() -> None:
    schema = Schema(SchemaType.MAP, keys=LONG, values=OPTIONAL)
    assert read(schema, '[{"key": 1, "value": 2}, {"key": 3}]') == [(1, 2), (3, None)]
    assert reason(schema, "[[1, 2]]") == "a JSON value must be an object"
    assert reason(schema, "{}") == "a JSON value must be an array"
    assert reason(schema, '[{"value": 2}]') == "a required value of type int64 is null or missing"
    assert read(Schema(SchemaType.MAP, keys=TEXT, values=LONG), '{"a": 1.0}') == {"a": 1}


def test_the_fields_of_a_member_that_does_not_conform_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sink_job.connect.json_decoder.MAX_FIELDS", 5)
    wrong = struct(("a", OPTIONAL), ("b", LONG), ("c", OPTIONAL))
    schema = struct(("wrong", wrong), ("right", struct(("a", OPTIONAL), ("d", OPTIONAL))), name=ONE_OF)
    items = Schema(SchemaType.ARRAY, values=schema)
    assert read(items, '[{"a": 1}, {"a": 1}]') == [{"right": {"a": 1, "d": None}}] * 2
    with pytest.raises(InvalidValue, match="more than 5 fields"):
        read(items, '[{"a": 1}, {"a": 1}, {"a": 1}]')
