"""Protobuf messages as values of Connect, for transforms."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from msgspec import structs

from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.registered import RegisteredConverter, SchemaSettings
from sink_job.protobuf.converter import ProtobufConverter, deep_calls
from sink_job.protobuf.row_decoder import MessageReader
from sink_job.protobuf.to_connect import connect_schema
from sink_job.transforms.decoded.whole_values import WHOLE, WholeValueDecoder, whole_value_settings


def whole_value_converter(settings: SchemaSettings) -> RegisteredConverter:
    """Reads values as Connect's."""
    return ProtobufConverter((WHOLE,), whole_value_settings(settings), _decoder)


def _decoder(message: Descriptor, registered: RegisteredSchema) -> WholeValueDecoder:
    """Raises InvalidSchema."""
    schema = structs.replace(connect_schema(message, registered.version), subject=registered.subject)
    reader = MessageReader(message)

    def read(data: bytes) -> object:
        with deep_calls():
            return reader.read(data)

    return WholeValueDecoder(schema, read)
