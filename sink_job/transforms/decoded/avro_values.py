"""Avro values as Connect's, for transforms, as io.confluent.connect.avro.AvroData.toConnectData makes them."""

from __future__ import annotations

from functools import partial

from sink_job.avro.connect_values import normaliser
from sink_job.avro.row_decoder import DatumReader
from sink_job.avro.to_connect import connect_schema, parse_registered
from sink_job.connect.errors import InvalidSchema, rejecting
from sink_job.connect.schema import Extension, RegisteredSchema, of_subject
from sink_job.converters.registered import RegisteredConverter, SchemaSettings
from sink_job.transforms.decoded.whole_values import WHOLE, WholeValueDecoder, cannot_be_used, whole_value_settings


def whole_value_converter(settings: SchemaSettings) -> RegisteredConverter:
    """Reads values as Connect's. For the outputs Avro and Parquet their schemas have what Connect's model lacks."""
    extension = Extension.NONE if settings.datums is None else settings.datums.extension
    return RegisteredConverter((WHOLE,), whole_value_settings(settings), partial(_decoder, extension=extension))


def _decoder(registered: RegisteredSchema, *, extension: Extension) -> WholeValueDecoder:
    """Raises InvalidSchema."""
    if registered.language != "AVRO":
        raise InvalidSchema(f"{registered.label} is {registered.language}, but format.converter is Avro")
    try:
        with rejecting("the Avro schema"):
            avro = parse_registered(registered)
            schema = of_subject(connect_schema(avro, registered.version, extension), registered)
            read, normalise = DatumReader(avro).read, normaliser(avro)
            return WholeValueDecoder(schema, lambda data: normalise(read(data)))
    except InvalidSchema as error:
        raise cannot_be_used(registered, error) from None
