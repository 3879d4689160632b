"""Compiled functions: references to enclosing structs, and what a traceback shows."""

from __future__ import annotations

import pytest

from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import Schema, SchemaType
from sink_job.connect.scopes import Later, child, enclosing, named_in, shown

REFERENCE = Schema(SchemaType.REFERENCE, "Node")


class Encoder:
    """An object with a method that is a compiled function."""

    def __repr__(self) -> str:
        return "encoder of numbers"

    def encode(self, value: int) -> str:
        return str(value)


def test_a_reference_calls_the_function_that_is_set_later() -> None:
    later = Later[str]()
    function = enclosing({"Node": later}, REFERENCE)
    assert later.set_to(hex) is hex
    assert function(5) == "0x5"


def test_a_reference_that_nothing_encloses_fails_when_it_is_used() -> None:
    function = enclosing({"Other": Later[str]()}, REFERENCE)
    with pytest.raises(InvalidSchema, match="the schema refers to Node, which does not enclose the reference"):
        function(5)


def test_a_method_is_shown_as_its_object_and_a_function_by_its_name() -> None:
    assert shown(Encoder().encode) == "encoder of numbers"
    assert shown(len) == "len"
    assert shown(Later[str]()).startswith("<sink_job.connect.scopes.Later")


def test_an_unexpected_error_names_the_field_and_its_owner() -> None:
    error = TypeError("odd")
    named_in(error, "a", Encoder())
    assert error.__notes__ == ["in the field 'a' of encoder of numbers"]


def test_an_error_of_depth_names_no_field() -> None:
    error = RecursionError()
    named_in(error, "a", Encoder())
    assert not hasattr(error, "__notes__")


def test_an_array_without_a_schema_of_its_items_is_invalid() -> None:
    assert child(REFERENCE) is REFERENCE
    with pytest.raises(InvalidSchema, match="no schema of its keys or values"):
        child(Schema(SchemaType.ARRAY).values)
