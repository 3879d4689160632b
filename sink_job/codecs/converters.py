"""Converters: read the values of records, reject invalid ones, and extract the fields that paths and times need.

One module per converter, imported for the sinks that use it: with their libraries they are a fifth of the imports of a
driver and of its workers. A converter reads the values of a batch as one column. It reads single values only where the
column holds an invalid or unusual one. Runs in Spark's Python workers, and in `s3sink simulate`.
"""

from dataclasses import replace

from sink_job.api import enums
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.converters.base import BatchSource, Converted, SchemaConverter, ValueConverter
from sink_job.converters.registered import RegisteredConverter, SchemaSettings

__all__ = ["BatchSource", "Converted", "SchemaConverter", "SchemaSettings", "ValueConverter", "converter_for"]


def converter_for(
    choice: enums.ConverterType,
    fields: tuple[str, ...],
    *,
    output: enums.OutputFormat = enums.OutputFormat.JSON,
    schemas: SchemaSettings | None = None,
) -> ValueConverter:
    """The converter of type `choice` for the format `output`. It extracts `fields`; the name of a nested field is
    dotted. `schemas` is required for values with a schema; its `output` is not used.

    Raises ValueError for an unsupported type, or if `schemas` is missing.
    """
    if schemas is not None and (converter := _schema_converter(choice, fields, output, schemas)) is not None:
        return converter
    match choice:
        case enums.ConverterType.JSON:
            from sink_job.json.converter import JsonConverter

            return JsonConverter(fields)
        case enums.ConverterType.TEXT:
            from sink_job.plain.text import TextConverter

            return TextConverter(fields)
        case enums.ConverterType.BYTES:
            from sink_job.plain.bytes import BytesConverter

            return BytesConverter(fields)
        case enums.ConverterType.CBOR:
            from sink_job.plain.cbor import CborConverter

            return CborConverter(fields, output)
        case enums.ConverterType.MESSAGE_PACK:
            from sink_job.plain.message_pack import MessagePackConverter

            return MessagePackConverter(fields, output)
        case enums.ConverterType.CONNECT_JSON:
            from sink_job.json.connect_json import ConnectJsonConverter

            options, datums = (schemas.options, schemas.datums) if schemas else (DEFAULT_OPTIONS, None)
            return ConnectJsonConverter(fields, output, options, datums)
    raise ValueError(f"converter {choice} is not supported")


def whole_value_converter(choice: enums.ConverterType, schemas: SchemaSettings) -> RegisteredConverter:
    """Reads values with the schema of a registry or of the manifest as Connect's, for transforms.

    Raises ValueError for another type.
    """
    match choice:
        case enums.ConverterType.AVRO:
            from sink_job.transforms.decoded import avro_values

            return avro_values.whole_value_converter(schemas)
        case enums.ConverterType.JSON_SCHEMA:
            from sink_job.transforms.decoded import json_schema_values

            return json_schema_values.whole_value_converter(schemas)
        case enums.ConverterType.PROTOBUF:
            from sink_job.transforms.decoded import protobuf_values

            return protobuf_values.whole_value_converter(schemas)
    raise ValueError(f"values of the converter {choice} have no schema of a registry")


def transformed_converter(
    fields: tuple[str, ...], output: enums.OutputFormat, schemas: SchemaSettings
) -> ValueConverter:
    """The converter of what transforms make of such values. It extracts `fields`."""
    from sink_job.json.transformed import TransformedConverter

    return TransformedConverter(fields, output, schemas.options, schemas.datums)


def _schema_converter(
    choice: enums.ConverterType, fields: tuple[str, ...], output: enums.OutputFormat, schemas: SchemaSettings
) -> ValueConverter | None:
    """The converter of values that have their schema from a registry or the manifest; None for another type."""
    match choice:
        case enums.ConverterType.JSON if schemas.datums is not None:
            from sink_job.json.typed.converter import JsonValuesConverter

            return JsonValuesConverter(fields, schemas, schemas.datums)
        case enums.ConverterType.AVRO:
            from sink_job.avro.converter import AvroConverter

            return AvroConverter(fields, replace(schemas, output=output))
        case enums.ConverterType.JSON_SCHEMA:
            from sink_job.json.json_schema.converter import JsonSchemaConverter

            return JsonSchemaConverter(fields, schemas)
        case enums.ConverterType.PROTOBUF:
            from sink_job.protobuf.converter import ProtobufConverter

            return ProtobufConverter(fields, replace(schemas, output=output))
    return None
