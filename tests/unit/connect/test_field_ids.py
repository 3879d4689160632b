"""Paths of the types in a schema."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sink_job.connect.field_ids import field_paths, path_of
from sink_job.connect.schema import Field, Schema, SchemaType

INT = Schema(SchemaType.INT32)
TEXT = Schema(SchemaType.STRING)


def struct(**fields: Schema) -> Schema:
    return Schema(SchemaType.STRUCT, fields=tuple(Field(name, of) for name, of in fields.items()))


def test_a_type_comes_before_the_types_in_it() -> None:
    schema = struct(
        a=INT,
        s=struct(
            x=Schema(SchemaType.ARRAY, values=struct(y=INT)), m=Schema(SchemaType.MAP, keys=TEXT, values=struct(z=INT))
        ),
        b=INT,
    )
    assert field_paths(schema) == [
        *("a", "s", "s.x", "s.x.element", "s.x.element.y"),
        *("s.m", "s.m.key", "s.m.value", "s.m.value.z", "b"),
    ]


def test_a_name_with_a_dot_is_not_the_path_of_a_nested_field() -> None:
    schema = Schema(SchemaType.STRUCT, fields=(Field("a.b", INT), Field("a", struct(b=INT)), Field("a\\.b", INT)))
    assert field_paths(schema) == ["a\\.b", "a", "a.b", "a\\\\\\.b"]


@given(st.lists(st.lists(st.text(".\\a", min_size=1), min_size=1, max_size=3)))
def test_different_names_have_different_paths(names: list[list[str]]) -> None:
    paths = {}
    for each in names:
        path = ""
        for name in each:
            path = path_of(path, name)
        paths[tuple(each)] = path
    assert len(set(paths.values())) == len(paths)
