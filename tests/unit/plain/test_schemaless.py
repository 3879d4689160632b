"""CBOR and MessagePack: rules that hold for both."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.codecs.converters import converter_for
from sink_job.converters.base import Converted
from sink_job.plain.schemaless import SchemalessConverter
from sink_job.records.fields import MISSING
from tests.unit.plain import encoders
from tests.unit.plain.encoders import ENCODERS, Pairs, Time, encoded, expected

INTEGERS = {
    ConverterType.CBOR: st.integers() | st.integers(-(2**200), 2**200),
    ConverterType.MESSAGE_PACK: st.integers(-(2**63), 2**64 - 1),
}
both = pytest.mark.parametrize("choice", list(ENCODERS))


def converter(choice: ConverterType, *fields: str, output: OutputFormat = OutputFormat.JSON) -> SchemalessConverter:
    found = converter_for(choice, fields, output=output)
    assert isinstance(found, SchemalessConverter)
    return found


def convert(
    choice: ConverterType, values: list[bytes | None], *fields: str, output: OutputFormat = OutputFormat.JSON
) -> Converted:
    return converter(choice, *fields, output=output).convert(pa.array(values, pa.binary()))


def texts(found: Converted) -> list[bytes | None]:
    """The text of each row; None for a null or rejected row."""
    gone = {row for row, _ in found.rejected}
    if found.nulls is not None:
        gone |= {row for row, null in enumerate(found.nulls.tolist()) if null}
    return [None if row in gone else text for row, text in enumerate(found.values.to_pylist())]


@both
@given(st.data())
def test_every_form_of_an_item_becomes_the_expected_json(choice: ConverterType, data: st.DataObject) -> None:
    item = data.draw(encoders.items(INTEGERS[choice]))
    value = ENCODERS[choice](item, lambda n: data.draw(st.integers(0, n - 1)))
    found = convert(choice, [value])
    assert found.rejected == []
    [text] = texts(found)
    if item is None:
        assert text is None
    else:
        assert text is not None
        assert json.loads(text) == expected(item)
        assert b"\n" not in text


@both
@given(st.data())
def test_a_mutated_value_is_rejected_or_becomes_one_json_text(choice: ConverterType, data: st.DataObject) -> None:
    value = encoded(choice, data.draw(encoders.items(INTEGERS[choice])), data.draw(st.integers(0, 1000)))
    start = data.draw(st.integers(0, len(value)))
    end = data.draw(st.integers(start, min(len(value), start + 4)))
    batch = [value, value[:start] + data.draw(st.binary(max_size=6)) + value[end:], value]
    found = convert(choice, list(batch), "a", "b.c")
    first, mutated, last = texts(found)
    assert first == last
    assert [row for row, _ in found.rejected] in ([], [1])
    if mutated is not None:
        json.loads(mutated)
        assert b"\n" not in mutated


@both
@given(st.lists(st.binary(max_size=60) | st.none(), max_size=6))
def test_a_batch_of_any_bytes_has_the_result_of_its_values_one_by_one(
    choice: ConverterType, batch: list[bytes | None]
) -> None:
    found, alone = convert(choice, batch, "a"), [convert(choice, [value], "a") for value in batch]
    assert texts(found) == [texts(one)[0] for one in alone]
    assert found.rejected == [(row, one.rejected[0][1]) for row, one in enumerate(alone) if one.rejected]
    assert found.fields["a"] == [one.fields["a"][0] for one in alone]


@both
def test_no_proper_prefix_of_a_value_is_accepted(choice: ConverterType) -> None:
    value = encoded(choice, [1.5, "text", b"bytes", Pairs([("a", 2**40), ("b", [None, True])]), Time(7)])
    assert texts(convert(choice, [value])) == [b'[1.5,"text","Ynl0ZXM=",{"a":1099511627776,"b":[null,true]},7000]']
    found = convert(choice, [value[:end] for end in range(len(value))])
    assert [row for row, _ in found.rejected] == list(range(len(value)))


@both
def test_a_value_with_trailing_bytes_is_rejected(choice: ConverterType) -> None:
    [(_, error)] = convert(choice, [encoded(choice, 5) + b"\x05"]).rejected
    assert error.startswith(f"the value is not {'CBOR' if choice is ConverterType.CBOR else 'MessagePack'}: trailing ")


@both
def test_an_empty_value_is_rejected(choice: ConverterType) -> None:
    assert convert(choice, [b""]).rejected == [(0, "the value is empty")]


@both
def test_a_tombstone_and_a_null_item_are_both_no_value(choice: ConverterType) -> None:
    found = convert(choice, [None, encoded(choice, None), encoded(choice, [None])])
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, True, False]
    assert found.values[2].as_py() == b"[null]"


@both
@pytest.mark.parametrize(
    ("item", "text"),
    [
        (float("nan"), b'"NaN"'),
        (float("inf"), b'"Infinity"'),
        ([-float("inf")], b'["-Infinity"]'),
        (b"\xff\x00", b'"/wA="'),
        (2**63, b"9223372036854775808"),
        (-(2**63), b"-9223372036854775808"),
        ("line\nbreak \u2028", '"line\\nbreak \u2028"'.encode()),
        (Pairs([]), b"{}"),
        (Pairs([("b", 1), ("a", 2)]), b'{"b":1,"a":2}'),
        (Pairs([(1, 2), ("a", 3)]), b'[[1,2],["a",3]]'),
        (Pairs([(Pairs([("k", 1)]), 2)]), b'[[{"k":1},2]]'),
        (Pairs([([1, b"\x01"], None)]), b'[[[1,"AQ=="],null]]'),
        (Time(1_700_000_000), b"1700000000000"),
    ],
    ids=str,
)
def test_an_item_becomes_the_json_of_kafka_connects_converter(choice: ConverterType, item: Any, text: bytes) -> None:
    assert texts(convert(choice, [encoded(choice, item)])) == [text]


@both
def test_a_map_with_a_text_key_twice_is_rejected(choice: ConverterType) -> None:
    value = encoded(choice, [Pairs([("a", 1), ("b", 2), ("a", 1)])])
    assert convert(choice, [value]).rejected == [(0, "a map in the value has a key twice")]


@both
def test_a_text_that_is_not_utf8_is_rejected(choice: ConverterType) -> None:
    value = encoded(choice, ["xyz"]).replace(b"xyz", b"x\xffz")
    assert convert(choice, [value]).rejected == [(0, "a text in the value is not UTF-8")]


@both
@pytest.mark.parametrize("of", [lambda inner: [inner], lambda inner: Pairs([("a", inner)])], ids=["arrays", "maps"])
def test_256_levels_are_accepted_and_more_are_rejected(choice: ConverterType, of: Callable[[Any], Any]) -> None:
    item: Any = 0
    values: list[bytes | None] = []
    for _ in range(257):
        item = of(item)
        values.append(encoded(choice, item))
    found = convert(choice, values[-2:])
    assert found.rejected == [(1, "the value is nested deeper than 256 levels")]
    assert found.values[0].as_py().count(b"[") + found.values[0].as_py().count(b"{") == 256


@both
def test_pairs_count_as_a_level(choice: ConverterType) -> None:
    item: Any = 0
    for _ in range(129):
        item = Pairs([(1, item)])
    inner = item.items[0][1]
    found = convert(choice, [encoded(choice, inner), encoded(choice, item)])
    assert found.rejected == [(1, "the value is nested deeper than 256 levels")]


@both
@pytest.mark.parametrize("depth", [300, 900, 1000, 1100, 100_000])
def test_a_value_nested_beyond_any_limit_is_rejected(choice: ConverterType, depth: int) -> None:
    head, end = (b"\x81", b"\x00") if choice is ConverterType.CBOR else (b"\x91", b"\x00")
    assert convert(choice, [head * depth + end]).rejected == [(0, "the value is nested deeper than 256 levels")]


HUGE = {
    ConverterType.CBOR: [
        bytes([major << 5 | 27]) + length + rest
        for major in (2, 3, 4, 5)
        for length in ((2**60).to_bytes(8), (2**32).to_bytes(8), b"\xff" * 8)
        for rest in (b"", b"\x00" * 1000, bytes([major << 5 | 27]) + length)
    ],
    ConverterType.MESSAGE_PACK: [
        code + b"\xff\xff\xff\xff" + rest
        for code in (b"\xc6", b"\xc9", b"\xdb", b"\xdd", b"\xdf")
        for rest in (b"", b"\x00" * 1000, code + b"\xff\xff\xff\xff")
    ]
    + [b"\xdd\x00\x10\x00\x00" * 200 + b"\x00" * 2**20],
}


@pytest.fixture
def limited_memory() -> Iterator[None]:
    """Another GiB at most can be allocated."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@both
@pytest.mark.usefixtures("limited_memory")
def test_a_declared_length_is_not_allocated(choice: ConverterType) -> None:
    found = convert(choice, list(HUGE[choice]))
    assert [row for row, _ in found.rejected] == list(range(len(HUGE[choice])))
    assert any(error.endswith(": Input data was truncated") for _, error in found.rejected)


@both
def test_output_bytes_writes_checked_values_as_they_came(choice: ConverterType) -> None:
    values = [encoded(choice, [1, "a"], seed) for seed in range(3)]
    found = convert(choice, [*values, b"\xc1", None], output=OutputFormat.BYTES)
    assert texts(found) == [*values, None, None]
    assert [row for row, _ in found.rejected] == [3]


@both
def test_fields_are_extracted_and_absent_fields_are_missing(choice: ConverterType) -> None:
    rows = [
        Pairs([("a", 1), ("b", Pairs([("c", "x")]))]),
        Pairs([("a", None), ("b", None)]),
        Pairs([("b", Pairs([(1, 2)]))]),
        [1],
        None,
    ]
    found = convert(choice, [*(encoded(choice, row) for row in rows), b"\xc1"], "a", "b.c")
    missing = MISSING
    assert found.fields["a"] == [1, None, missing, missing, missing, missing]
    assert found.fields["b.c"] == ["x", None, missing, missing, missing, missing]


@both
def test_a_time_field_is_milliseconds(choice: ConverterType) -> None:
    found = convert(choice, [encoded(choice, Pairs([("at", Time(1_700_000_000))]))], "at")
    assert found.fields["at"] == [1_700_000_000_000]


@both
def test_a_batch_without_values_is_converted(choice: ConverterType) -> None:
    assert convert(choice, [], "a").fields == {"a": []}
    assert texts(convert(choice, [None, None])) == [None, None]


@both
def test_a_slice_of_a_batch_is_converted_like_a_separate_batch(choice: ConverterType) -> None:
    values = pa.array([encoded(choice, n) for n in range(5)], pa.binary())
    found = converter(choice).convert(values.slice(1, 3))
    assert found.values.to_pylist() == [b"1", b"2", b"3"]


def test_a_value_on_which_python_fails_with_another_error_is_rejected() -> None:
    def decode(_: bytes) -> object:
        raise TypeError("unhashable type")

    found = SchemalessConverter(decode).convert(pa.array([b"1"], pa.binary()))
    assert found.rejected == [(0, "unhashable type")]
