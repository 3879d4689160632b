"""Avro schema texts: names are resolved as by Avro's parser, and an error names its place."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import fastavro
import msgspec
import pytest
from hypothesis import given, settings

from sink_job.avro.row_decoder import DatumReader
from sink_job.avro.schema import AvroType, parse_all, parse_avro
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import MAX_DEPTH
from tests.unit.avro.avro_data import encode, record, samples, without_logical_types

SYMBOLS = "schema: the symbols of an enum must be different texts"


def parse(schema: Any) -> AvroType:
    return parse_avro(json.dumps(schema))


def fixed(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": 2, **more}


def field_of(schema: AvroType, name: str) -> AvroType:
    return next(field.type for field in schema.fields if field.name == name)


@settings(max_examples=25)
@given(samples(depth=2, max_size=2))
def test_data_of_fastavro_are_read_under_the_parsed_schema(sample: tuple[Any, list[Any]]) -> None:
    schema, values = sample
    reader = DatumReader(parse(schema))
    plain = fastavro.parse_schema(without_logical_types(schema))
    for data in encode(schema, values):
        theirs = fastavro.schemaless_reader(io.BytesIO(data), plain, None)
        ours = reader.read(data)
        assert isinstance(ours, dict)
        assert isinstance(theirs, dict)
        assert ours.keys() == theirs.keys()


@pytest.mark.parametrize(
    ("more", "name", "short"),
    [
        ({"name": "F"}, "F", "F"),
        ({"name": "F", "namespace": "a.b"}, "a.b.F", "F"),
        ({"name": "a.F", "namespace": "ignored"}, "a.F", "F"),
        ({"name": ".F", "namespace": "ignored"}, "F", "F"),
        ({"name": "F", "namespace": ""}, "F", "F"),
    ],
)
def test_a_name_is_in_its_own_namespace(more: dict[str, str], name: str, short: str) -> None:
    found = parse({"type": "fixed", "size": 1, **more})
    assert (found.name, found.short_name, found.member_name) == (name, short, short)


def test_a_name_without_a_namespace_is_in_that_of_the_enclosing_type() -> None:
    found = parse({**record(("f", fixed("F")), ("g", "F"), ("h", "a.F")), "namespace": "a"})
    assert field_of(found, "f").name == "a.F"
    assert field_of(found, "f") is field_of(found, "g") is field_of(found, "h")


def test_a_name_in_no_namespace_is_found_where_the_enclosing_namespace_lacks_it() -> None:
    inner = {**record(("f", "F"), name="I"), "namespace": "a"}
    outer = parse(record(("f", fixed("F")), ("i", inner)))
    assert field_of(field_of(outer, "i"), "f") is field_of(outer, "f")


def test_a_name_in_the_enclosing_namespace_hides_one_without_a_namespace() -> None:
    inner = {**record(("own", fixed("F")), ("f", "F"), name="I"), "namespace": "a"}
    outer = parse(record(("f", fixed("F")), ("i", inner)))
    assert field_of(field_of(outer, "i"), "f").name == "a.F"


def test_a_record_is_the_type_that_its_own_fields_name() -> None:
    found = parse(record(("next", ["null", "R"])))
    assert field_of(found, "next").nullable is found


def test_a_schema_refers_to_the_schemas_before_it() -> None:
    found = parse_avro('["null", "a.F"]', [json.dumps(fixed("F", namespace="a"))])
    assert found.members[1].name == "a.F"
    both = parse_all([json.dumps(fixed("F")), '"F"'])
    assert both[0] is both[1]


def test_attributes_that_avro_does_not_define_are_properties() -> None:
    found = parse({"type": "bytes", "logicalType": "decimal", "precision": 4, "doc": "no property"})
    assert found.properties == {"logicalType": "decimal", "precision": 4}


def test_a_type_within_a_type_is_that_type() -> None:
    assert parse({"type": {"type": "long", "logicalType": "x"}}).properties == {"logicalType": "x"}


def test_an_error_is_a_record_and_fields_keep_defaults_also_null() -> None:
    fields = [{"name": "a", "type": "int", "default": 1, "doc": "d"}, {"name": "b", "type": "null", "default": None}]
    found = parse({"type": "error", "name": "E", "fields": [*fields, {"name": "c", "type": "int"}]})
    assert found.kind == "record"
    assert [field.default for field in found.fields] == [1, None, msgspec.UNSET]
    assert [field.doc for field in found.fields] == ["d", None, None]


def test_an_enum_has_symbols_and_a_default() -> None:
    found = parse({"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "B", "doc": "d"})
    assert (found.symbols, found.default, found.doc) == (["A", "B"], "B", "d")


@pytest.mark.parametrize(
    ("members", "nullable", "single"),
    [
        (["null", "int"], "int", None),
        (["int", "null"], "int", None),
        (["int"], None, "int"),
        (["null"], None, "null"),
        (["int", "long"], None, None),
        (["null", "int", "long"], None, None),
        ([], None, None),
    ],
)
def test_a_union_is_nullable_with_null_and_one_type(
    members: list[str], nullable: str | None, single: str | None
) -> None:
    found = parse(members)
    assert (found.nullable and found.nullable.kind, found.single and found.single.kind) == (nullable, single)


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ("Gone", "schema: the type 'Gone' is not defined"),
        (5, "schema: a type must be a text, an array or an object"),
        ([["int"], "null"], "schema: a union must not contain a union"),
        (["int", "int"], "schema: a union must not contain a type twice"),
        ([fixed("F"), "F"], "schema: a union must not contain a type twice"),
        (["int", "Gone"], "schema[1]: the type 'Gone' is not defined"),
        (record(("a", "Gone")), "R.a: the type 'Gone' is not defined"),
        ({"type": "array", "items": 5}, "schema.array: a type must be a text, an array or an object"),
        ({"type": "map", "values": "Gone"}, "schema.map: the type 'Gone' is not defined"),
        ({"type": "fixed", "size": 1}, "schema: the fixed has no name"),
        ({"type": "record", "name": ""}, "schema: the record has no name"),
        ({"type": "record", "name": "R"}, "schema: the record R has no fields"),
        (record(("a", "int"), ("a", "int")), "schema: the record R has two fields with one name"),
        ({"type": "record", "name": "R", "fields": [{"type": "int"}]}, "R: a field has no name"),
        (record(("a", fixed("F")), ("b", fixed("F"))), "R.b: the type F is defined twice"),
        (fixed("F", size=-1), "schema: the size of a fixed must be an integer of 0 or more"),
        (fixed("F", size=True), "schema: the size of a fixed must be an integer of 0 or more"),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "A"]},
            SYMBOLS,
        ),
        ({"type": "enum", "name": "E", "symbols": [1]}, SYMBOLS),
        ({"type": "enum", "name": "E"}, SYMBOLS),
    ],
)
def test_an_error_names_its_place(schema: Any, error: str) -> None:
    with pytest.raises(InvalidSchema, match=f"^{re.escape(f'the Avro schema is invalid at {error}')}$"):
        parse(schema)


def test_a_text_that_is_no_json_is_no_schema() -> None:
    with pytest.raises(InvalidSchema, match="the Avro schema is not JSON"):
        parse_avro("record")


def nested(levels: int) -> str:
    return '{"type": "array", "items": ' * levels + '"int"' + "}" * levels


def test_types_are_nested_up_to_the_maximum() -> None:
    parse_avro(nested(MAX_DEPTH))
    with pytest.raises(InvalidSchema, match="nested deeper than"):
        parse_avro(nested(MAX_DEPTH + 1))


def test_only_an_array_or_a_map_has_items() -> None:
    assert parse({"type": "map", "values": "int"}).items.kind == "int"
    with pytest.raises(InvalidSchema, match="the Avro type int has no items"):
        _ = parse("int").items
