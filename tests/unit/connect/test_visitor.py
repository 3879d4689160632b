"""The walk over a schema."""

from __future__ import annotations

from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.connect.visitor import all_types, free_references, inner_types, is_recursive

INT = Schema(SchemaType.INT32)
TEXT = Schema(SchemaType.STRING)
REFERENCE = Schema(SchemaType.REFERENCE, "Node")


def struct(name: str | None = None, **fields: Schema) -> Schema:
    return Schema(SchemaType.STRUCT, name, fields=tuple(Field(key, of) for key, of in fields.items()))


def array(items: Schema) -> Schema:
    return Schema(SchemaType.ARRAY, values=items)


NODE = struct("Node", value=INT, next=array(REFERENCE))


def test_inner_types_are_fields_then_keys_then_values() -> None:
    assert inner_types(struct(a=INT, b=TEXT)) == [INT, TEXT]
    assert inner_types(Schema(SchemaType.MAP, keys=TEXT, values=INT)) == [TEXT, INT]
    assert inner_types(array(INT)) == [INT]
    assert inner_types(INT) == []


def test_a_type_comes_before_those_in_it_and_equal_types_are_each_visited() -> None:
    inner = struct(x=INT, y=INT)
    outer = struct(a=inner, b=TEXT)
    assert list(all_types(outer)) == [outer, inner, INT, INT, TEXT]


def test_a_reference_anywhere_makes_a_schema_recursive() -> None:
    assert is_recursive(NODE)
    assert is_recursive(struct(a=Schema(SchemaType.MAP, keys=REFERENCE, values=INT)))
    assert not is_recursive(struct("Node", value=array(INT)))


def test_a_reference_is_free_outside_of_its_struct_alone() -> None:
    assert free_references(REFERENCE) == {"Node"}
    assert free_references(NODE) == frozenset()
    assert free_references(NODE.fields[1].schema) == {"Node"}
    assert free_references(struct("Other", a=NODE, b=REFERENCE)) == {"Node"}


def test_only_a_struct_encloses_a_reference_to_its_name() -> None:
    items = Schema(SchemaType.ARRAY, "Node", values=REFERENCE)
    assert free_references(items) == {"Node"}
    unnamed = Schema(SchemaType.REFERENCE)
    assert free_references(unnamed) == {""}
    assert free_references(struct(None, a=unnamed)) == frozenset()
