"""Values of Protobuf, JSON Schema and envelopes for the outputs Avro and Parquet, as fastavro and pyarrow read them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from sink_job.api.enums import OutputFormat
from sink_job.avro import row_decoder as avro_row_decoder
from sink_job.avro.connect_values import normaliser
from sink_job.avro.from_connect import avro_schema, avro_type
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_encoder import DEFAULT_OPTIONS, json_text
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema, SchemaType
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.json.json_schema.converter import JsonSchemaConverter
from sink_job.parquet.table_reader import ParquetTableReader
from sink_job.protobuf.converter import ProtobufConverter, ProtobufDecoder
from sink_job.protobuf.row_decoder import MessageReader
from sink_job.protobuf.to_connect import connect_schema
from tests.unit.avro.avro_data import Table, in_wire_format
from tests.unit.protobuf import protobuf_samples
from tests.unit.protobuf.protobuf_data import in_wire_format as message_in_wire_format
from tests.unit.protobuf.protobuf_data import message, proto3, set_text

AVRO = DatumSettings()
PARQUET = DatumSettings(OutputFormat.PARQUET)


def rows(found: Converted) -> list[Any]:
    """The values of the rows, as fastavro reads them."""
    assert found.rejected == []
    assert found.schemas is not None
    texts = [fastavro.parse_schema(json.loads(avro_schema(each, AVRO))) for each in found.schemas.schemas]
    data = zip(found.schemas.codes, found.values.to_pylist(), strict=True)
    return [fastavro.schemaless_reader(io.BytesIO(datum), texts[code]) for code, datum in data]


def table(found: Converted) -> pa.Table:
    """The rows, which have one schema, in a Parquet file."""
    assert found.rejected == []
    assert found.schemas is not None
    (schema,) = found.schemas.schemas
    out = io.BytesIO()
    pq.write_table(ParquetTableReader(schema, PARQUET).table(found.values), out, store_schema=False)
    return pq.read_table(out)


def settings_for(registered: RegisteredSchema, settings: DatumSettings, **wire_format: Any) -> SchemaSettings:
    return SchemaSettings(
        Table({"1": registered}), WireFormat(Layout.CONFLUENT, **wire_format), output=settings.output, datums=settings
    )


# -- JSON Schema -------------------------------------------------------------------------------------------------------

FLIGHT = {
    "title": "Flight",
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "carrier": {"type": "string"},
        "price": {"type": "number"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "seat": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    },
    "required": ["number"],
}


def convert_json(schema: Any, texts: Sequence[bytes], settings: DatumSettings = AVRO) -> Converted:
    registered = RegisteredSchema("1", "JSON", json.dumps(schema), version=1)
    converter = JsonSchemaConverter((), settings_for(registered, settings))
    return converter.convert(pa.array([in_wire_format(1, text) for text in texts], pa.binary()), BatchSource("t"))


def json_rejection(schema: Any, text: bytes) -> str:
    ((_, reason),) = convert_json(schema, [text]).rejected
    return reason


def one_property(**node: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"f": node}, "required": ["f"]}


def test_json_with_a_schema_is_typed() -> None:
    text = b'{"price": 1, "number": 2.0, "carrier": "LH", "stops": ["MUC"], "seat": "4A"}'
    (row,) = rows(convert_json(FLIGHT, [text]))
    assert row == {
        "number": 2,
        "carrier": "LH",
        "price": 1.0,
        "stops": ["MUC"],
        "seat": {
            "io_confluent_connect_json_OneOf_field_0": None,
            "io_confluent_connect_json_OneOf_field_1": "4A",
        },
    }


def test_json_with_a_schema_has_parquets_types() -> None:
    found = table(convert_json(FLIGHT, [b'{"number": 1}', b'{"number": 2, "stops": []}'], PARQUET))
    assert found.select(["number", "carrier", "price", "stops"]).to_pylist() == [
        {"number": 1, "carrier": None, "price": None, "stops": None},
        {"number": 2, "carrier": None, "price": None, "stops": []},
    ]
    assert not found.schema.field("number").nullable


def test_a_property_that_is_not_required_is_optional() -> None:
    assert rows(convert_json(FLIGHT, [b'{"number": 1}']))[0]["carrier"] is None


def test_a_null_value_has_no_data() -> None:
    found = convert_json(FLIGHT, [b"null", b'{"number": 1}'])
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, False]


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        (FLIGHT, b'{"carrier": "LH"}', "the field number: a required value of type int64 is null or missing"),
        (FLIGHT, b'{"number": 1.5}', "the field number: a JSON value must be an integer"),
        (FLIGHT, b'{"number": 9223372036854775808}', "the field number: the number 9223372036854775808 does not fit"),
        (FLIGHT, b'{"number": 1, "x": 2}', "the field x: its schema does not have this property"),
        (FLIGHT, b'{"number": 1, "seat": {}}', "the field seat: no member of its schema has this value"),
        (FLIGHT, b"[]", "a JSON value must be an object"),
        (FLIGHT, b'{"number": 1', "the value is not JSON: Input data was truncated"),
        (one_property(**one_property(type="boolean")), b'{"f": {"f": 1}}', "the field f.f: a JSON value must be a boo"),
    ],
)
def test_json_that_does_not_conform_is_a_data_error_of_its_field(schema: Any, text: bytes, reason: str) -> None:
    assert f": {reason}" in json_rejection(schema, text)


def test_the_member_of_a_union_with_most_of_the_properties_counts() -> None:
    one, two = (
        {"type": "object", "properties": {name: {"type": "integer"} for name in names}} for names in ("a", "bc")
    )
    found = convert_json(one_property(oneOf=[one, two]), [b'{"f": {"b": 1}}'])
    assert rows(found) == [
        {
            "f": {
                "io_confluent_connect_json_OneOf_field_0": None,
                "io_confluent_connect_json_OneOf_field_1": {"b": 1, "c": None},
            }
        }
    ]


def test_json_of_the_maximum_depth_is_written_and_deeper_json_is_a_data_error() -> None:
    schema = {"title": "N", "type": "object", "properties": {"n": {"$ref": "#"}}}
    texts = [b'{"n":' * (depth - 1) + b"{}" + b"}" * (depth - 1) for depth in (256, 257)]
    found = convert_json(schema, texts)
    ((row, reason),) = found.rejected
    assert (row, reason.endswith(": the value is nested deeper than 256 levels")) == (1, True)
    assert found.values[0].as_py() == b"\x02" * 255 + b"\x00"


def test_a_json_object_with_a_field_twice_has_its_last_value() -> None:
    assert rows(convert_json(one_property(type="integer"), [b'{"f": 1, "f": 2}'])) == [{"f": 2}]


def test_json_is_projected_to_the_schema_of_its_object() -> None:
    registered = RegisteredSchema("1", "JSON", json.dumps(FLIGHT), version=1)
    converter = JsonSchemaConverter((), settings_for(registered, AVRO))
    target = convert_json(
        {"title": "Flight", "type": "object", "properties": {"number": {"type": "number"}}, "required": ["number"]},
        [b'{"number":1}'],
    ).schemas
    assert target is not None
    data = converter.project(pa.array([in_wire_format(1, b'{"number": 3}')]), BatchSource("t"), target.schemas[0])
    text = fastavro.parse_schema(json.loads(avro_schema(target.schemas[0], AVRO)))
    assert fastavro.schemaless_reader(io.BytesIO(data[0].as_py()), text) == {"number": 3.0}


# -- Protobuf ----------------------------------------------------------------------------------------------------------


def convert_message(schema: RegisteredSchema, text: str, settings: DatumSettings = AVRO) -> Converted:
    converter = ProtobufConverter((), settings_for(schema, settings, chooses_message=True))
    data = set_text(message(schema), text).SerializeToString()
    return converter.convert(pa.array([message_in_wire_format(data)], pa.binary()), BatchSource("t"))


EVENT = proto3(
    """
    message M {
      int64 id = 1;
      oneof kind { string name = 2; int32 code = 3; }
      map<string, int32> counts = 4;
      repeated string tags = 5;
      google.protobuf.Timestamp at = 6;
      Colour colour = 7;
      uint64 big = 8;
      Inner inner = 9;
    }
    message Inner { bool b = 1; }
    enum Colour { RED = 0; BLUE = 1; }
    """,
    "google/protobuf/timestamp.proto",
)
TEXT = 'id: 5 code: 7 counts {key: "k" value: 3} tags: "t" at {seconds: 1 nanos: 2000000} colour: BLUE'


def test_a_message_is_typed() -> None:
    (row,) = rows(convert_message(EVENT, TEXT))
    assert row == {
        "kind_0": {"name": None, "code": 7},
        "id": 5,
        "counts": [{"key": "k", "value": 3}],
        "tags": ["t"],
        "at": datetime(1970, 1, 1, 0, 0, 1, 2000, UTC),
        "colour": "BLUE",
        "big": 0,
        "inner": None,
    }


STRUCT = proto3("message M { google.protobuf.Struct a = 1; }", "google/protobuf/struct.proto")


def test_a_recursive_message_is_typed() -> None:
    text = 'a {fields {key: "k" value {struct_value {fields {key: "l" value {number_value: 0.5}}}}}}'
    (row,) = rows(convert_message(STRUCT, text))
    ((key, value),) = (each.values() for each in row["a"]["fields"])
    ((inner, number),) = (each.values() for each in value["kind_0"]["struct_value"]["fields"])
    assert (key, inner, number["kind_0"]["number_value"]) == ("k", "l", 0.5)


def test_a_message_has_parquets_types() -> None:
    found = table(convert_message(EVENT, TEXT, PARQUET))
    assert found.to_pylist() == [
        {
            "kind_0": {"name": None, "code": 7},
            "id": 5,
            "counts": [("k", 3)],
            "tags": ["t"],
            "at": datetime(1970, 1, 1, 0, 0, 1, 2000, UTC),
            "colour": "BLUE",
            "big": 0,
            "inner": None,
        }
    ]
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")


def test_an_unsigned_integer_that_is_too_large_is_a_data_error_of_its_field() -> None:
    ((_, reason),) = convert_message(EVENT, "big: 18446744073709551615").rejected
    assert reason.endswith("the field big: 18446744073709551615 is outside the range of int64")


@given(protobuf_samples.samples())
def test_data_of_messages_has_the_values_of_connect(sample: tuple[Any, list[bytes]]) -> None:
    descriptor, data = sample
    decoder = ProtobufDecoder(descriptor, 1, (), DEFAULT_OPTIONS, AVRO)
    found = decoder.decode(pa.array(data, pa.binary()))
    avro = avro_type(decoder.schema, AVRO)
    for row, datum in enumerate(found.texts.to_pylist()):
        if row not in dict(found.rejected):
            read = normaliser(avro)(avro_row_decoder.DatumReader(avro).read(datum))
            expected = MessageReader(descriptor).read(data[row])
            assert json_text(decoder.schema, read) == json_text(decoder.schema, expected)


def has_empty_struct(schema: Schema) -> bool:
    inner = [*(field.schema for field in schema.fields), *filter(None, (schema.keys, schema.values))]
    return (schema.type is SchemaType.STRUCT and not schema.fields) or any(map(has_empty_struct, inner))


@given(protobuf_samples.samples())
def test_messages_are_written_to_parquet(sample: tuple[Any, list[bytes]]) -> None:
    descriptor, data = sample
    if has_empty_struct(connect_schema(descriptor)):
        with pytest.raises(InvalidSchema, match="has no fields"):
            ProtobufDecoder(descriptor, 1, (), DEFAULT_OPTIONS, PARQUET)
        return
    decoder = ProtobufDecoder(descriptor, 1, (), DEFAULT_OPTIONS, PARQUET)
    found = decoder.decode(pa.array(data, pa.binary()))
    rejected = dict(found.rejected)
    datums = pa.array([each for row, each in enumerate(found.texts.to_pylist()) if row not in rejected], pa.binary())
    out = io.BytesIO()
    pq.write_table(ParquetTableReader(decoder.schema, PARQUET).table(datums), out, store_schema=False)
    assert pq.read_metadata(out).num_rows == len(data) - len(rejected)


# -- envelopes ---------------------------------------------------------------------------------------------------------


def envelope(schema: Any, payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def convert_envelope(*values: bytes, settings: DatumSettings = AVRO) -> Converted:
    converter = ConnectJsonConverter((), settings.output, datums=settings)
    return converter.convert(pa.array(values, pa.binary()))


AMOUNT = {
    "type": "struct",
    "fields": [
        {
            "field": "amount",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1,
            "parameters": {"scale": "2"},
        },
        {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
        {"field": "n", "type": "int8", "optional": True},
    ],
}


def test_an_envelope_is_typed() -> None:
    (row,) = rows(convert_envelope(envelope(AMOUNT, {"amount": 1.25, "at": 1000})))
    assert row == {"amount": Decimal("1.25"), "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "n": None}


def test_an_envelope_has_parquets_types() -> None:
    found = table(convert_envelope(envelope(AMOUNT, {"amount": 1.25, "at": 1000, "n": 3}), settings=PARQUET))
    assert found.schema.types == [pa.decimal128(38, 2), pa.timestamp("us", "UTC"), pa.int32()]
    assert found.to_pylist() == [{"amount": Decimal("1.25"), "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "n": 3}]


def test_an_envelope_without_a_schema_is_a_data_error() -> None:
    found = convert_envelope(envelope(None, {"a": 1}), envelope(AMOUNT, {"amount": 1, "at": 1}))
    assert found.rejected == [(0, "the envelope has no schema, which the output Avro requires")]


def test_a_decimal_of_an_envelope_that_is_too_long_is_a_data_error_of_its_field() -> None:
    found = convert_envelope(envelope(AMOUNT, {"amount": 10**37, "at": 1}), settings=PARQUET)
    assert found.rejected == [(0, "the field amount: a decimal has more than 38 digits")]


def test_an_envelope_is_projected_to_the_schema_of_its_object() -> None:
    target = convert_envelope(envelope({"type": "struct", "fields": AMOUNT["fields"][1:2]}, {"at": 1})).schemas
    assert target is not None
    converter = ConnectJsonConverter((), OutputFormat.AVRO, datums=AVRO)
    value = envelope(AMOUNT, {"amount": 1.25, "at": 1000})
    data = converter.project(pa.array([value]), BatchSource("t"), target.schemas[0])
    assert data.to_pylist() == [b"\xd0\x0f"]
