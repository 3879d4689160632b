"""Projection to another schema, against a reference that works value by value as Connect does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from sink_job.connect.errors import InvalidSchema, ProjectionError
from sink_job.connect.projection import can_project, projector
from sink_job.connect.schema import Default, Field, Schema, SchemaType
from tests.unit.connect import oracle, strategies

INT32 = Schema(SchemaType.INT32)
TEXT = Schema(SchemaType.STRING)


def struct(**fields: Schema) -> Schema:
    return Schema(SchemaType.STRUCT, fields=tuple(Field(name, schema) for name, schema in fields.items()))


def optional(kind: SchemaType, default: str | None = None) -> Schema:
    return Schema(kind, optional=True, default=Default(default) if default else None)


@pytest.mark.parametrize(
    ("source", "target", "value", "projected"),
    [
        (SchemaType.INT8, SchemaType.INT64, 5, 5),
        (SchemaType.INT32, SchemaType.FLOAT64, 5, 5.0),
        (SchemaType.INT64, SchemaType.FLOAT32, 2**53 + 1, float(2**53)),
        (SchemaType.INT64, SchemaType.FLOAT32, 16_777_217, 16_777_216.0),
        (SchemaType.FLOAT32, SchemaType.FLOAT64, 0.5, 0.5),
        (SchemaType.STRING, SchemaType.STRING, "x", "x"),
    ],
)
def test_a_number_widens(source: SchemaType, target: SchemaType, value: object, projected: object) -> None:
    found = projector(Schema(source), Schema(target))(value)
    assert (found, type(found)) == (projected, type(projected))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (SchemaType.INT64, SchemaType.INT32),
        (SchemaType.FLOAT64, SchemaType.FLOAT32),
        (SchemaType.FLOAT32, SchemaType.INT64),
        (SchemaType.INT32, SchemaType.STRING),
        (SchemaType.STRING, SchemaType.BYTES),
    ],
)
def test_no_other_type_can_be_projected(source: SchemaType, target: SchemaType) -> None:
    assert can_project(Schema(source), Schema(target)) == (
        f"the value cannot be projected: its type {source} cannot be projected to {target}"
    )


def test_a_field_that_only_the_source_has_is_dropped() -> None:
    assert projector(struct(a=INT32, b=INT32), struct(b=INT32))({"a": 1, "b": 2}) == {"b": 2}


def test_a_missing_field_takes_its_default() -> None:
    target = struct(a=INT32, b=Schema(SchemaType.STRING, default=Default('"x"')))
    assert projector(struct(a=INT32), target)({"a": 1}) == {"a": 1, "b": "x"}


def test_a_missing_optional_field_is_null() -> None:
    assert projector(struct(a=INT32), struct(a=INT32, b=optional(SchemaType.STRING)))({"a": 1}) == {"a": 1, "b": None}


def test_a_missing_required_field_without_default_cannot_be_projected() -> None:
    reason = can_project(struct(s=struct(a=INT32)), struct(s=struct(a=INT32, b=INT32)))
    assert reason == (
        "the field s.b cannot be projected: it is required, has no default, and the record's schema does not have it"
    )


def test_a_null_takes_the_default_of_a_required_target() -> None:
    target = Schema(SchemaType.INT32, default=Default("7"))
    assert projector(optional(SchemaType.INT32), target)(None) == 7


def test_an_optional_source_needs_a_default_of_a_required_target() -> None:
    assert "it is optional" in (can_project(optional(SchemaType.INT32), INT32) or "")


def test_a_null_under_an_optional_target_stays_null() -> None:
    assert projector(optional(SchemaType.INT32), optional(SchemaType.INT32, "7"))(None) is None


def test_schemas_of_different_names_cannot_be_projected() -> None:
    assert "name A differs from B" in (
        can_project(Schema(SchemaType.STRING, "A"), Schema(SchemaType.STRING, "B")) or ""
    )


@pytest.mark.parametrize(
    ("source", "target", "possible"),
    [
        ((("scale", "1"),), (("scale", "2"),), False),
        ((("connect.record.doc", "a"),), (), True),
        ((("io.confluent.connect.avro.field.doc.f", "a"),), (("io.confluent.connect.avro.field.doc.f", "b"),), True),
        ((("io.confluent.connect.avro.record.doc", "a"),), (), True),
        ((("io.confluent.connect.avro.field.default", "true"),), (), True),
        ((("connect.record.aliases", "a"),), (("connect.record.aliases", "b"),), True),
        ((("connect.record.namespace", "a"),), (), True),
        ((("io.confluent.connect.avro.enum.doc.E", "a"),), (), True),
        ((("io.confluent.connect.avro.enum.default.E", "A"),), (), False),
    ],
)
def test_parameters_must_be_equal_unless_they_document(
    source: tuple[tuple[str, str], ...], target: tuple[tuple[str, str], ...], possible: bool
) -> None:
    found = can_project(Schema(SchemaType.BYTES, parameters=source), Schema(SchemaType.BYTES, parameters=target))
    assert (found is None) is possible


def test_an_enum_can_be_projected_to_one_with_more_symbols() -> None:
    fewer, more = (Schema(SchemaType.STRING, parameters=each) for each in strategies.PARAMETERS[-2:])
    assert can_project(fewer, more) is None
    assert can_project(more, fewer) is not None


UNIONS = ["io.confluent.connect.avro.Union", "io.confluent.connect.json.OneOf", "io.confluent.connect.protobuf.Union.o"]


@pytest.mark.parametrize("name", UNIONS)
def test_a_union_is_projected_only_to_one_with_all_of_its_members(name: str) -> None:
    """A value of a member that is dropped would have nothing left."""
    members = {each: optional(SchemaType.STRING) for each in ("a", "b", "c")}
    more = structs.replace(struct(**members), name=name)
    fewer = structs.replace(struct(b=members["b"]), name=name)
    assert projector(fewer, more)({"b": "x"}) == {"a": None, "b": "x", "c": None}
    reason = "the field u cannot be projected: the target does not have a, c of its types"
    assert can_project(struct(u=more), struct(u=fewer)) == reason


def test_an_empty_array_does_not_hide_a_difference() -> None:
    source, target = (Schema(SchemaType.ARRAY, values=Schema(kind)) for kind in (SchemaType.STRING, SchemaType.INT32))
    assert can_project(source, target) is not None


def linked(value: Schema) -> Schema:
    fields = (Field("value", value), Field("next", Schema(SchemaType.REFERENCE, name="List", optional=True)))
    return Schema(SchemaType.STRUCT, name="List", fields=fields)


def test_a_recursive_value_is_projected_at_every_depth() -> None:
    project = projector(linked(INT32), linked(Schema(SchemaType.FLOAT64)))
    found = project({"value": 1, "next": {"value": 2, "next": None}})
    assert repr(found) == "{'value': 1.0, 'next': {'value': 2.0, 'next': None}}"


def test_a_difference_in_a_recursive_schema_is_found() -> None:
    assert can_project(linked(TEXT), linked(INT32)) is not None


def test_a_struct_is_projected_to_one_that_has_become_recursive() -> None:
    flat = Schema(SchemaType.STRUCT, name="List", fields=(Field("value", INT32),))
    source = Schema(SchemaType.STRUCT, name="List", fields=(Field("value", INT32), Field("next", flat)))
    assert projector(source, linked(INT32))({"value": 1, "next": {"value": 2}}) == {
        "value": 1,
        "next": {"value": 2, "next": None},
    }


def test_a_missing_field_of_a_recursive_type_takes_its_empty_default() -> None:
    children = Schema(SchemaType.ARRAY, values=Schema(SchemaType.REFERENCE, name="R"), default=Default("[]"))
    source = Schema(SchemaType.STRUCT, name="R", fields=(Field("a", INT32),))
    target = Schema(SchemaType.STRUCT, name="R", fields=(Field("a", INT32), Field("children", children)))
    assert projector(source, target)({"a": 1}) == {"a": 1, "children": []}


def test_an_invalid_reference_cannot_be_projected() -> None:
    reference = Schema(SchemaType.REFERENCE, name="X")
    assert can_project(reference, reference) is not None
    with pytest.raises(InvalidSchema):
        projector(reference, reference)


def test_the_error_names_the_field() -> None:
    with pytest.raises(ProjectionError, match=r"the field a\[\]\.b cannot be projected"):
        projector(
            struct(a=Schema(SchemaType.ARRAY, values=struct(b=TEXT))),
            struct(a=Schema(SchemaType.ARRAY, values=struct(b=INT32))),
        )


@given(st.data())
def test_projection_is_possible_exactly_if_the_reference_can_project_a_full_value(data: st.DataObject) -> None:
    source, target = data.draw(strategies.schema_pairs())
    value = data.draw(strategies.values(source, full=True))
    try:
        oracle.project(source, value, target)
    except oracle.Impossible:
        assert can_project(source, target) is not None
    else:
        assert can_project(source, target) is None


@given(st.data())
def test_a_projected_value_is_that_of_the_reference(data: st.DataObject) -> None:
    source, target = data.draw(strategies.schema_pairs())
    value = data.draw(strategies.values(source, full=False))
    if can_project(source, target) is None:
        expected = oracle.project(source, value, target)
        found = projector(source, target)(value)
        assert (found, repr(found)) == (expected, repr(expected))
