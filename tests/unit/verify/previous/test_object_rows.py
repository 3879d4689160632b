"""Values of JSON, and objects that another writer has written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.verify.previous.object_rows import same_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def reversed_fields(value: object) -> object:
    if isinstance(value, dict):
        return {name: reversed_fields(inner) for name, inner in reversed(value.items())}
    return [reversed_fields(inner) for inner in value] if isinstance(value, list) else value


@given(VALUES)
def test_the_order_of_fields_and_white_space_are_no_difference(value: object) -> None:
    other = json.dumps(reversed_fields(value), indent=1, ensure_ascii=False)
    assert same_value(json.loads(json.dumps(value)), json.loads(other))


@given(VALUES, VALUES)
def test_only_equal_values_are_equal(left: object, right: object) -> None:
    normal = [json.dumps(each, sort_keys=True) for each in (left, right)]
    if same_value(left, right) and "." not in "".join(normal) and "e" not in "".join(normal):
        assert normal[0] == normal[1]
    assert same_value(left, left)


@pytest.mark.parametrize(
    ("left", "right", "are_equal"),
    [
        ("1", "1.0", True),
        ("100", "1e2", True),
        ("1", "true", False),
        ("0", "false", False),
        ("null", "0", False),
        ('""', "null", False),
        ("9007199254740993", "9007199254740992.0", False),
        ('{"a":1}', '{"a":1,"b":null}', False),
        ("[1,2]", "[2,1]", False),
        ("[1,2]", "[1,2,3]", False),
        ('{"a":{"b":[true]}}', '{"a":{"b":[1]}}', False),
    ],
)
def test_values_that_look_alike(left: str, right: str, are_equal: bool) -> None:
    assert same_value(json.loads(left), json.loads(right)) is are_equal
