"""The checks of Avro data that pass unchanged: column-wise they find what is decided row-wise."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sink_job.arrow.columnar import MAX_DEPTH, NotColumnar, UnusualValues
from sink_job.avro.column_checks import Check, data_check
from sink_job.avro.column_decoder import DataReader
from sink_job.avro.to_connect import parse_registered
from sink_job.connect.output_settings import DatumSettings
from tests.unit.avro.avro_data import encode, record, registered
from tests.unit.avro.test_passthrough import AVRO, INVALID_UUIDS, PARQUET, both_ways, decode, decoder

DAY_MS = 86_400_000
UUID = {"type": "string", "logicalType": "uuid"}
MILLIS = {"type": "int", "logicalType": "time-millis"}


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


def decimals(precision: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision}


def one_field(kind: Any) -> Any:
    return record(("f0", kind))


def check_of(kind: Any, settings: DatumSettings = AVRO) -> Check:
    """The check of the data of a record with the field `f0` of this type."""
    schema = one_field(kind)
    return data_check(parse_registered(registered(schema)), decoder(schema, settings).schema, settings)


def column_of(kind: Any, data: list[bytes]) -> pa.Array:
    """The column of data of a record with the field `f0` of this type."""
    return DataReader(parse_registered(registered(one_field(kind)))).read(pa.array(data, pa.binary()))


def passes(kind: Any, *values: Any, form: Any = None, settings: DatumSettings = AVRO) -> bool:
    """Whether these values pass the check. `form`: a type with the same binary form, for values that `kind` cannot
    have."""
    column = column_of(kind, encode(one_field(form or kind), [{"f0": value} for value in values]))
    try:
        check_of(kind, settings)(column)
    except UnusualValues:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("int", -(2**31), 2**31 - 1),
        (MILLIS, 0, DAY_MS - 1),
        (logical("long", "time-micros"), 0, DAY_MS * 1000 - 1),
        (logical("int", "date"), -719_162, 2_932_896),
        (logical("long", "timestamp-millis"), -62_135_596_800_000, 253_402_300_799_999),
        (logical("long", "local-timestamp-millis"), -62_135_596_800_000, 253_402_300_799_999),
        ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, 0, 2),
    ],
    ids=str,
)
def test_numbers_pass_up_to_the_limits_of_their_type(kind: Any, least: int, most: int) -> None:
    assert passes(kind, least, 0, most, form="long")
    assert not passes(kind, 0, most + 1, form="long")
    assert not passes(kind, least - 1, 0, form="long")


@pytest.mark.parametrize("kind", ["boolean", "long", "float", "double", "bytes"])
def test_types_whose_data_are_all_valid_are_not_checked(kind: str) -> None:
    values: dict[str, list[Any]] = {"boolean": [True], "bytes": [b"\xff\xfe", b""]}
    assert passes(kind, *values.get(kind, [0, 1]))


def test_a_string_has_to_be_utf8() -> None:
    assert passes("string", "", "ä", "\0")
    for content in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
        assert not passes("string", b"a", content, form="bytes")


@pytest.mark.parametrize("settings", [AVRO, PARQUET])
def test_a_decimal_has_at_most_its_digits(settings: DatumSettings) -> None:
    def content(number: int, size: int = 4) -> bytes:
        return number.to_bytes(size, "big", signed=True)

    assert passes(decimals(3), content(999), content(-999), content(0), content(5, 20), settings=settings)
    assert not passes(decimals(3), content(1000), settings=settings)
    assert not passes(decimals(3), content(-1000, 20), settings=settings)


def test_a_decimal_without_bytes_is_decided_as_row_wise() -> None:
    schema = one_field(decimals(3))
    found = decode(schema, encode(schema, [{"f0": b""}]), min_rows=1 << 60)
    assert passes(decimals(3), b"") is not bool(found.rejected)


@pytest.mark.parametrize(
    ("wrap", "value"),
    [
        (lambda kind: ["null", kind], lambda each: each),
        (lambda kind: {"type": "array", "items": kind}, lambda each: [0, each]),
        (lambda kind: {"type": "map", "values": kind}, lambda each: {"a": 0, "b": each}),
        (lambda kind: record(("g", kind), name="S"), lambda each: {"g": each}),
        (lambda kind: {"type": "array", "items": ["null", kind]}, lambda each: [None, each]),
        (lambda kind: ["null", record(("g", {"type": "array", "items": kind}), name="S")], lambda each: {"g": [each]}),
    ],
    ids=["union", "array", "map", "record", "array of unions", "union of a record"],
)
def test_values_within_values_are_checked(wrap: Any, value: Any) -> None:
    form = wrap("long")
    assert passes(wrap(MILLIS), value(DAY_MS - 1), form=form)
    assert not passes(wrap(MILLIS), value(0), value(DAY_MS), form=form)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (["null", MILLIS], [None, None]),
        ({"type": "array", "items": MILLIS}, [[], []]),
        ({"type": "map", "values": MILLIS}, [{}, {}]),
        (["null", UUID], [None]),
    ],
    ids=["nulls", "empty arrays", "empty maps", "no UUIDs"],
)
def test_a_column_without_any_value_passes(kind: Any, values: list[Any]) -> None:
    assert passes(kind, *values)


def test_the_keys_of_a_map_have_to_be_utf8() -> None:
    kind = {"type": "map", "values": "int"}
    (data,) = encode(one_field(kind), [{"f0": {"key": 1}}])
    check_of(kind)(column_of(kind, [data]))
    with pytest.raises(UnusualValues, match="a string is not UTF-8"):
        check_of(kind)(column_of(kind, [data.replace(b"key", b"k\xffy")]))


def test_a_slice_of_a_column_is_checked_alone() -> None:
    kind = {"type": "map", "values": MILLIS}
    form = one_field({"type": "map", "values": "long"})
    column = column_of(kind, encode(form, [{"f0": {"a": DAY_MS}}, {"f0": {"b": 1}}, {"f0": {"c": -1}}]))
    check_of(kind)(column.slice(1, 1))
    for start in (0, 2):
        with pytest.raises(UnusualValues):
            check_of(kind)(column.slice(start, 1))


def deep(levels: int) -> Any:
    return {"type": "array", "items": deep(levels - 1)} if levels else "int"


@pytest.mark.parametrize(
    "kind",
    [{"type": "fixed", "name": "F", "size": 2}, ["null", "R"], deep(MAX_DEPTH), ["int", "string"]],
    ids=["fixed", "recursive", "deep", "union of two types"],
)
def test_a_type_that_is_not_read_column_wise_has_no_check(kind: Any) -> None:
    with pytest.raises(NotColumnar):
        check_of(kind)


@pytest.mark.parametrize("settings", [AVRO, PARQUET])
def test_uuids_are_checked_column_wise(settings: DatumSettings) -> None:
    schema = one_field({"type": "string", "logicalType": "uuid"})
    valid = ["12345678-1234-5678-1234-56781234567A", "1234567812345678123456781234567a"]
    invalid = [*INVALID_UUIDS, "1234567812345678-1234-56781234567a", "", "1234567-81234-5678-1234-56781234567a"]
    data = encode(schema, [{"f0": each} for each in [*valid, *invalid]])
    both_ways(schema, data, settings)
    found = decode(schema, data, min_rows=0, settings=settings)
    assert [row for row, _ in found.rejected] == [*range(2, 2 + len(invalid))]
    column = pa.array([each.encode() for each in valid], pa.binary())
    checked = data_check(parse_registered(registered(schema)), decoder(schema, settings).schema, settings)
    checked(pa.StructArray.from_arrays([column.view(pa.string())], ["f0"]))
