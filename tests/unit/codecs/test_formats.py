"""Row encoders: the bytes of each record in an object."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.sections.format_section import BytesSpec, FormatSpec
from sink_job.codecs.formats import row_encoder


def frame(
    values: list[bytes], *, converter: ConverterType = ConverterType.JSON, separator: str | None = None
) -> list[bytes]:
    output = OutputFormat.JSON if separator is None else OutputFormat.BYTES
    settings = FormatSpec(converter=converter, output=output, bytes=BytesSpec(separator=separator or ""))
    rows: list[bytes] = row_encoder(settings).encode(pa.array(values, pa.binary())).to_pylist()
    return rows


def test_a_json_value_becomes_one_line() -> None:
    assert frame([b'{"a": 1}', b"5"]) == [b'{"a": 1}\n', b"5\n"]


def test_text_becomes_json_strings() -> None:
    assert frame(["ä b".encode(), b""], converter=ConverterType.TEXT) == ['"ä b"\n'.encode(), b'""\n']


def test_text_in_json_strings_is_escaped_where_required() -> None:
    rows = frame([b'say "x"', b"a\\b\n", b"plain", b"\x01"], converter=ConverterType.TEXT)
    assert rows == [b'"say \\"x\\""\n', b'"a\\\\b\\n"\n', b'"plain"\n', b'"\\u0001"\n']


@given(st.lists(st.text()))
def test_a_json_string_is_one_line_and_parses_to_the_original_text(values: list[str]) -> None:
    rows = frame([value.encode() for value in values], converter=ConverterType.TEXT)
    assert [json.loads(row) for row in rows] == values
    assert all(row.count(b"\n") == 1 for row in rows)


@given(st.lists(st.binary()))
def test_bytes_become_base64_strings_in_json(values: list[bytes]) -> None:
    rows = frame(values, converter=ConverterType.BYTES)
    assert [base64.b64decode(json.loads(row)) for row in rows] == values


@pytest.mark.parametrize("converter", [ConverterType.JSON, ConverterType.TEXT, ConverterType.BYTES])
def test_output_bytes_writes_the_value_and_the_separator(converter: ConverterType) -> None:
    assert frame([b"a", b""], converter=converter, separator="\r\n") == [b"a\r\n", b"\r\n"]
    assert frame([b"a", b""], converter=converter, separator="") == [b"a", b""]


@pytest.mark.parametrize("output", [OutputFormat.AVRO, OutputFormat.PARQUET])
def test_a_datum_becomes_a_row_that_counts_with_its_length(output: OutputFormat) -> None:
    encoder, values = row_encoder(FormatSpec(output=output)), pa.array([b"ab", b""], pa.binary())
    assert encoder.encode(values) is values
    assert encoder.prefix_bytes == 4
