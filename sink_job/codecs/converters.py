"""Converters: read the values of records, reject invalid ones, and extract the fields that paths and times need.

One module per converter. A converter reads the values of a batch as one column. It reads single values only where the
column holds an invalid or unusual one. Runs in Spark's Python workers, and in `s3sink simulate`.
"""

from dataclasses import replace

from sink_job.api import enums
from sink_job.avro.converter import AvroConverter
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.converters.base import BatchSource, Converted, SchemaConverter, ValueConverter
from sink_job.converters.registered import SchemaSettings
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.json.converter import JsonConverter
from sink_job.json.json_schema.converter import JsonSchemaConverter
from sink_job.json.typed.converter import JsonValuesConverter
from sink_job.plain.bytes import BytesConverter
from sink_job.plain.cbor import CborConverter
from sink_job.plain.message_pack import MessagePackConverter
from sink_job.plain.text import TextConverter

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
    match choice:
        case enums.ConverterType.JSON if schemas is not None and schemas.datums is not None:
            return JsonValuesConverter(fields, schemas, schemas.datums)
        case enums.ConverterType.JSON:
            return JsonConverter(fields)
        case enums.ConverterType.TEXT:
            return TextConverter(fields)
        case enums.ConverterType.BYTES:
            return BytesConverter(fields)
        case enums.ConverterType.AVRO if schemas is not None:
            return AvroConverter(fields, replace(schemas, output=output))
        case enums.ConverterType.CBOR:
            return CborConverter(fields, output)
        case enums.ConverterType.MESSAGE_PACK:
            return MessagePackConverter(fields, output)
        case enums.ConverterType.CONNECT_JSON:
            options, datums = (schemas.options, schemas.datums) if schemas else (DEFAULT_OPTIONS, None)
            return ConnectJsonConverter(fields, output, options, datums)
        case enums.ConverterType.JSON_SCHEMA if schemas is not None:
            return JsonSchemaConverter(fields, schemas)
        case enums.ConverterType.PROTOBUF if schemas is not None:
            from sink_job.protobuf.converter import ProtobufConverter  # slow; the others do not need it

            return ProtobufConverter(fields, replace(schemas, output=output))
    raise ValueError(f"converter {choice} is not supported")
