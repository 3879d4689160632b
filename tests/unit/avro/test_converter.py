"""Avro values: accepted data, JSON texts, fields, schemas, and the ids that the driver has to resolve."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from fastavro.utils import generate_one
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import DecimalFormat, OutputFormat, TimestampFormat
from sink_job.arrow import columnar
from sink_job.avro.connect_values import normaliser
from sink_job.avro.converter import AvroConverter
from sink_job.avro.schema import parse_avro
from sink_job.avro.to_connect import connect_schema
from sink_job.connect.json_encoder import JsonOptions, json_text
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.registered import SchemaSettings
from sink_job.records.fields import MISSING
from tests.unit.avro.avro_data import (
    SOURCE,
    Table,
    convert,
    converter,
    datum,
    encode,
    in_wire_format,
    record,
    registered,
    samples,
    texts,
)
from tests.unit.avro.reading_schema import reading_schema

LINE = record(("a", "long"), ("b", ["null", "string"]))
LISTS = {"type": "record", "name": "Q", "fields": [{"name": "next", "type": ["null", "Q"]}]}


@pytest.fixture(params=["column-wise", "row-wise"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each behaviour holds in both ways of decoding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", 0 if request.param == "column-wise" else 1 << 60)
        yield


def line(a: int, b: str | None = None, schema_id: int = 1) -> bytes:
    return in_wire_format(schema_id, datum(LINE, {"a": a, "b": b}))


def reasons(schema: Any, *payloads: bytes) -> list[tuple[int, str]]:
    return convert(converter(registered(schema)), [in_wire_format(1, payload) for payload in payloads]).rejected


def test_a_record_becomes_a_json_object_with_all_fields() -> None:
    found = convert(converter(registered(LINE)), [line(1, "ä\n"), line(-2)])
    assert texts(found) == ['{"a":1,"b":"ä\\n"}'.encode(), b'{"a":-2,"b":null}']
    assert found.rejected == []


def test_a_tombstone_and_avros_null_are_nulls() -> None:
    found = convert(
        converter(registered(["null", LINE])), [None, in_wire_format(1, b"\0"), in_wire_format(1, b"\2" + line(1)[5:])]
    )
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, True, False]
    assert texts(found)[2] == b'{"a":1,"b":null}'


def test_with_bytes_output_the_values_are_as_they_came() -> None:
    values = [line(1), in_wire_format(1, b"\2"), None, line(2)]
    found = convert(converter(registered(LINE), output=OutputFormat.BYTES), values)
    assert texts(found) == [line(1), None, None, line(2)]
    assert [row for row, _ in found.rejected] == [1]


def test_records_of_several_schemas_are_decoded_each_with_its_own() -> None:
    other = record(("c", "string"), name="S")
    found = convert(
        converter(registered(LINE, 1, version=3), registered(other, 2)),
        [line(1), in_wire_format(2, datum(other, {"c": "x"})), line(2)],
    )
    assert texts(found) == [b'{"a":1,"b":null}', b'{"c":"x"}', b'{"a":2,"b":null}']
    assert found.schemas is not None
    assert found.schemas.codes.tolist() == [0, 1, 0]
    assert [(schema.name, schema.version) for schema in found.schemas.schemas] == [("R", 3), ("S", None)]


def test_two_ids_of_equal_schemas_are_one_schema() -> None:
    found = convert(converter(registered(LINE, 1), registered(LINE, 2)), [line(1), line(2, schema_id=2)])
    assert found.schemas is not None
    assert found.schemas.codes.tolist() == [0, 0]
    assert len(found.schemas.schemas) == 1


def test_a_tombstone_and_a_rejected_value_have_no_schema() -> None:
    found = convert(converter(registered(LINE)), [None, b"x", line(1)])
    assert found.schemas is not None
    assert found.schemas.codes.tolist() == [-1, -1, 0]


def test_ids_that_are_not_resolved_are_reported_with_their_first_rows() -> None:
    found = convert(
        converter(registered(LINE)), [None, line(1), line(2, schema_id=9), line(3), line(4, schema_id=7), line(5)]
    )
    assert found.unresolved == [(2, "9"), (4, "7")]
    assert texts(found)[:2] == [None, b'{"a":1,"b":null}']


def test_an_id_that_the_registry_does_not_know_is_a_data_error_of_its_records() -> None:
    found = convert(converter(registered(LINE), unknown=("8",)), [line(1), line(2, schema_id=8), line(3)])
    assert found.rejected == [(1, "the registry does not know schema 8")]
    assert found.unresolved == []
    assert texts(found) == [b'{"a":1,"b":null}', None, b'{"a":3,"b":null}']


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (RegisteredSchema("1", "PROTOBUF", "…"), "schema 1 is PROTOBUF, but format.converter is Avro"),
        (RegisteredSchema("1", "AVRO", '{"type":"record"}'), "schema 1 cannot be used: the Avro schema is invalid"),
        (
            RegisteredSchema("1", "AVRO", "x", subject="flights-value", version=3),
            "schema 1 (subject flights-value version 3) cannot be used: ",
        ),
        (registered({"type": "array", "items": "null"}), "a null that is not in a union"),
        (registered({"type": "array", "items": record(name="E")}), "an array whose items have no bytes"),
    ],
)
def test_a_schema_that_cannot_be_used_is_a_data_error_of_its_records(schema: RegisteredSchema, reason: str) -> None:
    ((row, found),) = convert(converter(schema), [in_wire_format(1, b"\2\2\2")]).rejected
    assert row == 0
    assert reason in found


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "int", "connect.type": {}},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2**62},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -(2**63), "connect.default": "a"},
    ],
)
def test_a_malformed_schema_is_a_data_error_of_its_records(schema: Any) -> None:
    found = convert(
        converter(registered(schema), registered(LINE, 2), fields=("a",)), [in_wire_format(1, b"\2"), line(1, None, 2)]
    )
    ((row, reason),) = found.rejected
    assert row == 0
    assert reason.startswith("schema 1 cannot be used: ")
    assert texts(found)[1] == b'{"a":1,"b":null}'


def test_bare_values_have_the_schema_of_the_manifest() -> None:
    found = AvroConverter((), SchemaSettings(Table({"text-1": registered(LINE, "text-1")}), bare_values="text-1"))
    assert texts(convert(found, [line(1)[5:], None])) == [b'{"a":1,"b":null}', None]
    assert convert(found, [None]).unresolved == []


def test_the_schema_of_bare_values_is_resolved_as_that_of_a_registry() -> None:
    found = AvroConverter((), SchemaSettings(Table({}), bare_values="text-1"))
    assert convert(found, [None, line(1)[5:]]).unresolved == [(1, "text-1")]
    assert convert(found, []).unresolved == []


INT, LONG = record(("v", "int")), record(("v", "long"))
ENUM = record(("v", {"type": "enum", "name": "E", "symbols": ["A", "B"]}))
ENDS = "the value ends within its Avro data"


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        (INT, b"", ENDS),
        (INT, b"\x80", ENDS),
        (INT, b"\2\0", "the value has 1 bytes after its Avro data"),
        (INT, b"\xff\xff\xff\xff\xff\x01", "is outside the range of an int"),
        (LONG, b"\xff" * 11, "an integer has more than 10 bytes"),
        (record(("v", "boolean")), b"\2", "2 is not a boolean"),
        (record(("v", "float")), b"123", ENDS),
        (record(("v", "double")), b"1234567", ENDS),
        (record(("v", "string")), b"\1", "-1 is not a length"),
        (record(("v", "string")), b"\x04a", ENDS),
        (record(("v", "string")), b"\2\xff", "a string is not UTF-8"),
        (record(("v", "bytes")), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", ENDS),
        (record(("v", {"type": "fixed", "name": "F", "size": 3})), b"ab", ENDS),
        (ENUM, b"\4", "an enum has no symbol 2"),
        (ENUM, b"\1", "an enum has no symbol -1"),
        (record(("v", ["null", "int"])), b"\1\2", "a union has no branch -1"),
        (record(("v", ["null", "int", "string"])), b"\6", "a union has no branch 3"),
        (record(("v", {"type": "array", "items": "int"})), b"\xfe\xff\xff\xff\xff\xff\xff\x7f\2", ENDS),
        (record(("v", {"type": "map", "values": "int"})), b"\xfe\xff\xff\xff\xff\xff\xff\x7f\0", ENDS),
        (record(("v", {"type": "array", "items": "int"})), b"\xff" * 9 + b"\1\2\2", ENDS),
        (LISTS, b"\2" * 500_000 + b"\0", "nested deeper than 100 levels"),
        (record(("v", {"type": "bytes", "logicalType": "decimal", "precision": 4})), b"\0", "a decimal has no bytes"),
    ],
)
def test_invalid_data_is_rejected_alone(schema: Any, payload: bytes, reason: str) -> None:
    valid = generate_one(schema) if schema is not LISTS else {"next": None}
    good = datum(schema, valid)
    ((row, found),) = reasons(schema, good, payload, good)
    assert row == 1
    assert reason in found


def test_blocks_with_a_size_and_several_blocks_are_one_array() -> None:
    schema = record(("v", {"type": "array", "items": "int"}))
    found = convert(converter(registered(schema)), [in_wire_format(1, b"\3\4\2\4" + b"\2\6" + b"\0")])
    assert texts(found) == [b'{"v":[1,2,3]}']


def test_a_key_that_a_map_has_twice_has_its_last_value() -> None:
    schema = record(("v", {"type": "map", "values": "int"}))
    found = convert(converter(registered(schema)), [in_wire_format(1, b"\6\2a\2\2b\4\2a\6\0")])
    assert texts(found) == [b'{"v":{"a":3,"b":2}}']


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (JsonOptions(), b'{"amount":"AP8=","at":0,"day":1}'),
        (
            JsonOptions(DecimalFormat.NUMERIC, TimestampFormat.ISO),
            b'{"amount":2.55,"at":"1970-01-01T00:00:00.000Z","day":"1970-01-02"}',
        ),
    ],
)
def test_decimals_and_times_have_the_form_of_the_settings(options: JsonOptions, text: bytes) -> None:
    schema = record(
        ("amount", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("day", {"type": "int", "logicalType": "date"}),
    )
    payload = b"\6\0\0\xff" + b"\0" + b"\2"
    assert texts(convert(converter(registered(schema), options=options), [in_wire_format(1, payload)])) == [text]


def test_fields_are_those_of_the_schema() -> None:
    inner = record(("x", "string"), ("y", ["null", "int"]), name="I")
    schema = record(("a", "long"), ("i", ["null", inner]), ("e", {"type": "enum", "name": "E", "symbols": ["P", "Q"]}))
    fields = ("a", "i.x", "i.y", "e", "absent", "a.b", "i.z")
    found = convert(
        converter(registered(schema), fields=fields),
        [
            in_wire_format(1, datum(schema, {"a": 1, "i": {"x": "s", "y": None}, "e": "Q"})),
            in_wire_format(1, datum(schema, {"a": 2, "i": None, "e": "P"})),
        ],
    )
    assert found.fields == {
        "a": [1, 2],
        "i.x": ["s", None],
        "i.y": [None, None],
        "e": ["Q", "P"],
        "absent": [MISSING, MISSING],
        "a.b": [MISSING, MISSING],
        "i.z": [MISSING, MISSING],
    }


def test_a_null_field_with_a_default_has_its_default_as_in_kafka_connect() -> None:
    schema = record(("a", ["null", {"type": "int", "connect.default": 5}]))
    found = convert(converter(registered(schema), fields=("a",)), [in_wire_format(1, b"\0")])
    assert (found.fields, texts(found)) == ({"a": [5]}, [b'{"a":5}'])


def test_the_fields_of_tombstones_and_rejected_values_are_missing() -> None:
    found = convert(converter(registered(LINE), fields=("a",)), [None, b"", line(4)])
    assert found.fields == {"a": [MISSING, MISSING, 4]}


def reference(schema: Any, payload: bytes) -> bytes | None:
    """The JSON text of a datum that fastavro reads; None if it rejects it."""
    avro_type = parse_avro(json.dumps(schema))
    stream = io.BytesIO(payload)
    try:
        decoded = fastavro.schemaless_reader(stream, fastavro.parse_schema(reading_schema(avro_type)), None)  # type: ignore[arg-type]
        if stream.read():
            return None
        return json_text(connect_schema(avro_type), normaliser(avro_type)(decoded))
    except (ValueError, EOFError, IndexError):
        return None


@given(samples())
def test_what_fastavro_writes_is_read_as_fastavro_reads_it(sample: tuple[Any, list[Any]]) -> None:
    schema, values = sample
    payloads = encode(schema, values)
    found = convert(converter(registered(schema)), [in_wire_format(1, payload) for payload in payloads])
    assert found.rejected == []
    assert texts(found) == [reference(schema, payload) for payload in payloads]


@st.composite
def damaged(draw: Any) -> tuple[Any, list[bytes], list[bytes]]:
    """A schema, valid data, and data with a change, or arbitrary bytes."""
    schema, values = draw(samples(depth=2).filter(lambda sample: sample[1]))
    valid = encode(schema, values)
    damages = []
    for _ in range(draw(st.integers(1, 3))):
        data = bytearray(draw(st.sampled_from(valid)))
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=10))
        damages.append(bytes(data))
    return schema, valid, [*damages, draw(st.binary(max_size=12))]


@given(damaged())
def test_damaged_data_affects_its_record_alone(sample: tuple[Any, list[bytes], list[bytes]]) -> None:
    schema, valid, damages = sample
    found = convert(
        converter(registered(schema)), [in_wire_format(1, payload) for payload in [*valid, *damages, *valid]]
    )
    kept = texts(found)
    expected = [reference(schema, payload) for payload in valid]
    assert kept[: len(valid)] == expected
    assert kept[-len(valid) :] == expected
    for payload, text in zip(damages, kept[len(valid) : -len(valid)], strict=True):
        assert text is None or text == reference(schema, payload)


def test_unresolved_ids_are_found_without_decoding() -> None:
    found = converter(registered(LINE))
    batch = pa.array(
        [None, b"bad", line(1), in_wire_format(9, b"not Avro"), in_wire_format(9, b""), in_wire_format(7, b"")],
        pa.binary(),
    )
    assert found.unresolved(batch, SOURCE) == ("9", "7")
