"""JSON lines of the values of each converter."""

from __future__ import annotations

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import ConverterType
from sink_job.arrow import columns
from sink_job.json.lines import JsonLines

UNSTRUCTURED = (ConverterType.TEXT, ConverterType.BYTES)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), max_size=5))
def test_a_text_is_a_json_string(values: list[str]) -> None:
    rows = JsonLines(ConverterType.TEXT).encode(columns.texts(values).view("binary")).to_pylist()
    assert rows == [msgspec.json.encode(value) + b"\n" for value in values]


@given(st.lists(st.binary(max_size=6), max_size=5))
def test_bytes_are_a_base64_string(values: list[bytes]) -> None:
    rows = JsonLines(ConverterType.BYTES).encode(columns.binaries(values)).to_pylist()
    assert all(row.endswith(b"\n") for row in rows)
    assert [base64.b64decode(json.loads(row), validate=True) for row in rows] == values


@pytest.mark.parametrize("converter", [each for each in ConverterType if each not in UNSTRUCTURED])
def test_other_values_are_json_already(converter: ConverterType) -> None:
    values = columns.binaries([b'{"a": 1}', b"5"])
    assert JsonLines(converter).encode(values).to_pylist() == [b'{"a": 1}\n', b"5\n"]
    assert JsonLines(converter).texts(values).to_pylist() == [b'{"a": 1}', b"5"]


@pytest.mark.parametrize("text", [b"\x00", b"\x1f", b'"', b"\\"])
def test_a_text_that_must_be_escaped_is_seen_only_in_its_own_slice(text: bytes) -> None:
    values = columns.binaries([text, b"a", text])
    assert JsonLines(ConverterType.TEXT).texts(values.slice(1, 1)).to_pylist() == [b'"a"']
    assert JsonLines(ConverterType.TEXT).texts(values.slice(2)).to_pylist() == [msgspec.json.encode(text.decode())]


@pytest.mark.parametrize("converter", UNSTRUCTURED)
def test_the_end_follows_the_closing_quote(converter: ConverterType) -> None:
    values = columns.binaries([b"a", b""])
    texts = JsonLines(converter).texts(values).to_pylist()
    assert JsonLines(converter).texts(values, b";").to_pylist() == [text + b";" for text in texts]
