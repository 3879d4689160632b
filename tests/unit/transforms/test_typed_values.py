"""Values with a schema. tests/data/test_connect_transforms.py compares what transforms make of them with Kafka's."""

from __future__ import annotations

import pytest

from sink_job.connect.errors import InvalidValue
from sink_job.connect.schema import Default, Field, Schema, SchemaType
from sink_job.transforms.typed_values import SchemaChange, field_schema, optional, struct, with_fields

INT = Schema(SchemaType.INT32)
STRUCT = Schema(
    SchemaType.STRUCT,
    name="N",
    optional=True,
    version=3,
    doc="d",
    parameters=(("p", "q"),),
    default=Default("{}"),
    fields=(Field("a", INT),),
)


def test_a_struct_with_other_fields_keeps_its_name_and_is_required() -> None:
    found = with_fields(STRUCT, (Field("b", INT),))
    assert (found.name, found.version, found.doc, found.parameters) == ("N", 3, "d", (("p", "q"),))
    assert (found.optional, found.default, [each.name for each in found.fields]) == (False, None, ["b"])
    assert optional(found, like=STRUCT).optional


def test_two_fields_with_one_name_are_rejected() -> None:
    with pytest.raises(InvalidValue, match="two fields of the struct would have one name"):
        with_fields(STRUCT, (Field("b", INT), Field("b", INT)))


def test_only_a_struct_has_fields() -> None:
    assert struct(STRUCT) is STRUCT
    assert (field_schema(STRUCT, "a"), field_schema(STRUCT, "b")) == (INT, None)
    with pytest.raises(InvalidValue, match="the value is of the type int32, not a struct"):
        struct(INT)


def test_a_schema_is_changed_once() -> None:
    calls: list[Schema] = []

    def changed(schema: Schema) -> Schema:
        calls.append(schema)
        return with_fields(schema, ())

    change = SchemaChange(changed)
    assert change(STRUCT) is change(STRUCT)
    assert len(calls) == 1
    for number in range(1100):
        change(Schema(SchemaType.STRUCT, name=str(number)))
    assert len(change._made) <= 1000
