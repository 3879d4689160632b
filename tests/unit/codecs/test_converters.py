"""The choice of the converter."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.avro.converter import AvroConverter
from sink_job.codecs.converters import converter_for, transformed_converter, whole_value_converter
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema
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


def test_only_values_with_the_schema_of_a_registry_are_decoded_for_transforms() -> None:
    decoded = {each for each in ConverterType if each.needs_registry}
    for choice in decoded:
        found = whole_value_converter(choice, SchemaSettings(bare_values="1"))
        assert found.reason_against(RegisteredSchema("1", "X", "")) is not None
    for choice in set(ConverterType) - decoded:
        with pytest.raises(ValueError, match=f"values of the converter {choice} have no schema of a registry"):
            whole_value_converter(choice, SchemaSettings())


def test_transformed_values_have_the_form_of_the_output() -> None:
    text = b'{"schema":{"type":"struct","fields":[{"name":"a","schema":{"type":"int32"}}]},"payload":{"a":1}}'
    values = pa.array([text], pa.binary())
    as_json = transformed_converter(("a",), OutputFormat.JSON, SchemaSettings())
    as_avro = transformed_converter((), OutputFormat.AVRO, SchemaSettings(datums=DatumSettings()))
    assert as_json.convert(values, BatchSource("t")).values.to_pylist() == [b'{"a":1}']
    assert as_json.convert(values, BatchSource("t")).fields == {"a": [1]}
    assert as_avro.convert(values, BatchSource("t")).values.to_pylist() == [b"\x02"]


@pytest.mark.parametrize("choice", [ConverterType.JSON, ConverterType.TEXT, ConverterType.BYTES, ConverterType.CBOR])
def test_the_fields_are_those_that_are_asked_for(choice: ConverterType) -> None:
    found = converter_for(choice, ("a",)).convert(pa.array([b"1", None], pa.binary()), BatchSource("t"))
    assert found.fields == {"a": [MISSING, MISSING]}


def test_a_value_for_the_output_bytes_stays_as_it_came() -> None:
    converter = converter_for(ConverterType.CBOR, (), output=OutputFormat.BYTES)
    found = converter.convert(pa.array([b"\x18\x01"], pa.binary()), BatchSource("t"))
    assert found.values.to_pylist() == [b"\x18\x01"]
