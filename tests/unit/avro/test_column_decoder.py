"""Decoding column-wise is equal to decoding row-wise, for valid and for damaged data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import DecimalFormat, TimestampFormat
from sink_job.arrow import columnar
from sink_job.avro import converter as avro_converter
from sink_job.avro.converter import AvroDecoder
from sink_job.connect.json_encoder import JsonOptions
from sink_job.converters.registered import Decoded
from tests.unit.avro.avro_data import encode, record, registered, samples

OPTIONS = st.builds(JsonOptions, st.sampled_from(DecimalFormat), st.sampled_from(TimestampFormat))
FIELDS = ("f0", "f0.f0", "f1.f0.f1", "absent")


def decode(schema: Any, data: list[bytes], options: JsonOptions, *, min_rows: int) -> Decoded:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", min_rows)
        return AvroDecoder(registered(schema), FIELDS, options).decode(pa.array(data, pa.binary()))


def plain(found: Decoded) -> tuple[Any, ...]:
    """The result, with empty texts for rejected rows."""
    texts = found.texts.to_pylist()
    for row, _ in found.rejected:
        texts[row] = b""
    nulls = None if found.nulls is None else found.nulls.tolist()
    return texts, nulls, found.rejected, repr(found.fields)


def assert_equal_in_both_ways(schema: Any, data: list[bytes], options: JsonOptions) -> None:
    by_column = decode(schema, data, options, min_rows=0)
    assert plain(by_column) == plain(decode(schema, data, options, min_rows=1 << 60))


@given(samples(), OPTIONS)
def test_valid_data_has_the_same_texts_and_fields_in_both_ways(
    sample: tuple[Any, list[Any]], options: JsonOptions
) -> None:
    schema, values = sample
    assert_equal_in_both_ways(schema, encode(schema, values), options)


@st.composite
def damaged(draw: Any) -> tuple[Any, list[bytes]]:
    """A schema, and data of it in which bytes were replaced, inserted, removed or cut off."""
    schema, values = draw(samples(depth=2).filter(lambda sample: sample[1]))
    data = [bytearray(each) for each in encode(schema, values)]
    for _ in range(draw(st.integers(1, 3))):
        each = draw(st.sampled_from(data))
        at = draw(st.integers(0, len(each)))
        each[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=10))
    return schema, [bytes(each) for each in data]


@given(damaged(), OPTIONS)
def test_damaged_data_is_rejected_for_the_same_reasons_in_both_ways(
    sample: tuple[Any, list[bytes]], options: JsonOptions
) -> None:
    assert_equal_in_both_ways(*sample, options)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_a_float_is_the_shortest_number_that_reads_as_it(values: list[float]) -> None:
    schema = record(("f0", "float"))
    assert_equal_in_both_ways(schema, encode(schema, [{"f0": value} for value in values]), JsonOptions())


@given(st.lists(st.text(max_size=8), max_size=20))
def test_texts_are_escaped_alike(values: list[str]) -> None:
    schema = record(("f0", {"type": "map", "values": ["null", "string"]}))
    data = encode(schema, [{"f0": {value: value}} for value in values])
    assert_equal_in_both_ways(schema, data, JsonOptions())


def test_a_slice_is_decoded_as_its_own_rows() -> None:
    schema = record(("f0", {"type": "array", "items": "string"}), ("f1", ["null", "bytes"]))
    data = encode(schema, [{"f0": ["a"] * n, "f1": None if n % 2 else b"x"} for n in range(40)])
    payload = pa.array(data, pa.binary())
    decoder = AvroDecoder(registered(schema), (), JsonOptions())
    assert decoder.decode(payload.slice(3, 30)).texts.equals(decoder.decode(payload).texts.slice(3, 30))


def test_common_types_are_read_by_column_without_reading_a_record_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = record(
        ("f0", ["null", record(("f0", "long"), name="S")]),
        ("f1", {"type": "map", "values": {"type": "array", "items": "double"}}),
        ("f2", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("f3", {"type": "enum", "name": "E", "symbols": ["A", "B"]}),
    )
    data = encode(schema, [{"f0": None, "f1": {"k": [1.5, 2.0]}, "f2": b"\1", "f3": "B"}] * 20)
    decoder = AvroDecoder(registered(schema), ("f3",), JsonOptions())
    monkeypatch.setattr(avro_converter.AvroRowDecoder, "decode", None)
    found = decoder.decode(pa.array(data, pa.binary()))
    assert found.texts[0].as_py() == b'{"f0":null,"f1":{"k":[1.5,2.0]},"f2":"AQ==","f3":"B"}'
    assert found.fields == {"f3": ["B"] * 20}
