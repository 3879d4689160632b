"""The message indexes in front of a Protobuf message."""

from __future__ import annotations

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from sink_job.converters.protobuf_message_index import Selector, read_indexes, split


def selected(*values: bytes) -> list[tuple[Selector, list[int], list[bytes]]]:
    found, _ = split(pa.array(values, pa.binary()))
    return [(each.selector, each.rows.tolist(), each.messages.to_pylist()) for each in found]


@pytest.mark.parametrize(
    ("data", "indexes"),
    [(b"\0", (0,)), (b"\2\0", (0,)), (b"\2\2", (1,)), (b"\4\2\4", (1, 2)), (b"\2\x80\2", (128,))],
)
def test_the_indexes_are_a_count_and_zigzag_varints(data: bytes, indexes: tuple[int, ...]) -> None:
    assert read_indexes(data + b"rest") == (indexes, len(data))


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=6))
def test_what_confluents_client_writes_is_read(indexes: list[int]) -> None:
    written = SchemaId("PROTOBUF", 1, None, indexes).id_to_bytes()[5:]
    assert read_indexes(written) == (tuple(indexes), len(written))


def test_rows_are_grouped_by_their_indexes() -> None:
    assert selected(b"\0a", b"\2\2b", b"\2\0c", b"\2\2d") == [
        ((0,), [0, 2], [b"a", b"c"]),
        ((1,), [1, 3], [b"b", b"d"]),
    ]


def test_the_single_byte_zero_is_the_first_message() -> None:
    assert selected(b"\0a", b"\0", b"\0bc") == [((0,), [0, 1, 2], [b"a", b"", b"bc"])]


def test_no_rows_have_no_indexes() -> None:
    assert [rows for _, rows, _ in selected()] in ([], [[]])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ends within its message indexes, after 0 bytes"),
        (b"\4\2", "ends within its message indexes, after 2 bytes"),
        (b"\x80", "ends within its message indexes, after 1 bytes"),
        (b"\1", "has -1 message indexes"),
        (b"\xfe\xff\xff\xff\x0f", "has 2147483647 message indexes"),
        (b"\2\x80\x80\x80\x80\x80\x01", "a message index of more than 5 bytes"),
    ],
)
def test_damaged_indexes_are_rejected_alone(data: bytes, reason: str) -> None:
    found, rejected = split(pa.array([b"\0a", data, b"\0b"], pa.binary()))
    assert [each.rows.tolist() for each in found] == [[0, 2]]
    assert [row for row, _ in rejected] == [1]
    assert reason in rejected[0][1]


@given(st.lists(st.binary(max_size=8), max_size=8))
def test_each_row_is_selected_once_or_rejected(values: list[bytes]) -> None:
    found, rejected = split(pa.array(values, pa.binary()))
    rows = [row for each in found for row in each.rows.tolist()] + [row for row, _ in rejected]
    assert sorted(rows) == list(range(len(values)))
