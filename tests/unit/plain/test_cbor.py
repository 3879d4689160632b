"""CBOR: the examples of RFC 8949, and tags."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import cbor2
import pyarrow as pa
import pytest

from sink_job.converters.base import Converted
from sink_job.plain.cbor import CborConverter


def convert(*values: str, fields: tuple[str, ...] = ()) -> Converted:
    """Converts values in hexadecimal digits."""
    return CborConverter(fields).convert(pa.array([bytes.fromhex(value) for value in values], pa.binary()))


RFC_8949_APPENDIX_A = [
    ("00", 0),
    ("17", 23),
    ("1818", 24),
    ("1903e8", 1000),
    ("1b000000e8d4a51000", 1000000000000),
    ("1bffffffffffffffff", 18446744073709551615),
    ("c249010000000000000000", 18446744073709551616),
    ("3bffffffffffffffff", -18446744073709551616),
    ("c349010000000000000000", -18446744073709551617),
    ("3903e7", -1000),
    ("f90000", 0.0),
    ("f98000", -0.0),
    ("f93c00", 1.0),
    ("fb3ff199999999999a", 1.1),
    ("f97bff", 65504.0),
    ("fa47c35000", 100000.0),
    ("fa7f7fffff", 3.4028234663852886e38),
    ("fb7e37e43c8800759c", 1.0e300),
    ("f90001", 5.960464477539063e-8),
    ("fbc010666666666666", -4.1),
    ("f97c00", "Infinity"),
    ("f97e00", "NaN"),
    ("fbfff0000000000000", "-Infinity"),
    ("f4", False),
    ("f5", True),
    ("c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"),
    ("c11a514b67b0", 1363896240000),
    ("c1fb41d452d9ec200000", 1363896240500),
    ("d74401020304", "AQIDBA=="),
    ("d818456449455446", "ZElFVEY="),
    ("d82076687474703a2f2f7777772e6578616d706c652e636f6d", "http://www.example.com"),
    ("40", ""),
    ("4401020304", "AQIDBA=="),
    ("60", ""),
    ("62225c", '"\\'),
    ("63e6b0b4", "水"),
    ("64f0908591", "\U00010151"),
    ("80", []),
    ("8301820203820405", [1, [2, 3], [4, 5]]),
    ("a0", {}),
    ("a201020304", [[1, 2], [3, 4]]),
    ("a26161016162820203", {"a": 1, "b": [2, 3]}),
    ("826161a161626163", ["a", {"b": "c"}]),
    ("5f42010243030405ff", "AQIDBAU="),
    ("7f657374726561646d696e67ff", "streaming"),
    ("9fff", []),
    ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
    ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
    ("bf6346756ef563416d7421ff", {"Fun": True, "Amt": -2}),
]
"""Encodings, and the item as JSON by the rules of this converter."""


@pytest.mark.parametrize(("value", "item"), RFC_8949_APPENDIX_A)
def test_an_example_of_the_specification_becomes_json(value: str, item: object) -> None:
    found = convert(value)
    assert found.rejected == []
    text = found.values[0].as_py()
    assert json.loads(text) == item
    assert type(json.loads(text)) is type(item)


@pytest.mark.parametrize("value", ["f6", "f7", "d9d9f7f6"])
def test_null_and_undefined_are_no_value(value: str) -> None:
    found = convert(value)
    assert found.nulls is not None
    assert found.nulls.tolist() == [True]


def test_undefined_within_a_value_is_null() -> None:
    assert convert("82f7a16161f7").values[0].as_py() == b'[null,{"a":null}]'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("c48221196ab3", b"273.15"),
        ("c4820303", b"3E+3"),
        ("c4822003", b"0.3"),
        ("c48221c249010000000000000000", b"184467440737095516.16"),
        ("c5822003", b"1.5"),
        ("c5820a03", b"3072"),
        ("c4821904" + "4c" + "01", b"1E+1100"),
    ],
)
def test_a_decimal_becomes_an_exact_number(value: str, text: bytes) -> None:
    assert convert(value).values[0].as_py() == text


def test_a_small_bigfloat_has_all_its_digits() -> None:
    [text] = convert("c58239044b01").values.to_pylist()
    assert Fraction(Decimal(text.decode())) == Fraction(1, 2**1100)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("c25904010" + "1" + "00" * 1024, "a bignum in the value is longer than 1024 bytes"),
        ("c48201c2590401" + "01" + "00" * 1024, "a bignum in the value is longer than 1024 bytes"),
        ("c201", "a bignum in the value (tag 2 or 3) is not a byte string"),
        ("c36161", "a bignum in the value (tag 2 or 3) is not a byte string"),
        ("c48219044d01", "the exponent of a decimal in the value is beyond ±1100"),
        ("c5821a05ffffff03", "the exponent of a decimal in the value is beyond ±1100"),
        ("c482f501", "a decimal in the value (tag 4 or 5) is not an array of two integers"),
        ("c581f5", "a decimal in the value (tag 4 or 5) is not an array of two integers"),
        ("c16161", "a time in the value (tag 1) is not a number of seconds"),
        ("c1f97e00", "a time in the value (tag 1) is not a number of seconds"),
        ("c11b7fffffffffffffff", "a time in the value (tag 1) is not a number of seconds"),
        ("d90100826361616163616161", "the value contains the tag 256, which is not supported"),
        ("d81900", "the value contains the tag 25, which is not supported"),
        ("82d81c8101d81d00", "the value contains the tag 28, which is not supported"),
        ("f820", "the value contains the simple value 32, which is not supported"),
        ("f0", "the value contains the simple value 16, which is not supported"),
        ("a2010201f4", "a map in the value has a key twice"),
        ("ff", "the value is not CBOR: break code encountered where a data item was expected"),
        ("0102", "the value is not CBOR: trailing bytes (byte 1)"),
        ("1903", "the value is not CBOR: Input data was truncated"),
    ],
)
def test_an_invalid_or_unsupported_item_is_rejected_with_its_reason(value: str, error: str) -> None:
    for wrapped in (value, "d9d9f7" + value):
        assert convert("01", wrapped).rejected[0][0] == 1
    assert convert(value).rejected == [(0, error)]
    if len(value) < 60 and not error.startswith("the value is not"):
        assert convert("81a16161" + value).rejected == [(0, error)]


def test_every_other_tag_is_left_out() -> None:
    special = {0, 1, 2, 3, 4, 5, 25, 28, 29, 256}
    tags = [*range(1200), 43000, 55799, 2**32, 2**64 - 1]
    content = ["x", 1, b"\x01", {"a": [1]}]
    for tag in tags:
        if tag not in special:
            found = CborConverter().convert(pa.array([cbor2.dumps(cbor2.CBORTag(tag, content))], pa.binary()))
            assert found.values.to_pylist() == [b'["x",1,"AQ==",{"a":[1]}]'], tag


def test_a_tag_in_a_key_and_a_map_in_a_tag_in_a_key_are_left_out() -> None:
    assert convert("a1d84da161610102", "a1c10102").values.to_pylist() == [b'[[{"a":1},2]]', b"[[1000,2]]"]


def test_text_in_a_regular_expression_tag_is_not_compiled() -> None:
    assert convert("d82361" + "28").values[0].as_py() == b'"("'


def test_a_date_text_and_a_time_are_fields() -> None:
    found = convert("a26164c074323031332d30332d32315432303a30343a30305a6174c11a514b67b0", fields=("d", "t"))
    assert found.fields == {"d": ["2013-03-21T20:04:00Z"], "t": [1363896240000]}
