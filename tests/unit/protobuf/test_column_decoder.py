"""Decoding column-wise is equal to decoding row-wise, for valid and for damaged data, and both to Google's JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import DecimalFormat, TimestampFormat
from sink_job.arrow import columnar
from sink_job.connect.json_encoder import DEFAULT_OPTIONS, JsonOptions
from sink_job.converters.registered import Decoded
from sink_job.protobuf.column_decoder import ProtobufColumnDecoder
from sink_job.protobuf.converter import ProtobufDecoder, compiled
from sink_job.protobuf.to_connect import connect_schema
from tests.unit.protobuf.protobuf_data import message, proto2, proto3, set_text
from tests.unit.protobuf.protobuf_samples import damaged, samples

OPTIONS = st.builds(JsonOptions, st.sampled_from(DecimalFormat), st.sampled_from(TimestampFormat))
FIELDS = ("f0", "f1", "f0.f0", "kind_0.f0", "kind_0.f0.f0", "kind_0", "absent")


def decode(message: Any, data: list[bytes], options: JsonOptions, *, min_rows: int, fields: Any = FIELDS) -> Decoded:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", min_rows)
        return ProtobufDecoder(message, 1, fields, options).decode(pa.array(data, pa.binary()))


def plain(found: Decoded) -> tuple[Any, ...]:
    """The result, with empty texts for rejected rows."""
    texts = found.texts.to_pylist()
    for row, _ in found.rejected:
        texts[row] = b""
    return texts, found.nulls, found.rejected, repr(found.fields)


def assert_equal_in_both_ways(message: Any, data: list[bytes], options: JsonOptions = DEFAULT_OPTIONS) -> None:
    for fields in ((), FIELDS):
        by_column = decode(message, data, options, min_rows=0, fields=fields)
        assert plain(by_column) == plain(decode(message, data, options, min_rows=1 << 60, fields=fields))


@given(samples(), OPTIONS)
def test_valid_data_has_the_same_texts_and_fields_in_both_ways(
    sample: tuple[Any, list[bytes]], options: JsonOptions
) -> None:
    assert_equal_in_both_ways(*sample, options)


COMMON = proto3(
    """
    message M { int64 a = 9; string b = 2; optional double c = 3; repeated N many = 4; map<string, N> by_name = 5;
      oneof kind { string x = 6; N y = 7; } E e = 8; google.protobuf.Timestamp at = 1; map<uint32, bytes> pairs = 10; }
    message N { bool flag = 1; float rate = 2; google.type.Date day = 3; confluent.type.Decimal price = 4; }
    enum E { A = 0; B = 5; }
    """,
    "google/protobuf/timestamp.proto",
    "google/type/date.proto",
    "confluent/type/decimal.proto",
)
COMMON_TEXT = """
    a: 1 b: "ä" many { flag: true day { year: 2026 month: 2 day: 28 } price { value: "\\001" } } y { rate: 0.5 } e: B
    by_name { key: "k" value {} } by_name { key: "l" } at { seconds: 5 } pairs { key: 3 value: "v" }
"""


def test_a_batch_of_common_types_is_decoded_by_column() -> None:
    descriptor = compiled(COMMON).at((0,))
    decoder = ProtobufColumnDecoder(
        descriptor, connect_schema(descriptor), ("a", "at", "kind_0.x", "e"), DEFAULT_OPTIONS
    )
    data = [set_text(message(COMMON), text).SerializeToString() for text in (COMMON_TEXT, "", "x: 'y'")]
    found = decoder.decode(pa.array([b"skipped", *data], pa.binary())[1:])
    assert plain(found)[0] == plain(decode(descriptor, data, DEFAULT_OPTIONS, min_rows=1 << 60))[0]
    assert found.fields == {
        "a": [1, 0, 0],
        "at": [5000, None, None],
        "kind_0.x": [None, None, "y"],
        "e": ["B", "A", "A"],
    }


@pytest.mark.parametrize("kind", ["google.type.Date", "confluent.type.Decimal"])
def test_a_map_whose_messages_are_invalid_when_they_are_not_set_is_decoded(kind: str) -> None:
    imports = "import 'google/type/date.proto'; import 'confluent/type/decimal.proto';"
    schema = proto2(f"{imports} message M {{ map<string, N> n = 1; }} message N {{ required {kind} d = 1; }}")
    assert_equal_in_both_ways(compiled(schema).at((0,)), [b"", b""])


@given(samples(recursive=True))
def test_recursive_messages_are_read_or_rejected_alone(sample: tuple[Any, list[bytes]]) -> None:
    message, data = sample
    found = decode(message, data, DEFAULT_OPTIONS, min_rows=0)
    for row, each in enumerate(data):
        alone = decode(message, [each], DEFAULT_OPTIONS, min_rows=0)
        assert bool(alone.rejected) == (row in dict(found.rejected))


@given(damaged(), OPTIONS)
def test_damaged_data_is_rejected_for_the_same_reasons_in_both_ways(
    sample: tuple[Any, list[bytes]], options: JsonOptions
) -> None:
    assert_equal_in_both_ways(*sample, options)


@given(samples(), st.lists(st.binary(max_size=30), max_size=5))
def test_arbitrary_bytes_are_read_or_rejected_in_both_ways(sample: tuple[Any, list[bytes]], data: list[bytes]) -> None:
    assert_equal_in_both_ways(sample[0], data)
