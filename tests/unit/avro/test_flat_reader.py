"""Reading flat data with NumPy gives the columns of pyruhvro, and decides as reading them row-wise."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow import columnar
from sink_job.arrow.columnar import NotColumnar, UnusualValues
from sink_job.arrow.varints import encode_long
from sink_job.avro import flat_reader
from sink_job.avro.column_decoder import DataReader
from sink_job.avro.converter import AvroDecoder
from sink_job.avro.flat_reader import FlatReader
from sink_job.avro.schema import parse_avro
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from tests.unit.avro.avro_data import TEXT, datum, encode, record, registered

LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=6) | st.just(b"x" * 100),
    "string": TEXT,
}


class Builder:
    """Draws flat types with a strategy of their values. No name occurs twice."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.count = 0

    def any(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        kind = self.draw(st.sampled_from([*LEAVES, "enum", *(["record", "nullable"] * 4 if depth else [])]))
        self.count += 1
        if kind == "enum":
            symbols = ["A", "B2", "c_"][: self.draw(st.integers(1, 3))]
            return {"type": "enum", "name": f"E{self.count}", "symbols": symbols}, st.sampled_from(symbols)
        if kind == "record":
            return self.record(depth)
        if kind == "nullable":
            schema, values = self.any(depth - 1)
            if isinstance(schema, list):
                return schema, values
            return self.draw(st.permutations(["null", schema])), st.none() | values
        return kind, LEAVES[kind]

    def record(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        self.count += 1
        name, fields = f"R{self.count}", [self.any(depth - 1) for _ in range(self.draw(st.integers(1, 4)))]
        schema = record(*((f"f{n}", of_field) for n, (of_field, _) in enumerate(fields)), name=name)
        return schema, st.fixed_dictionaries({f"f{n}": values for n, (_, values) in enumerate(fields)})


@st.composite
def samples(draw: Any, *, min_size: int = 0) -> tuple[Any, list[bytes]]:
    """A schema, and data of it."""
    schema, values = Builder(draw).record(3)
    return schema, encode(schema, draw(st.lists(values, min_size=min_size, max_size=6)))


@st.composite
def damaged(draw: Any) -> tuple[Any, list[bytes]]:
    """A schema, and data of it in which bytes were replaced, inserted, removed or cut off."""
    schema, data = draw(samples(min_size=1))
    changed = [bytearray(each) for each in data]
    for _ in range(draw(st.integers(1, 2))):
        each = draw(st.sampled_from(changed))
        at = draw(st.integers(0, len(each)))
        each[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=10))
    return schema, [bytes(each) for each in changed]


def column(data: list[bytes]) -> pa.BinaryArray:
    """The data in a slice of a larger column."""
    return pa.array([b"\xffbefore", *data, b"after"], pa.binary())[1:-1]


def read(schema: Any, data: list[bytes]) -> pa.Array:
    return FlatReader(parse_avro(json.dumps(schema))).read(column(data))


def of_pyruhvro(schema: Any, data: list[bytes]) -> pa.Array:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat_reader, "MIN_TYPE_BYTES", 1 << 40)
        return DataReader(parse_avro(json.dumps(schema))).read(column(data))


@given(samples(min_size=1))
def test_the_column_is_that_of_pyruhvro(sample: tuple[Any, list[bytes]]) -> None:
    found, expected = read(*sample), of_pyruhvro(*sample)
    assert found.type == expected.type
    assert found.equals(expected)


def decode(schema: Any, data: list[bytes], *, min_rows: int) -> tuple[Any, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", min_rows)
        patch.setattr(flat_reader, "MIN_TYPE_BYTES", 0)
        found = AvroDecoder(registered(schema), ("f0", "f1.f0"), DEFAULT_OPTIONS).decode(column(data))
    texts = found.texts.to_pylist()
    for row, _ in found.rejected:
        texts[row] = b""
    return texts, None if found.nulls is None else found.nulls.tolist(), found.rejected, repr(found.fields)


@given(samples() | damaged())
def test_any_data_have_the_same_texts_fields_and_rejections_as_row_wise(sample: tuple[Any, list[bytes]]) -> None:
    assert decode(*sample, min_rows=0) == decode(*sample, min_rows=1 << 60)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        pytest.param("long", b"", id="empty"),
        pytest.param("long", b"\x02\x02", id="longer than its type"),
        pytest.param("long", b"\xff" * 9 + b"\x02", id="a long of 65 bits"),
        pytest.param("long", b"\x80" * 10 + b"\x01", id="a long of 11 bytes"),
        pytest.param("long", b"\x80", id="cut within a long"),
        pytest.param("string", b"\x04a", id="a string longer than its datum"),
        pytest.param("string", b"\x01", id="a string of length -1"),
        pytest.param("bytes", encode_long(2**63 - 1), id="a length of 63 bits"),
        pytest.param("boolean", b"\x02", id="a boolean that is 2"),
        pytest.param("double", b"1234567", id="cut within a double"),
        pytest.param(["null", "long"], b"\x04\x02", id="a member that the union lacks"),
        pytest.param(["null", "long"], b"\x01", id="a negative member"),
    ],
)
def test_invalid_data_are_read_row_wise_and_never_beyond_their_datum(kind: Any, data: bytes) -> None:
    schema = record(("f", kind))
    valid = datum(schema, {"f": {"string": "a", "bytes": b"a"}.get(str(kind), 1)})
    with pytest.raises(UnusualValues):
        read(schema, [valid, data, b"\x02" * 20])
    with pytest.raises(UnusualValues):
        read(schema, [valid, data])


@pytest.mark.parametrize("length", [64, 8_192, 1 << 20, 1 << 21])
def test_strings_of_any_length_are_read(length: int) -> None:
    schema, values = record(("f", "string")), ["x" * length, "", "y"]
    assert read(schema, encode(schema, [{"f": value} for value in values])).field(0).to_pylist() == values


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "long"},
        {"type": "map", "values": "long"},
        {"type": "fixed", "name": "F", "size": 2},
        ["null", "long", "string"],
        ["null", record(("next", ["null", "R"]))],
    ],
)
def test_other_types_are_not_flat(kind: Any) -> None:
    with pytest.raises(NotColumnar):
        FlatReader(parse_avro(json.dumps(record(("f", kind), name="Outer"))))


def test_data_are_read_with_numpy_if_they_have_many_bytes_for_each_type() -> None:
    reader = FlatReader(parse_avro(json.dumps(record(("f", "string")))))
    size = 2 * flat_reader.MIN_TYPE_BYTES  # of the record and the string
    assert reader.is_faster(pa.array([b"x", b"x" * (size - 1)], pa.binary()))
    assert not reader.is_faster(pa.array([b"x", b"x" * (size - 2)], pa.binary()))
