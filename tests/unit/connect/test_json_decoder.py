"""JSON values under a schema: what is accepted, and the reason of what is not."""

from __future__ import annotations

import base64
import math
import re
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.connect import json_decoder
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.json_decoder import decode_json, decode_reason, default_value, value_reader
from sink_job.connect.json_encoder import json_text
from sink_job.connect.logical_types import DECIMAL
from sink_job.connect.schema import INTEGER_BITS, Default, Field, Schema, SchemaType
from tests.unit.connect import strategies

TEXT, INT = Schema(SchemaType.STRING), Schema(SchemaType.INT32)
AMOUNT = Schema(SchemaType.BYTES, DECIMAL, parameters=(("scale", "2"),))
NODE = Schema(
    SchemaType.STRUCT,
    "Node",
    fields=(Field("n", INT), Field("next", Schema(SchemaType.REFERENCE, "Node", optional=True))),
)


def read(schema: Schema, text: str) -> Any:
    return value_reader(schema)(decode_json(text))


def reason(schema: Schema, text: str) -> str:
    with pytest.raises(InvalidValue) as caught:
        read(schema, text)
    return str(caught.value)


@settings(max_examples=60)
@given(st.data())
def test_what_the_encoder_writes_is_read_again(data: st.DataObject) -> None:
    schema = data.draw(strategies.schemas(2))
    value = data.draw(strategies.values(schema, full=False))
    text = json_text(schema, value)
    assert json_text(schema, read(schema, text.decode())) == text


@pytest.mark.parametrize("kind", INTEGER_BITS)
def test_an_integer_has_the_range_of_its_type(kind: SchemaType) -> None:
    limit = 1 << INTEGER_BITS[kind] - 1
    assert read(Schema(kind), str(-limit)) == -limit
    assert read(Schema(kind), str(limit - 1)) == limit - 1
    for outside in (-limit - 1, limit):
        assert reason(Schema(kind), str(outside)) == f"the number {outside} does not fit into {INTEGER_BITS[kind]} bits"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (SchemaType.INT32, "true", "a JSON value must be an integer"),
        (SchemaType.INT32, "1.0", "a JSON value must be an integer"),
        (SchemaType.INT32, '"1"', "a JSON value must be an integer"),
        (SchemaType.FLOAT64, "true", "a JSON value must be a number"),
        (SchemaType.FLOAT64, '"nan"', "a JSON value must be a number"),
        (SchemaType.FLOAT64, "1" + "0" * 400, "a number does not fit into 64 bits"),
        (SchemaType.BOOLEAN, "1", "a JSON value must be a boolean"),
        (SchemaType.STRING, "1", "a JSON value must be a text"),
        (SchemaType.BYTES, "1", "a JSON value must be a base64 text"),
        (SchemaType.STRUCT, "[]", "a JSON value must be an object"),
    ],
)
def test_a_value_of_another_type_is_rejected(kind: SchemaType, text: str, expected: str) -> None:
    assert reason(Schema(kind), text) == expected


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1.0), ("0.1", 0.1), ('"Infinity"', math.inf), ('"-Infinity"', -math.inf)]
)
def test_a_float_is_a_number_or_the_name_of_an_infinity(text: str, value: float) -> None:
    assert read(Schema(SchemaType.FLOAT64), text) == value
    assert math.isnan(read(Schema(SchemaType.FLOAT32), '"NaN"'))


@given(st.binary(max_size=8))
def test_bytes_are_base64(value: bytes) -> None:
    assert read(Schema(SchemaType.BYTES), f'"{base64.b64encode(value).decode()}"') == value


@pytest.mark.parametrize("text", ['"A"', '"A==="', '"A A="', '"AP_-"', '"AAA =!"', '"ä"'])
def test_another_text_is_not_base64(text: str) -> None:
    assert reason(Schema(SchemaType.BYTES), text).startswith("a text is not base64: ")


@pytest.mark.parametrize(("text", "value"), [("1.5", "1.5"), ("3", "3"), ("1e2", "1E+2"), ('"AJY="', "1.50")])
def test_a_decimal_is_an_exact_number_or_base64_of_its_bytes(text: str, value: str) -> None:
    assert str(read(AMOUNT, text)) == value


def test_another_decimal_is_rejected() -> None:
    assert reason(AMOUNT, "true") == "a decimal must be a number or a base64 text"
    assert "more than 4,000 digits" in reason(AMOUNT, "1e9999")


def test_a_number_whose_exponent_python_does_not_support_is_no_json() -> None:
    with pytest.raises(msgspec.DecodeError, match="the exponent of a number is out of range"):
        decode_json("1e99999999999999999999")


def test_a_null_takes_the_default_else_it_needs_an_optional_schema() -> None:
    assert read(Schema(SchemaType.INT32, default=Default("7")), "null") == 7
    assert read(Schema(SchemaType.INT32, optional=True, default=Default("7")), "null") == 7
    assert read(Schema(SchemaType.INT32, optional=True), "null") is None
    assert reason(INT, "null") == "a required value of type int32 is null or missing"


def test_a_missing_field_is_a_null_and_an_unknown_property_is_dropped() -> None:
    schema = Schema(SchemaType.STRUCT, fields=(Field("a", Schema(SchemaType.INT32, default=Default("7"))),))
    assert read(schema, '{"b": 1}') == {"a": 7}


def test_a_reason_has_the_path_of_the_field() -> None:
    inner = Schema(SchemaType.STRUCT, fields=(Field("b", Schema(SchemaType.ARRAY, values=INT)),))
    schema = Schema(SchemaType.STRUCT, fields=(Field("a", inner),))
    assert reason(schema, '{"a": {"b": [1, "x"]}}') == "the field a.b: a JSON value must be an integer"


def test_a_map_is_an_object_or_an_array_of_pairs() -> None:
    assert read(Schema(SchemaType.MAP, keys=TEXT, values=INT), '{"a": 1}') == {"a": 1}
    numbers = Schema(SchemaType.MAP, keys=INT, values=TEXT)
    assert read(numbers, '[[1, "a"], [2, "b"]]') == [(1, "a"), (2, "b")]
    assert reason(numbers, "{}") == "a JSON value must be an array"
    for entry in ("[1]", '[1, "a", 2]', "1"):
        assert "must be an array of a key and a value" in reason(numbers, f"[{entry}]")


def test_a_recursive_value_is_read_at_each_level() -> None:
    assert read(NODE, '{"n": 1, "next": {"n": 2}}') == {"n": 1, "next": {"n": 2, "next": None}}
    assert reason(NODE, '{"n": 1, "next": {"n": "x"}}') == "the field next.n: a JSON value must be an integer"


def test_a_reference_without_its_struct_fails_where_it_has_a_value() -> None:
    schema = Schema(SchemaType.ARRAY, values=Schema(SchemaType.REFERENCE, "Gone"))
    assert read(schema, "[]") == []
    with pytest.raises(InvalidSchema, match="refers to Gone"):
        read(schema, "[1]")


def test_the_fields_of_one_value_are_limited_also_those_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_decoder, "MAX_FIELDS", 6)
    optional = Schema(SchemaType.INT32, optional=True)
    item = Schema(SchemaType.STRUCT, fields=tuple(Field(name, optional) for name in "abc"))
    reader = value_reader(Schema(SchemaType.ARRAY, values=item))
    for _ in range(2):  # the count begins again with each value
        assert reader([{}, {}]) == [dict.fromkeys("abc")] * 2
    with pytest.raises(InvalidValue, match="more than 6 fields"):
        reader([{}, {}, {}])


def test_a_default_is_read_under_its_schema() -> None:
    assert default_value(INT) is None
    assert default_value(Schema(SchemaType.BYTES, default=Default('"AAE="'))) == b"\0\1"
    assert default_value(
        Schema(SchemaType.BYTES, DECIMAL, parameters=(("scale", "1"),), default=Default('"Dw=="'))
    ) == (Decimal("1.5"))
    with pytest.raises(InvalidValue, match="must be an integer"):
        default_value(Schema(SchemaType.INT32, default=Default('"x"')))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb'"\ud800a"', "a string has a surrogate that is not part of a pair"),
        (rb'"\\ud800', "Input data was truncated"),
        (b'{"a', "Input data was truncated"),
        (b"{a}", "object keys must be strings (byte 1)"),
    ],
)
def test_the_reason_of_a_text_that_is_no_json(text: bytes, expected: str) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        decode_json(text)
    assert re.search(re.escape(expected), decode_reason(caught.value, text))
