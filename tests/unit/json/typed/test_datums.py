"""JSON texts as Avro data: column-wise and row-wise, the data and the rejected rows are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from devtools.fuzz.mutation import mutated_bytes
from sink_job.api.enums import OutputFormat
from sink_job.avro.to_connect import ENUM
from sink_job.connect import json_decoder
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.logical_types import DATE, TIME
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.json_schema.converter import JsonSchemaConverter
from sink_job.json.json_schema.decoder import json_schema_reader
from sink_job.json.json_schema.to_connect import ONE_OF
from sink_job.json.typed import column_encoder as typed_column_encoder
from sink_job.json.typed import datums as typed_datums
from sink_job.json.typed.datums import JsonDatums
from sink_job.json.typed.decoder import TextReading
from tests.unit.avro.avro_data import Table, in_wire_format
from tests.unit.connect import strategies

ROWS = 12
"""Enough rows for several parts of a batch with an unusual one."""
RANDOM = st.integers(0, 2**32).map(Random)
SETTINGS = [DatumSettings(), DatumSettings(OutputFormat.PARQUET)]
COLOURS = ((ENUM, "E"), (f"{ENUM}.A", "A"), (f"{ENUM}.B", "B"))

INTEGERS = ["0", "-1", "127", "128", "-32769", "2147483648", "9223372036854775807", "9223372036854775808", "-0"]
NUMBERS = [
    *INTEGERS,
    "1.0",
    "1.5",
    "-0.0",
    "1e3",
    "9007199254740993.0",
    "1e400",
    "1e-400",
    "123456789012345678901234567890",
]
STRINGS = [
    '""',
    '"A"',
    '"\\u0041"',
    '"ü€😀"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"a\\nb"',
    '"NaN"',
    '"AA=="',
    '"' + "x" * 300 + '"',
]
UUID = '"6ba7b810-9dad-11d1-80b4-00c04fd430c8"'
OTHERS = ["null", "true", "false", "[]", "{}", "[1]", '{"a":1}']
ALL = [*NUMBERS, *STRINGS, UUID, *OTHERS]


def literal(schema: Schema, random: Random) -> str:
    """A JSON text that often is a value of the schema."""
    if random.random() < 0.02:
        return random.choice(ALL)
    if schema.optional and random.random() < 0.3:
        return "null"
    match schema.type:
        case SchemaType.STRUCT if schema.name == ONE_OF:
            return literal(random.choice(schema.fields).schema, random)
        case SchemaType.STRUCT:
            return "{" + ", ".join(members(schema, random)) + "}"
        case SchemaType.ARRAY:
            return "[" + ",".join(literal(schema.values, random) for _ in range(random.randrange(3))) + "]"  # type: ignore[arg-type]
        case SchemaType.MAP:
            return entries(schema, random)
        case SchemaType.BOOLEAN:
            return random.choice(["true", "false"])
        case SchemaType.STRING | SchemaType.BYTES:
            chosen = (
                STRINGS if random.random() < 0.1 else ['"A"', '"AA=="' if schema.type is SchemaType.BYTES else '"B"']
            )
            return UUID if schema.logical == "uuid" and random.random() < 0.9 else random.choice(chosen)
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            return random.choice(NUMBERS) if random.random() < 0.1 else repr(random.gauss(0, 1e5))
    return random.choice(NUMBERS) if random.random() < 0.05 else str(random.randrange(-128, 128))


def members(schema: Schema, random: Random) -> Iterator[str]:
    fields = [*schema.fields, *(field for field in schema.fields if random.random() < 0.02)]
    for field in fields:
        if not (field.schema.optional and random.random() < 0.2):
            yield f"{json.dumps(field.name, ensure_ascii=random.random() < 0.5)}:{literal(field.schema, random)}"
    if random.random() < 0.02:
        yield '"unknown":1'


def entries(schema: Schema, random: Random) -> str:
    assert schema.keys is not None
    assert schema.values is not None
    values = [literal(schema.values, random) for _ in range(random.randrange(3))]
    if schema.keys.type is SchemaType.STRING:
        return "{" + ",".join(f'"{random.choice("abü")}":{value}' for value in values) + "}"
    return "[" + ",".join(f'{{"key":{literal(schema.keys, random)},"value":{value}}}' for value in values) + "]"


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Structs whose fields have any type."""
    names = draw(
        st.lists(st.sampled_from(["a", "b", "ü", "c d", 'q"', "\x01", ""]), unique=True, min_size=1, max_size=5)
    )
    fields = tuple(Field(name, draw(kinds())) for name in names)
    if draw(strategies.mostly(False, True)):
        fields = (*fields, Field("self", Schema(SchemaType.REFERENCE, "root", optional=True)))
    return Schema(SchemaType.STRUCT, "root", fields=fields)


@st.composite
def kinds(draw: st.DrawFn) -> Schema:
    special = [
        Schema(SchemaType.STRING, parameters=COLOURS),
        Schema(SchemaType.STRING, logical="uuid"),
        Schema(SchemaType.INT32, DATE),
        Schema(SchemaType.INT32, TIME),
        Schema(
            SchemaType.STRUCT,
            ONE_OF,
            fields=(Field("0", Schema(SchemaType.INT64)), Field("1", Schema(SchemaType.STRING))),
        ),
    ]
    if not draw(st.booleans()):
        return draw(strategies.schemas(3))
    return structs.replace(draw(st.sampled_from(special)), optional=draw(st.booleans()))


def text_reader(schema: Schema) -> Callable[[bytes], object]:
    return TextReading(schema).read


@contextmanager
def min_rows(number: int) -> Iterator[None]:
    """Fewer rows are read row-wise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typed_datums, "MIN_ROWS", number)
        yield


def datums_of(schema: Schema, settings: DatumSettings) -> JsonDatums | None:
    try:
        return JsonDatums(schema, settings, text_reader, json_schema_reader)
    except InvalidSchema:
        return None


@given(schemas(), st.sampled_from(SETTINGS), RANDOM)
def test_data_are_the_same_by_column_and_one_by_one(schema: Schema, settings: DatumSettings, random: Random) -> None:
    if (found := datums_of(schema, settings)) is None:
        return
    texts = pa.array([literal(schema, random).encode() for _ in range(ROWS)], pa.binary())
    skip = np.array([random.random() < 0.1 for _ in range(ROWS)])
    with min_rows(2):
        data, rejected = found.of_texts(texts, skip)
    with min_rows(1 << 60):
        assert (data, rejected) == found.of_texts(texts, skip)
        of_all = found.of_texts(texts, np.zeros(ROWS, np.bool_))
    if (valid := found.of_valid(texts)) is not None:
        assert (valid, []) == of_all


FLIGHT = {
    "title": "Flight",
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "carrier": {"type": "string"},
        "price": {"type": "number", "default": 1.5},
        "state": {"type": "string", "enum": ["OPEN", "CLOSED"], "default": "OPEN"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "seat": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "tags": {"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}},
        "inner": {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]},
    },
    "required": ["number", "state"],
}
VALID = (
    b'{"number":1,"carrier":"LH","price":2.5,"state":"OPEN","stops":["a"],"seat":1,"tags":{"x":1},"inner":{"b":true}}',
    b'{"number":-5,"state":"CLOSED"}',
    b' {"number":300, "stops":[],"tags":{}, "state":null}\t',
)


def convert(texts: list[bytes], fields: tuple[str, ...] = ()) -> Converted:
    registered = RegisteredSchema("1", "JSON", json.dumps(FLIGHT), version=1)
    settings = SchemaSettings(Table({"1": registered}), WireFormat(Layout.CONFLUENT), datums=DatumSettings())
    converter = JsonSchemaConverter(fields, settings)
    return converter.convert(pa.array([in_wire_format(1, text) for text in texts], pa.binary()), BatchSource("t"))


def comparable(found: Converted) -> Any:
    nulls = None if found.nulls is None else found.nulls.tolist()
    invalid = {row for row, _ in found.rejected} | {row for row, null in enumerate(nulls or ()) if null}
    data = [None if row in invalid else value for row, value in enumerate(found.values.to_pylist())]
    return data, nulls, found.rejected, found.fields


@given(RANDOM, st.sampled_from([(), ("number",)]))
def test_a_batch_with_mutated_texts_is_the_same_by_column_and_one_by_one(
    random: Random, fields: tuple[str, ...]
) -> None:
    texts = [random.choice(VALID) for _ in range(40)]
    for row in random.sample(range(40), random.randrange(4)):
        texts[row] = random.choice([b"null", b"", b"{}\n{}", b"[]", mutated_bytes(texts[row], random)])
    found = comparable(convert(texts, fields))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonDatums, "of_valid", lambda *_: None)
        with min_rows(1 << 60):
            assert found == comparable(convert(texts, fields))


@given(RANDOM, st.sampled_from([(), ("number",)]))
def test_bare_values_that_are_lines_are_the_same_without_the_newline(random: Random, fields: tuple[str, ...]) -> None:
    texts: list[bytes | None] = [random.choice(VALID) for _ in range(40)]
    for row in random.sample(range(40), random.randrange(4)):
        texts[row] = random.choice([None, b"null", b"", b"{}\n{}", b"[]", b"\n", mutated_bytes(VALID[0], random)])
    table = Table({"1": RegisteredSchema("1", "JSON", json.dumps(FLIGHT))})
    converter = JsonSchemaConverter(fields, SchemaSettings(table, bare_values="1", datums=DatumSettings()))
    lines = [None if text is None else text + b"\n" for text in texts]
    found = converter.convert_rows(pa.array([b"before\n", *lines, b"after\n"], pa.binary())[1:-1], BatchSource("t"))
    expected = converter.convert(pa.array(texts, pa.binary()), BatchSource("t"))
    assert comparable(found) == comparable(expected)
    assert found.schemas is not None
    assert expected.schemas is not None
    assert found.schemas.codes.tolist() == expected.schemas.codes.tolist()
    assert found.schemas.schemas == expected.schemas.schemas


def test_valid_lines_are_read_as_they_came() -> None:
    table = Table({"1": RegisteredSchema("1", "JSON", json.dumps(FLIGHT))})
    converter = JsonSchemaConverter((), SchemaSettings(table, bare_values="1", datums=DatumSettings()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(converter, "convert", None)
        found = converter.convert_rows(pa.array([text + b"\n" for text in VALID] * 20, pa.binary()), BatchSource("t"))
    assert (len(found.values), found.rejected) == (60, [])


def test_lines_of_an_unknown_or_unresolved_schema_are_converted_as_values_are() -> None:
    for table in (Table({}, unknown=("1",)), Table({"1": RegisteredSchema("1", "JSON", "{")}), Table({})):
        converter = JsonSchemaConverter((), SchemaSettings(table, bare_values="1", datums=DatumSettings()))
        found = converter.convert_rows(pa.array([b"{}\n"] * 20, pa.binary()), BatchSource("t"))
        expected = converter.convert(pa.array([b"{}"] * 20, pa.binary()), BatchSource("t"))
        assert comparable(found) == comparable(expected)
        assert (found.unresolved, found.unknown) == (expected.unresolved, expected.unknown)


def test_a_schema_of_usual_types_is_read_by_column() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonDatums, "of_texts", None)
        assert convert(list(VALID) * 20).rejected == []


def test_a_text_that_contains_two_lines_is_not_the_data_of_the_next_row() -> None:
    two = b'{"number":1,"state":"OPEN"}\n{"number":2,"state":"OPEN"}'
    found = convert([VALID[1]] * 20 + [two, b""] + [VALID[1]] * 20)
    assert [row for row, _ in found.rejected] == [20, 21]


@pytest.mark.parametrize("size", [typed_datums.MAX_ROWS_BYTES - 1, 2 * typed_datums.MAX_ROWS_BYTES])
def test_a_large_text_is_written_between_small_ones(size: int) -> None:
    large = b'{"number":1,"state":"OPEN","carrier":"' + b"x" * size + b'"}'
    found = convert([*[VALID[1]] * 8, large, VALID[1], large])
    assert found.rejected == []
    assert [len(value.as_py()) > size for value in found.values] == [*[False] * 8, True, False, True]


OPTIONAL = Schema(SchemaType.INT64, optional=True)


def wide(fields: int) -> Schema:
    """A struct with a list of structs with this number of optional fields."""
    item = Schema(SchemaType.STRUCT, name="item", fields=tuple(Field(f"f{n}", OPTIONAL) for n in range(fields)))
    return Schema(SchemaType.STRUCT, name="row", fields=(Field("items", Schema(SchemaType.ARRAY, values=item)),))


def items(count: int) -> bytes:
    return b'{"items":[' + b",".join([b"{}"] * count) + b"]}"


@pytest.fixture
def max_fields(monkeypatch: pytest.MonkeyPatch) -> int:
    for module in (json_decoder, typed_column_encoder):
        monkeypatch.setattr(module, "MAX_FIELDS", 1_001)
    return 1_001


@pytest.mark.parametrize("rows", [1, ROWS], ids=["few rows", "rows column-wise"])
def test_a_small_text_with_more_fields_than_the_memory_is_for_is_rejected(max_fields: int, rows: int) -> None:
    found = JsonDatums(wide(100), SETTINGS[1], text_reader, json_schema_reader)
    texts = pa.array([items(10), items(11)] * rows, pa.binary())
    assert len(texts) < typed_datums.MIN_ROWS or found.of_valid(texts) is None
    _, rejected = found.of_texts(texts, np.zeros(len(texts), np.bool_))
    reason = "items: its structs have more than 1,001 fields, with those that are missing"
    assert [row for row, _ in rejected] == list(range(1, len(texts), 2))
    assert all(reason in text for _, text in rejected)


def test_texts_that_have_too_many_fields_only_together_are_read(max_fields: int) -> None:
    found = JsonDatums(wide(100), SETTINGS[1], text_reader, json_schema_reader)
    data, rejected = found.of_texts(pa.array([items(10)] * ROWS, pa.binary()), np.zeros(ROWS, np.bool_))
    assert rejected == []
    assert len(set(data.to_pylist())) == 1


def test_a_schema_that_cannot_be_used_is_named_once() -> None:
    settings = SchemaSettings(
        Table({"3": RegisteredSchema("3", "JSON", "{")}), WireFormat(Layout.CONFLUENT), datums=DatumSettings()
    )
    found = JsonSchemaConverter((), settings).convert(
        pa.array([in_wire_format(3, b"{}")], pa.binary()), BatchSource("t")
    )
    [(_, reason)] = found.rejected
    assert reason.count("cannot be used") == 1
