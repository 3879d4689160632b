"""Values that are read as far as needed."""

from __future__ import annotations

import msgspec
import pytest

from sink_job.connect.errors import InvalidValue
from sink_job.transforms.java_numbers import Float32
from sink_job.transforms.json_values import is_null, json_text, kind_of, object_of, opened


def raw(text: bytes) -> msgspec.Raw:
    return msgspec.Raw(text)


@pytest.mark.parametrize("text", [b'{"a": 1.50}', b' {"a" :1E400,"b":[ 1,2]} ', b'{"a":12345678901234567890123}'])
def test_what_is_not_read_is_written_as_it_came(text: bytes) -> None:
    value = object_of(raw(text))["a"]
    assert json_text(value) in text


@pytest.mark.parametrize(("text", "found"), [(b"null", True), (b" null\n", True), (b"nul", False), (b'"null"', False)])
def test_null_is_recognized_without_reading(text: bytes, found: bool) -> None:
    assert is_null(raw(text)) is found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "the value is empty"),
        (b" ", "the value is empty"),
        (b"{", "the value is not JSON: Input data was truncated"),
        (b"[" * 100_000, "the value is JSON nested too deeply"),
    ],
)
def test_what_is_not_json_is_rejected(text: bytes, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        opened(raw(text))


def test_numbers_without_a_json_form_are_texts() -> None:
    single = Float32(0.10000000149011612)
    value: dict[str, object] = {"a": float("nan"), "b": {"c": float("-inf")}, "d": single, "e": raw(b"1.0")}
    assert json_text(value) == b'{"a":"NaN","b":{"c":"-Infinity"},"d":0.1,"e":1.0}'


def test_kinds_have_names() -> None:
    values: list[object] = [{}, [], "", True, 1, 1.0, Float32(1), None, b""]
    assert [kind_of(value) for value in values] == [
        "an object",
        "an array",
        "a text",
        "a boolean",
        "a number",
        "a number",
        "a number",
        "null",
        "another value",
    ]
