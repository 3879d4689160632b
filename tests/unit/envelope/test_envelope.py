"""`format.envelope`: key, headers, timestamp and origin beside the value, in Json, Avro and Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sink_job.api.enums import ConverterType, OnNullValue, SchemaCompatibility
from sink_job.formats.block_rows import BlockRows
from sink_job.rotation.types import ObjectId
from sink_job.writer.record_pipeline import RecordPipeline
from tests.unit.avro.avro_data import Table, datum, encode, in_wire_format, record, registered, samples
from tests.unit.envelope.enveloped import (
    FIRST,
    TP,
    WIRE_FORMAT,
    Consumed,
    around,
    base64_text,
    fields,
    head_writer,
    json_row,
    pipeline,
    prepare,
    rows,
)

FLIGHT = record(("number", "long"), ("carrier", ["null", "string"]), name="example.Flight")
KEY = record(("id", "long"), name="example.Key")
TABLE = Table({"1": registered(FLIGHT, version=1), "key-5": registered(KEY, "key-5", version=1)})
AVRO: dict[str, Any] = {"converter": "Avro", "wire_format": WIRE_FORMAT}
OUTPUTS = ["Avro", "Parquet"]


def flight(number: int) -> bytes:
    return in_wire_format(1, datum(FLIGHT, {"number": number, "carrier": None if number % 2 else "ä"}))


def avro_key(number: int, schema_id: int = 5, schema: Any = KEY) -> bytes:
    return in_wire_format(schema_id, datum(schema, {"id": number}))


def object_of(found: RecordPipeline, records: Sequence[Consumed]) -> bytes:
    """The object with these records, which have one schema."""
    prepared = prepare(found, records)
    assert prepared.errors == []
    (schema,) = prepared.rows.schema_ids
    found.keep_schemas("flights", [ObjectId("", schema)], prepared.schemas)
    encoder = found.object_encoder("key", "flights", schema)
    header = encoder.header()
    block = encoder.block(BlockRows.of(prepared.encoded), len(header))
    return header + block.data + encoder.footer([block.index])


def read(output: str, body: bytes) -> list[dict[str, Any]]:
    if output == "Parquet":
        found: list[dict[str, Any]] = pq.read_table(io.BytesIO(body)).to_pylist()
        return found
    return [each for each in fastavro.reader(io.BytesIO(body)) if isinstance(each, dict)]


def queried(query: str) -> list[Any]:
    found = duckdb.sql(query)
    assert found is not None
    return found.fetchall()


# -- the content of a record -------------------------------------------------------------------------------------------

RECORDS = [
    Consumed(flight(0), b"k\xff", [("a", b"1"), ("a", None)], 1_000, 0),
    Consumed(flight(1), None, None, -1, 1),
    Consumed(flight(2), b"", [], 0, -1),
]
WHEN = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = ("key", "headers", "timestamp", "timestampType", "topic", "partition", "offset", "value")
READ = [
    dict(zip(NAMES, each, strict=True))
    for each in [
        (
            b"k\xff",
            [{"name": "a", "value": b"1"}, {"name": "a", "value": None}],
            WHEN,
            "CreateTime",
            TP.topic,
            TP.partition,
            FIRST + 1,
            {"number": 0, "carrier": "ä"},
        ),
        (None, [], None, "LogAppendTime", TP.topic, TP.partition, FIRST + 2, {"number": 1, "carrier": None}),
        (b"", [], EPOCH, None, TP.topic, TP.partition, FIRST + 3, {"number": 2, "carrier": "ä"}),
    ]
]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_reader_of_avro_and_parquet_gets_the_whole_record(output: str) -> None:
    assert read(output, object_of(pipeline(TABLE, **AVRO, output=output), RECORDS)) == READ


def test_a_json_line_has_the_whole_record() -> None:
    value = b'{"a": 1.0 }'
    lines = rows(
        pipeline(), [Consumed(value, b"k", [("h", b"v"), ("g", None)], 1), Consumed(b" 2", None, None, -1, -1)]
    )
    assert lines == [
        b'{"key":"aw==","headers":[{"name":"h","value":"dg=="},{"name":"g","value":null}],"timestamp":1,'
        b'"timestampType":"CreateTime","topic":"t\\"\xc3\xa4","partition":300,"offset":127,"value":{"a": 1.0 }}\n',
        b'{"key":null,"headers":[],"timestamp":null,"timestampType":null,"topic":"t\\"\xc3\xa4","partition":300,'
        b'"offset":128,"value": 2}\n',
    ]


def test_duckdb_reads_an_envelope_in_parquet_with_its_types(tmp_path: Any) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(object_of(pipeline(TABLE, **AVRO, output="Parquet"), RECORDS))
    types = queried(f"describe from '{path}'")
    assert [each[:3] for each in types] == [
        ("key", "BLOB", "YES"),
        ("headers", 'STRUCT("name" VARCHAR, "value" BLOB)[]', "YES"),
        ("timestamp", "TIMESTAMP WITH TIME ZONE", "YES"),
        ("timestampType", "VARCHAR", "YES"),
        ("topic", "VARCHAR", "YES"),
        ("partition", "INTEGER", "YES"),
        ("offset", "BIGINT", "YES"),
        ("value", "STRUCT(number BIGINT, carrier VARCHAR)", "YES"),
    ]
    query = (
        f"""select "offset", headers[1]."name", "value".carrier from '{path}' where "timestampType" = 'CreateTime'"""
    )
    assert queried(query) == [(FIRST + 1, "a", "ä")]


@pytest.mark.parametrize(("converter", "value"), [("Text", b'"say \\"x\\""'), ("Bytes", b'"c2F5ICJ4Ig=="')])
def test_text_and_bytes_have_the_json_that_they_have_without_an_envelope(converter: str, value: bytes) -> None:
    one = Consumed(b'say "x"')
    assert rows(pipeline(converter=converter), [one]) == [json_row(one, 0, value, b"null")]


def test_the_timestamp_in_json_is_iso_as_the_timestamps_of_values() -> None:
    (line,) = rows(pipeline(timestamps="Iso"), [Consumed(b"1", timestamp=1_700_000_000_123)])
    assert json.loads(line)["timestamp"] == "2023-11-14T22:13:20.123Z"


def test_the_size_of_a_record_is_that_of_its_envelope() -> None:
    prepared = prepare(pipeline(), [Consumed(b"1"), Consumed(b"12")])
    assert prepared.rows.sizes is not None
    assert prepared.rows.sizes.tolist() == [prepared.prefix_bytes + len(row) for row in prepared.encoded.to_pylist()]


# -- any records, against a reference that encodes them row-wise -----------------------------------------------------

VALUES = st.sampled_from([b'{"a":1}', b"[]", b'"x"', b" 1", b'{"a":\n1}', b"false"])


@given(st.lists(around(VALUES, st.none() | st.binary(max_size=6)), max_size=6))
def test_json_lines_are_those_of_a_reference(records: list[Consumed]) -> None:
    expected = [
        json_row(each, n, (each.value or b"").replace(b"\n", b""), base64_text(each.key))
        for n, each in enumerate(records)
    ]
    assert rows(pipeline(), records) == expected


@given(samples(max_size=4), st.data())
def test_avro_data_are_those_of_a_reference_before_the_data_of_the_value_as_it_came(
    sample: tuple[Any, list[Any]], data: st.DataObject
) -> None:
    schema, values = sample
    payloads = encode(schema, values)
    records = [
        data.draw(around(st.just(in_wire_format(1, each)), st.none() | st.binary(max_size=6))) for each in payloads
    ]
    table = Table({"1": registered(schema, version=1)})
    alone = prepare(pipeline(table, **AVRO, output="Avro", envelope=False), records)
    enveloped = prepare(pipeline(table, **AVRO, output="Avro"), records)
    assert enveloped.errors == alone.errors
    rejected, write = {each.row for each in alone.errors}, head_writer(["null", "bytes"])
    for n, (one, row, value) in enumerate(
        zip(records, enveloped.encoded.to_pylist(), alone.encoded.to_pylist(), strict=True)
    ):
        if n not in rejected:
            assert row == write(fields(one, n, one.key)) + value


@given(samples(depth=2, max_size=4), samples(depth=2, max_size=4))
def test_fastavro_reads_keys_and_values_of_any_schema(
    of_values: tuple[Any, list[Any]], of_keys: tuple[Any, list[Any]]
) -> None:
    """Names of types are in both schemas, with different content."""
    assume(is_readable(of_values) and is_readable(of_keys))
    values, keys = (encode(schema, given) for schema, given in (of_values, of_keys))
    records = [
        Consumed(in_wire_format(1, value), in_wire_format(5, key)) for value, key in zip(values, keys, strict=False)
    ]
    table = Table({"1": registered(of_values[0], version=1), "key-5": registered(of_keys[0], "key-5", version=1)})
    found = pipeline(table, **AVRO, output="Avro", keyConverter="Avro")
    prepared = prepare(found, records)
    accepted = [n for n in range(len(records)) if n not in {each.row for each in prepared.errors}]
    if accepted:
        (schema,) = prepared.rows.schema_ids
        found.keep_schemas("flights", [ObjectId("", schema)], prepared.schemas)
        encoder = found.object_encoder("key", "flights", schema)
        header, content = encoder.header(), BlockRows.of(prepared.encoded.take(pa.array(accepted)))
        read_back = list(fastavro.reader(io.BytesIO(header + encoder.block(content, len(header)).data)))
        expected = [(FIRST + 1 + n, of_producer(of_keys, keys[n]), of_producer(of_values, values[n])) for n in accepted]
        found_rows = [each for each in read_back if isinstance(each, dict)]
        assert repr([(each["offset"], each["key"], each["value"]) for each in found_rows]) == repr(expected)


def is_readable(sample: tuple[Any, list[Any]]) -> bool:
    """Whether Python has a date for each date of the values: not before year 1."""
    try:
        for data in encode(*sample):
            of_producer(sample, data)
    except (ValueError, OverflowError):
        return False
    return True


def of_producer(sample: tuple[Any, list[Any]], data: bytes) -> object:
    """A value as fastavro reads it under its producer's schema."""
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(sample[0]), None)


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("converter", "key", "text"),
    [
        (ConverterType.JSON, b'{"id": 7 }', b'{"id": 7 }'),
        (ConverterType.JSON, b"null", b"null"),
        (ConverterType.TEXT, b'a"\n', b'"a\\"\\n"'),
        (ConverterType.BYTES, b"a", b'"YQ=="'),
        (ConverterType.AVRO, avro_key(7), b'{"id":7}'),
        (ConverterType.CBOR, b"\xa1\x61a\x01", b'{"a":1}'),
        (ConverterType.TEXT, None, b"null"),
    ],
)
def test_a_key_in_json_has_the_form_of_a_value(converter: ConverterType, key: bytes | None, text: bytes) -> None:
    one = Consumed(b"1", key)
    found = pipeline(TABLE, wire_format=WIRE_FORMAT, keyConverter=str(converter))
    assert rows(found, [one]) == [json_row(one, 0, b"1", text)]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_key_with_a_schema_has_its_type(output: str) -> None:
    found = pipeline(TABLE, **AVRO, output=output, keyConverter="Avro")
    body = object_of(found, [Consumed(flight(0), avro_key(n)) for n in range(20)])
    assert [each["key"] for each in read(output, body)] == [{"id": n} for n in range(20)]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(("converter", "key"), [("Text", "kä"), ("Bytes", "kä".encode())])
def test_a_key_of_text_or_bytes_is_optional(output: str, converter: str, key: object) -> None:
    found = pipeline(TABLE, **AVRO, output=output, keyConverter=converter)
    body = object_of(found, [Consumed(flight(0), "kä".encode()), Consumed(flight(1), None)])
    assert [each["key"] for each in read(output, body)] == [key, None]


@pytest.mark.parametrize("output", OUTPUTS)
def test_another_schema_of_the_key_is_another_schema_of_the_record(output: str) -> None:
    other = record(("id", "long"), name="example.Other")
    table = Table({**TABLE.schemas, "key-6": registered(other, "key-6", version=2)})
    found = pipeline(table, **AVRO, output=output, keyConverter="Avro")
    keys = [avro_key(1), avro_key(1, 6, other), avro_key(2), None]
    prepared = prepare(found, [Consumed(flight(0), key) for key in keys])
    assert prepared.rows.schemas is not None
    assert prepared.rows.schemas.tolist() == [1, 2, 1, 0]


def test_another_schema_of_the_key_is_the_same_schema_of_a_record_in_json() -> None:
    found = pipeline(TABLE, **AVRO, keyConverter="Avro")
    prepared = prepare(found, [Consumed(flight(0), avro_key(1)), Consumed(flight(0), None)])
    assert prepared.rows.schemas is not None
    assert prepared.rows.schemas.tolist() == [0, 0]


NULLABLE_KEYS: list[tuple[Any, list[Any]]] = [
    (["null", KEY], [None, {"id": 1}]),
    ([KEY, "null"], [None, {"id": 1}]),
    (["null", "string", "long"], [None, "a", 1]),
    (["string", "long"], ["a", 1]),
    ({"type": "string", "connect.default": "x"}, ["a", "b"]),
]


@pytest.mark.parametrize(("schema", "values"), NULLABLE_KEYS)
def test_keys_of_one_schema_that_can_be_null_are_in_one_object(schema: Any, values: list[Any]) -> None:
    table = Table({**TABLE.schemas, "key-7": registered(schema, "key-7", version=1)})
    found = pipeline(table, **AVRO, output="Avro", keyConverter="Avro")
    body = object_of(found, [Consumed(flight(0), in_wire_format(7, datum(schema, each))) for each in values])
    read_back = [each["key"] for each in read("Avro", body)]
    assert read_back == values


def test_a_key_that_cannot_be_decoded_is_a_data_error() -> None:
    prepared = prepare(pipeline(keyConverter="Json"), [Consumed(b"1", b"1"), Consumed(b"1", b"nope")])
    assert [(each.row, each.message) for each in prepared.errors] == [
        (1, "the key is not JSON: invalid character (byte 1)")
    ]


def test_a_batch_ends_before_a_key_with_an_unresolved_schema_id() -> None:
    found = pipeline(TABLE, **AVRO, output="Avro", keyConverter="Avro")
    prepared = prepare(found, [Consumed(flight(0), avro_key(1)), Consumed(flight(0), avro_key(1, 6))])
    assert (len(prepared.rows), prepared.unresolved) == (1, ("key-6",))


@pytest.mark.parametrize("output", ["Json", *OUTPUTS])
def test_paths_are_those_without_an_envelope(output: str) -> None:
    partitioner = {"type": "Field", "fields": ["carrier", "$key.id", "$header.h"], "schemaName": "Prefix"}
    chosen = {**AVRO, "keyConverter": "Avro", "output": output, "partitioner": partitioner}
    records = [Consumed(flight(n), avro_key(n), [("h", b"x")]) for n in range(3)]
    found = prepare(pipeline(TABLE, **chosen), records).rows
    alone = prepare(pipeline(TABLE, **chosen, envelope=False), records).rows
    assert (found.paths, found.codes.tolist()) == (alone.paths, alone.codes.tolist())
    assert found.paths[0] == "schema_name=example.Flight/carrier=ä/key.id=0/header.h=x"


# -- rejections and nulls ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["Json", *OUTPUTS])
def test_rejected_and_ignored_values_are_no_rows(output: str) -> None:
    found = pipeline(TABLE, **AVRO, output=output, on_null=OnNullValue.IGNORE)
    prepared = prepare(found, [Consumed(flight(0)), Consumed(None, b"k"), Consumed(b"nope"), Consumed(flight(1))])
    assert (prepared.rows.codes >= 0).tolist() == [True, False, False, True]
    assert (prepared.ignored, [each.row for each in prepared.errors]) == (1, [2])


def nested(depth: int) -> dict[str, Any]:
    schema = record(("n", "long"), name="N0")
    for level in range(1, depth):
        schema = record(("f", schema), name=f"N{level}")
    return schema


def nested_value(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"n": 1}
    for _ in range(1, depth):
        value = {"f": value}
    return value


@pytest.mark.parametrize(("output", "deepest"), [("Avro", 99), ("Parquet", 98)])
def test_a_schema_that_is_too_deep_within_an_envelope_is_a_data_error(output: str, deepest: int) -> None:
    for depth, is_valid in ((deepest, True), (deepest + 1, False)):
        schema = nested(depth)
        found = pipeline(Table({"1": registered(schema, version=1)}), **AVRO, output=output)
        prepared = prepare(found, [Consumed(in_wire_format(1, datum(schema, nested_value(depth))))])
        assert (prepared.errors == []) == is_valid, prepared.errors


def test_a_recursive_value_is_rejected_in_parquet_with_its_field() -> None:
    tree = record(("next", ["null", "Tree"]), name="Tree")
    table = Table({"1": registered(tree, version=1)})
    value = in_wire_format(1, datum(tree, {"next": {"next": None}}))
    (error,) = prepare(pipeline(table, **AVRO, output="Parquet"), [Consumed(value)]).errors
    assert error.message.startswith("Parquet cannot express the field value.next: its schema is recursive")
    body = object_of(pipeline(table, **AVRO, output="Avro"), [Consumed(value)])
    assert read("Avro", body)[0]["value"] == {"next": {"next": None}}


def test_a_value_that_is_no_struct_can_be_in_parquet_within_an_envelope() -> None:
    found = pipeline(Table({"1": registered("long", version=1)}), **AVRO, output="Parquet")
    body = object_of(found, [Consumed(in_wire_format(1, datum("long", n))) for n in (5, -6)])
    assert [each["value"] for each in read("Parquet", body)] == [5, -6]


# -- projection --------------------------------------------------------------------------------------------------------

NEWER = record(("number", "long"), ("carrier", ["null", "string"]), ("seats", ["null", "int"]), name="example.Flight")
VERSIONS = Table({**TABLE.schemas, "2": registered(NEWER, 2, version=2)})


@pytest.mark.parametrize("output", ["Json", *OUTPUTS])
def test_a_value_is_projected_within_its_envelope(output: str) -> None:
    found = pipeline(VERSIONS, **AVRO, output=output, mode=SchemaCompatibility.BACKWARD)
    older, newer = flight(0), in_wire_format(2, datum(NEWER, {"number": 1, "carrier": None, "seats": 9}))
    prepared = prepare(found, [Consumed(newer, b"k"), Consumed(older, b"l", [("h", b"x")])])
    assert prepared.projection is not None
    (target,) = {prepared.rows.schema_ids[int(prepared.rows.schemas[0])]} if prepared.rows.schemas is not None else {}
    encoded = prepared.projection.replace(prepared.encoded, [(target, slice(0, 2))])
    expected = prepare(
        found,
        [
            Consumed(newer, b"k"),
            Consumed(
                in_wire_format(2, datum(NEWER, {"number": 0, "carrier": "ä", "seats": None})), b"l", [("h", b"x")]
            ),
        ],
    )
    assert encoded.to_pylist() == expected.encoded.to_pylist()
