"""MessagePack: encoders of other libraries, timestamps and extension types."""

from __future__ import annotations

import json
import struct
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.converters.base import Converted
from sink_job.plain.message_pack import MessagePackConverter


def convert(*values: bytes, fields: tuple[str, ...] = ()) -> Converted:
    return MessagePackConverter(fields).convert(pa.array(values, pa.binary()))


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner, max_size=20),
    max_leaves=30,
)


@given(st.lists(plain.filter(lambda item: item is not None), max_size=4))
def test_items_of_another_encoder_become_equal_json(items: list[Any]) -> None:
    found = convert(*map(msgspec.msgpack.encode, items))
    assert found.rejected == []
    assert [json.loads(text) for text in found.values.to_pylist()] == items


def test_a_32_bit_float_keeps_its_value() -> None:
    assert convert(b"\xca" + struct.pack(">f", 0.1)).values[0].as_py() == b"0.10000000149011612"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\xd6\xff" + struct.pack(">I", 2**32 - 1), b"4294967295000"),
        (b"\xd7\xff" + struct.pack(">Q", 999_999_999 << 34 | 2**34 - 1), b"17179869183999"),
        (b"\xc7\x0c\xff" + struct.pack(">Iq", 999_999_999, 0), b"999"),
        (b"\xc7\x0c\xff" + struct.pack(">Iq", 1, -1), b"-1000"),
        (b"\xc7\x0c\xff" + struct.pack(">Iq", 0, 2**62), b"4611686018427387904000"),
    ],
    ids=["32 bits", "64 bits", "96 bits", "before the epoch", "far in the future"],
)
def test_a_timestamp_becomes_milliseconds_rounded_down(value: bytes, text: bytes) -> None:
    assert convert(value).values[0].as_py() == text


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"\xd4\x05\x01", "the value contains the extension type 5, which is not supported"),
        (b"\x91\xc7\x00\x80", "the value contains the extension type -128, which is not supported"),
        (b"\xd4\xff\x01", "the value is not MessagePack: invalid timestamp data (length 1)"),
        (b"\xc1", "the value is not MessagePack: invalid opcode '\\xc1' (byte 0)"),
        (b"\x01\x02", "the value is not MessagePack: trailing characters (byte 1)"),
        (b"\x92\x01", "the value is not MessagePack: Input data was truncated"),
    ],
)
def test_an_invalid_or_unsupported_item_is_rejected_with_its_reason(value: bytes, error: str) -> None:
    assert convert(b"\x01", value).rejected == [(1, error)]


def test_pairs_with_equal_keys_other_than_text_are_all_written() -> None:
    assert convert(b"\x83\x01\x02\x01\x03\xc3\x04").values[0].as_py() == b"[[1,2],[1,3],[true,4]]"
