"""What chooses the message of a Protobuf value in the wire format of Glue's or Apicurio's serializers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.connect.errors import InvalidValue
from sink_job.converters.protobuf_message_index import name_selector, read_name, read_position, split
from sink_job.protobuf.converter import compiled
from tests.unit.protobuf.protobuf_data import proto2, registered

NESTED = registered(
    """syntax = "proto3"; package x;
    message B { message C {} message A { message D {} } map<string, int32> counts = 1; }
    message a { }
    """
)


@pytest.mark.parametrize(
    ("position", "name"),
    list(enumerate(["x.B", "x.B.A", "x.B.A.D", "x.B.C", "x.B.CountsEntry", "x.a"])),
)
def test_a_position_of_glue_counts_all_messages_by_full_name(position: int, name: str) -> None:
    assert compiled(NESTED).selected(position).full_name == name


def test_a_position_of_glue_counts_groups() -> None:
    files = compiled(proto2("message M { optional group Body = 1 { } message Z {} }"))
    assert [files.at_position(position).full_name for position in range(3)] == ["M", "M.Body", "M.Z"]


def test_a_position_of_glue_without_a_message_is_invalid() -> None:
    with pytest.raises(InvalidValue, match="no message with the message index 6 of AWS Glue"):
        compiled(NESTED).selected(6)


def test_a_name_of_apicurio_is_one_outside_of_other_messages() -> None:
    assert [compiled(NESTED).selected(name).full_name for name in ("B", "a")] == ["x.B", "x.a"]
    for name in ("A", "x.B", "B.C", "", "Z"):
        with pytest.raises(InvalidValue, match=f"no message '{name}' outside of other messages"):
            compiled(NESTED).selected(name)


@pytest.mark.parametrize(("data", "position"), [(b"\0", 0), (b"\5", 5), (b"\x80\1", 128)])
def test_a_position_is_a_varint(data: bytes, position: int) -> None:
    assert read_position(data + b"rest") == (position, len(data))


@given(st.text(min_size=1, max_size=200))
def test_a_name_is_in_a_message_after_its_length(name: str) -> None:
    data = name_selector(name.encode())
    assert read_name(data + b"rest") == (name, len(data))


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\4", b"\4\x0a", b"\4\x0a\2a", b"\4\x0a\3ab", b"\5\x0a\2abc", b"\4\x12\2ab", b"\4\x0a\2\xff\xff"],
)
def test_a_damaged_name_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match="does not start with the name of its message, which Apicurio"):
        read_name(data)


def test_rows_are_grouped_by_their_names() -> None:
    a, b = name_selector(b"A"), name_selector(b"B")
    found, rejected = split(pa.array([a + b"1", b + b"2", a, b"\xff"], pa.binary()), read_name)
    assert [(each.selector, each.rows.tolist(), each.messages.to_pylist()) for each in found] == [
        ("A", [0, 2], [b"1", b""]),
        ("B", [1], [b"2"]),
    ]
    assert [row for row, _ in rejected] == [3]


def test_rows_with_one_name_are_one_group() -> None:
    a = name_selector(b"A")
    (one,), rejected = split(pa.array([a + b"1", a], pa.binary()), read_name)
    assert (one.selector, one.messages.to_pylist(), rejected) == ("A", [b"1", b""], [])
