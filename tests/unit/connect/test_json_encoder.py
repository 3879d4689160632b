"""Values as JSON, against what JsonConverter with schemas.enable=false writes."""

from __future__ import annotations

import base64
import json
import math
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import DecimalFormat, TimestampFormat
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.json_decoder import decode_json, default_value, value_reader
from sink_job.connect.json_encoder import JsonOptions, json_text
from sink_job.connect.schema import Default, Field, Schema, SchemaType

ISO = JsonOptions(timestamps=TimestampFormat.ISO)
NUMERIC = JsonOptions(decimals=DecimalFormat.NUMERIC)

TEXT = Schema(SchemaType.STRING)
INT32 = Schema(SchemaType.INT32)


def decimal_schema(scale: int) -> Schema:
    return Schema(SchemaType.BYTES, name=logical_types.DECIMAL, version=1, parameters=(("scale", str(scale)),))


def struct(*fields: Field, name: str | None = None, optional: bool = False) -> Schema:
    return Schema(SchemaType.STRUCT, name=name, optional=optional, fields=fields)


def written(schema: Schema, value: object, options: JsonOptions | None = None) -> str:
    return json_text(schema, value, options or JsonOptions()).decode()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (SchemaType.INT8, -128, "-128"),
        (SchemaType.INT64, 2**63 - 1, "9223372036854775807"),
        (SchemaType.FLOAT64, 0.1, "0.1"),
        (SchemaType.FLOAT64, math.nan, '"NaN"'),
        (SchemaType.FLOAT64, math.inf, '"Infinity"'),
        (SchemaType.FLOAT64, -math.inf, '"-Infinity"'),
        (SchemaType.FLOAT32, 0.10000000149011612, "0.1"),
        (SchemaType.FLOAT32, math.nan, '"NaN"'),
        (SchemaType.BOOLEAN, True, "true"),
        (SchemaType.STRING, 'ä"\n', '"ä\\"\\n"'),
        (SchemaType.BYTES, b"\x00\xff\xfe", '"AP/+"'),
    ],
)
def test_a_scalar_is_written_as_jsonconverter_writes_it(kind: SchemaType, value: object, text: str) -> None:
    assert written(Schema(kind), value) == text


def test_an_optional_null_is_null() -> None:
    assert written(Schema(SchemaType.INT32, optional=True), None) == "null"


def test_a_required_null_without_default_is_rejected() -> None:
    with pytest.raises(InvalidValue, match="required value"):
        written(INT32, None)


@pytest.mark.parametrize("optional", [True, False])
def test_a_null_takes_the_default_of_its_schema(optional: bool) -> None:
    assert written(Schema(SchemaType.INT32, optional=optional, default=Default("5")), None) == "5"


def test_a_struct_has_all_fields_in_the_order_of_its_schema() -> None:
    schema = struct(Field("b", INT32), Field("a", Schema(SchemaType.STRING, optional=True)))
    assert written(schema, {"b": 1}) == '{"b":1,"a":null}'


def test_a_union_has_a_field_for_each_member() -> None:
    members = (Field("int", Schema(SchemaType.INT32, optional=True)), Field("string", Schema(TEXT.type, optional=True)))
    assert written(struct(*members, name="io.confluent.connect.avro.Union"), {"string": "x"}) == (
        '{"int":null,"string":"x"}'
    )


def test_an_array_is_an_array() -> None:
    assert written(Schema(SchemaType.ARRAY, values=Schema(SchemaType.BYTES)), [b"a", b""]) == '["YQ==",""]'


def test_a_map_with_text_keys_is_an_object() -> None:
    assert written(Schema(SchemaType.MAP, keys=TEXT, values=INT32), {"a": 1, "": 2}) == '{"a":1,"":2}'


def test_a_map_with_other_keys_is_an_array_of_pairs() -> None:
    assert written(Schema(SchemaType.MAP, keys=INT32, values=TEXT), [(1, "a"), (2, "b")]) == '[[1,"a"],[2,"b"]]'


@pytest.mark.parametrize(
    ("value", "scale", "encoded", "number"),
    [
        ("12.34", 2, b"\x04\xd2", "12.34"),
        ("-1", 0, b"\xff", "-1"),
        ("1.10", 2, b"\x6e", "1.10"),
        ("128", 0, b"\x00\x80", "128"),
        ("1E+3", -3, b"\x01", "1E+3"),
    ],
)
def test_a_decimal_is_base64_or_a_number(value: str, scale: int, encoded: bytes, number: str) -> None:
    assert written(decimal_schema(scale), Decimal(value)) == f'"{base64.b64encode(encoded).decode()}"'
    assert written(decimal_schema(scale), Decimal(value), NUMERIC) == number


@pytest.mark.parametrize("value", ["1e999999999", "1e4001", "0e999999999"])
def test_a_decimal_that_would_have_too_many_digits_is_rejected(value: str) -> None:
    with pytest.raises(InvalidValue, match="more than 4,000 digits"):
        written(decimal_schema(0), Decimal(value))


@pytest.mark.parametrize("number", ["1e999999999", "1e4001", "-1e-999999999", "0e999999999"])
def test_a_decimal_with_too_many_digits_is_not_read(number: str) -> None:
    with pytest.raises(InvalidValue, match="more than 4,000 digits"):
        value_reader(decimal_schema(0))(decode_json(number))


@pytest.mark.parametrize("scale", [1_000_000_000, -1_000_000_000, 10**19, 10_001])
def test_a_decimal_with_a_scale_that_is_too_large_is_rejected(scale: int) -> None:
    with pytest.raises(InvalidSchema, match="within ±10,000"):
        written(decimal_schema(scale), Decimal(1))


def test_a_number_whose_exponent_is_out_of_range_is_no_json() -> None:
    with pytest.raises(msgspec.DecodeError, match="out of range"):
        decode_json("1e99999999999999999999")


@pytest.mark.parametrize(("value", "text"), [(1e300, '"Infinity"'), (-1e39, '"-Infinity"'), (3.4e38, "3.4e38")])
def test_a_number_beyond_32_bits_is_infinity_as_in_java(value: float, text: str) -> None:
    assert written(Schema(SchemaType.FLOAT32), value) == text


@pytest.mark.parametrize(("kind", "value", "text"), [(SchemaType.FLOAT64, 1.5, "1.5"), (SchemaType.STRING, "x", '"x"')])
def test_a_schema_with_the_name_of_a_time_that_is_no_integer_is_written_as_its_type(
    kind: SchemaType, value: object, text: str
) -> None:
    assert written(Schema(kind, name=logical_types.TIMESTAMP), value, ISO) == text


def test_a_decimal_with_too_many_places_is_rejected() -> None:
    with pytest.raises(InvalidValue, match="scale 1"):
        written(decimal_schema(1), Decimal("1.23"))


@given(st.integers(-(10**60), 10**60), st.integers(-5, 20))
def test_a_decimal_from_its_bytes_has_the_same_bytes(unscaled: int, scale: int) -> None:
    encoded = logical_types.integer_to_bytes(unscaled)
    value = logical_types.decimal_from_bytes(encoded, scale)
    assert value == Decimal(f"{unscaled}E{-scale}")
    assert logical_types.decimal_to_bytes(value, scale) == encoded


def test_a_decimal_without_bytes_is_rejected() -> None:
    with pytest.raises(InvalidValue, match="no bytes"):
        logical_types.decimal_from_bytes(b"", 2)


def test_a_very_long_decimal_is_rejected() -> None:
    with pytest.raises(InvalidValue, match="too long"):
        logical_types.decimal_from_bytes(b"\x7f" * 100_000, 2)


def test_a_decimal_schema_without_scale_is_invalid() -> None:
    with pytest.raises(InvalidSchema, match="scale"):
        written(Schema(SchemaType.BYTES, name=logical_types.DECIMAL), Decimal(1))


@pytest.mark.parametrize(
    ("name", "kind", "value", "text"),
    [
        (logical_types.DATE, SchemaType.INT32, 19_753, '"2024-01-31"'),
        (logical_types.DATE, SchemaType.INT32, -719_529, '"-0001-12-31"'),
        (logical_types.DATE, SchemaType.INT32, 2_932_897, '"+10000-01-01"'),
        (logical_types.TIME, SchemaType.INT32, 45_296_007, '"12:34:56.007"'),
        (logical_types.TIMESTAMP, SchemaType.INT64, 1_706_704_496_789, '"2024-01-31T12:34:56.789Z"'),
        (logical_types.TIMESTAMP, SchemaType.INT64, -1, '"1969-12-31T23:59:59.999Z"'),
    ],
)
def test_a_date_or_time_is_a_number_or_an_iso_text(name: str, kind: SchemaType, value: int, text: str) -> None:
    schema = Schema(kind, name=name, version=1)
    assert written(schema, value) == str(value)
    assert written(schema, value, ISO) == text


def test_a_time_outside_a_day_has_no_iso_text() -> None:
    with pytest.raises(InvalidValue, match="time of the day"):
        written(Schema(SchemaType.INT32, name=logical_types.TIME), 86_400_000, ISO)


LIST = struct(
    Field("value", INT32),
    Field("next", Schema(SchemaType.REFERENCE, name="List", optional=True)),
    name="List",
)


def test_a_recursive_value_is_nested() -> None:
    assert json.loads(written(LIST, {"value": 1, "next": {"value": 2}})) == {
        "value": 1,
        "next": {"value": 2, "next": None},
    }


def test_a_too_deeply_nested_value_is_rejected() -> None:
    value: dict[str, object] = {"value": 0}
    for number in range(100_000):
        value = {"value": number, "next": value}
    with pytest.raises(InvalidValue, match="nested too deeply"):
        written(LIST, value)


def test_a_reference_outside_its_struct_is_invalid() -> None:
    with pytest.raises(InvalidSchema, match="does not enclose"):
        written(Schema(SchemaType.REFERENCE, name="List"), {"value": 1})


def test_a_default_is_read_from_its_json_text() -> None:
    assert default_value(Schema(SchemaType.BYTES, default=Default('"AP8="'))) == b"\x00\xff"
    assert default_value(TEXT) is None


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        (INT32, "2147483648", "32 bits"),
        (INT32, "1.5", "an integer"),
        (INT32, "true", "an integer"),
        (TEXT, "1", "a text"),
        (Schema(SchemaType.BOOLEAN), "0", "a boolean"),
        (Schema(SchemaType.BYTES), '"a"', "not base64"),
        (Schema(SchemaType.FLOAT64), '"1"', "a number"),
        (Schema(SchemaType.ARRAY, values=INT32), "{}", "an array"),
        (struct(Field("a", INT32)), "{}", "null or missing"),
        (Schema(SchemaType.MAP, keys=INT32, values=INT32), "[[1]]", "a key and a value"),
    ],
)
def test_a_json_value_of_another_type_is_rejected(schema: Schema, text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        value_reader(schema)(decode_json(text))


_SCALARS = st.sampled_from(
    [
        (INT32, st.integers(-(2**31), 2**31 - 1)),
        (Schema(SchemaType.INT64), st.integers(-(2**63), 2**63 - 1)),
        (Schema(SchemaType.FLOAT64), st.floats(allow_nan=False)),
        (Schema(SchemaType.FLOAT32), st.floats(allow_nan=False, width=32)),
        (TEXT, st.text()),
        (Schema(SchemaType.BYTES), st.binary()),
        (Schema(SchemaType.BOOLEAN), st.booleans()),
        (decimal_schema(3), st.decimals(places=3, min_value=-(10**20), max_value=10**20)),
    ]
)


@given(st.data())
def test_a_value_is_read_back_from_its_json_text(data: st.DataObject) -> None:
    scalar, values = data.draw(_SCALARS)
    schema = struct(
        Field("list", Schema(SchemaType.ARRAY, values=scalar)),
        Field("map", Schema(SchemaType.MAP, keys=TEXT, values=scalar)),
        Field("pairs", Schema(SchemaType.MAP, keys=INT32, values=scalar)),
        Field("none", Schema(SchemaType.INT8, optional=True)),
    )
    value = {
        "list": data.draw(st.lists(values, max_size=3)),
        "map": data.draw(st.dictionaries(st.text(max_size=3), values, max_size=3)),
        "pairs": list(data.draw(st.dictionaries(st.integers(0, 9), values, max_size=3)).items()),
        "none": None,
    }
    for options in (JsonOptions(), NUMERIC):
        text = json_text(schema, value, options)
        found = value_reader(schema)(decode_json(text))
        assert json_text(schema, found, options) == text
        if scalar.type is not SchemaType.FLOAT32:
            assert found == value
