"""The depth of JSON texts and of decoded values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.avro.to_connect import parse_registered
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import MAX_DEPTH, is_text_too_deep, is_value_too_deep
from sink_job.connect.schema import RegisteredSchema
from sink_job.json.json_schema.to_connect import json_connect_schema


def test_brackets_in_strings_have_no_depth() -> None:
    assert not is_text_too_deep(b'["[[[[[\\"[[[[[["]', 2)


@pytest.mark.parametrize("text", [b'[[[1]],{"a":{"b":1}}]', b'{"a":[[],[],[[]]]  }'])
def test_containers_side_by_side_are_not_deeper(text: bytes) -> None:
    assert not is_text_too_deep(text, 4 if text.startswith(b"{") else 3)
    assert is_text_too_deep(text, 3 if text.startswith(b"{") else 2)


def nested(levels: int, kind: str) -> object:
    value: object = 1
    for _ in range(levels):
        value = [0, value] if kind == "list" else {"a": value, "b": 0}
    return value


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_the_limit_of_a_value_is_exact(kind: str) -> None:
    assert not is_value_too_deep(nested(MAX_DEPTH, kind))
    assert is_value_too_deep(nested(MAX_DEPTH + 1, kind))


@given(st.lists(st.sampled_from(["list", "dict"]), max_size=8), st.integers(0, 8))
def test_the_depth_of_a_text_is_that_of_its_content(kinds: list[str], limit: int) -> None:
    text = b'"["'
    for kind in kinds:
        text = b'[%b,"]"]' % text if kind == "list" else b'{"{":%b,"}":1}' % text
    assert is_text_too_deep(text, limit) == (len(kinds) > limit)


@pytest.mark.parametrize(
    ("language", "translate"), [("AVRO", parse_registered), ("JSON", json_connect_schema)], ids=["Avro", "JsonSchema"]
)
@pytest.mark.parametrize("levels", [401, 1_000, 100_000])
def test_the_text_of_a_schema_has_a_maximum_depth(
    language: str, translate: Callable[[RegisteredSchema], object], levels: int
) -> None:
    def text(depth: int) -> str:
        return f'{{"type": "string", "x": {"[" * (depth - 1)}{"]" * (depth - 1)}}}'

    translate(RegisteredSchema("1", language, text(400)))
    with pytest.raises(InvalidSchema, match="is nested deeper than 400 levels"):
        translate(RegisteredSchema("1", language, text(levels)))
