"""Fields whose names differ by case only."""

from __future__ import annotations

from sink_job.connect.field_names import equal_but_case, names_equal_but_case
from sink_job.connect.schema import Field, Schema, SchemaType

LONG = Schema(SchemaType.INT64)


def struct(**fields: Schema) -> Schema:
    return Schema(SchemaType.STRUCT, fields=tuple(Field(name, each) for name, each in fields.items()))


def test_fields_of_one_struct_are_compared() -> None:
    found = [*names_equal_but_case(struct(id=LONG, ID=LONG, Id=LONG, other=LONG))]
    assert found == [equal_but_case("id", "ID"), equal_but_case("id", "Id")]


def test_fields_of_nested_structs_are_compared_with_their_siblings() -> None:
    items = Schema(SchemaType.ARRAY, values=struct(a=LONG, A=LONG))
    values = Schema(SchemaType.MAP, keys=Schema(SchemaType.STRING), values=struct(b=LONG, B=LONG))
    found = [*names_equal_but_case(struct(id=LONG, items=items, values=values, inner=struct(ID=LONG)))]
    assert found == [
        equal_but_case("items.element.a", "items.element.A"),
        equal_but_case("values.value.b", "values.value.B"),
    ]


def test_a_schema_without_fields_has_none() -> None:
    assert [*names_equal_but_case(LONG)] == []
