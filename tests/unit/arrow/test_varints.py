"""Variable-length integers, row-wise and as columns."""

from __future__ import annotations

import io

import fastavro
import numpy as np
import pytest

from sink_job.arrow.varints import encode_long, encode_longs, encode_varint, read_long, read_varint

EDGES = sorted({sign * (1 << bits) + more for bits in range(63) for sign in (-1, 1) for more in (-1, 0, 1)})
LONGS = [-(1 << 63), *EDGES, (1 << 63) - 1]


@pytest.mark.parametrize("value", LONGS)
def test_a_long_has_the_bytes_of_fastavro_and_is_read_again(value: int) -> None:
    expected = io.BytesIO()
    fastavro.schemaless_writer(expected, {"type": "long"}, value)
    assert encode_long(value) == expected.getvalue()
    assert read_long(b"\xff" + expected.getvalue() + b"\xff", 1) == (value, 1 + len(expected.getvalue()))


@pytest.mark.parametrize("values", [[], [0, -1], LONGS], ids=len)
def test_a_column_has_the_bytes_of_its_values(values: list[int]) -> None:
    data, used = encode_longs(np.array(values, np.int64))
    assert [row[mask].tobytes() for row, mask in zip(data, used, strict=True)] == list(map(encode_long, values))


def test_a_long_of_more_than_64_bits_loses_its_upper_bits() -> None:
    assert read_long(encode_varint((1 << 64) + 2), 0) == (1, 10)


def test_an_integer_that_does_not_end_is_no_integer() -> None:
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read_long(b"\x80" * 10, 0)
    with pytest.raises(ValueError, match="more than 5 bytes"):
        read_varint(b"\x80" * 5, 0, 5)
    with pytest.raises(IndexError):
        read_long(b"\x80" * 9, 0)
