"""The choice of the converter."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.avro.converter import AvroConverter
from sink_job.codecs.converters import converter_for
from sink_job.connect.output_settings import DatumSettings
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import SchemaSettings
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.json.converter import JsonConverter
from sink_job.json.json_schema.converter import JsonSchemaConverter
from sink_job.json.typed.converter import JsonValuesConverter
from sink_job.plain.bytes import BytesConverter
from sink_job.plain.cbor import CborConverter
from sink_job.plain.message_pack import MessagePackConverter
from sink_job.plain.text import TextConverter
from sink_job.protobuf.converter import ProtobufConverter
from sink_job.records.fields import MISSING

TYPES = {
    ConverterType.JSON: JsonConverter,
    ConverterType.TEXT: TextConverter,
    ConverterType.BYTES: BytesConverter,
    ConverterType.AVRO: AvroConverter,
    ConverterType.CBOR: CborConverter,
    ConverterType.MESSAGE_PACK: MessagePackConverter,
    ConverterType.CONNECT_JSON: ConnectJsonConverter,
    ConverterType.JSON_SCHEMA: JsonSchemaConverter,
    ConverterType.PROTOBUF: ProtobufConverter,
}


@pytest.mark.parametrize("choice", ConverterType)
def test_each_choice_has_its_converter(choice: ConverterType) -> None:
    assert type(converter_for(choice, (), schemas=SchemaSettings())) is TYPES[choice]


def test_json_for_an_output_with_types_is_read_under_its_schema() -> None:
    schemas = SchemaSettings(bare_values="1", output=OutputFormat.AVRO, datums=DatumSettings())
    assert type(converter_for(ConverterType.JSON, (), schemas=schemas)) is JsonValuesConverter


@pytest.mark.parametrize("choice", [ConverterType.AVRO, ConverterType.JSON_SCHEMA, ConverterType.PROTOBUF])
def test_a_converter_with_schemas_needs_them_and_the_error_names_it(choice: ConverterType) -> None:
    with pytest.raises(ValueError, match=f"converter {choice} is not supported"):
        converter_for(choice, ())


@pytest.mark.parametrize("choice", [ConverterType.JSON, ConverterType.TEXT, ConverterType.BYTES, ConverterType.CBOR])
def test_the_fields_are_those_that_are_asked_for(choice: ConverterType) -> None:
    found = converter_for(choice, ("a",)).convert(pa.array([b"1", None], pa.binary()), BatchSource("t"))
    assert found.fields == {"a": [MISSING, MISSING]}


def test_a_value_for_the_output_bytes_stays_as_it_came() -> None:
    converter = converter_for(ConverterType.CBOR, (), output=OutputFormat.BYTES)
    found = converter.convert(pa.array([b"\x18\x01"], pa.binary()), BatchSource("t"))
    assert found.values.to_pylist() == [b"\x18\x01"]
