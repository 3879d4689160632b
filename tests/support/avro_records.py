"""Records whose values are Avro data of a registry, from those in envelopes of JsonConverter."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pyarrow as pa

from sink_job.avro.encoder import datum_encoder
from sink_job.avro.from_connect import avro_schema
from sink_job.connect.json_encoder import json_text
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import RegisteredConverter, SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.connect_envelope import envelope_schema, parse_envelope, payload_reader, schema_document
from sink_job.transforms.decoded.avro_values import whole_value_converter
from sink_job.transforms.decoded.whole_values import WHOLE
from tests.support.connect_transforms import ConnectRecord

_DATUMS = DatumSettings(connect_names=True)


class AvroRecords:
    """A registry of the schemas of envelopes."""

    def __init__(self) -> None:
        self._schemas: list[str] = []
        self.converter: RegisteredConverter = whole_value_converter(
            SchemaSettings(self, WireFormat(Layout.CONFLUENT), datums=_DATUMS)
        )

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """See `SchemaTable.find`."""
        return RegisteredSchema(schema_id, "AVRO", self._schemas[int(schema_id)])

    def value(self, record: ConnectRecord) -> bytes | None:
        """The value of a record in an envelope as Avro data in the wire format; None for one without a schema."""
        if record.value is None:
            return None
        envelope = parse_envelope(record.value.encode())
        schema = envelope_schema(bytes(envelope.schema))
        if schema is None:
            return None
        text = avro_schema(schema, _DATUMS)
        if text not in self._schemas:
            self._schemas.append(text)
        datum = datum_encoder(schema, _DATUMS)(payload_reader(schema)(bytes(envelope.payload)))
        return b"\0" + self._schemas.index(text).to_bytes(4) + datum

    def in_envelope(self, record: ConnectRecord, value: bytes | None) -> ConnectRecord:
        """The record with the envelope of its value `value`, as AvroConverter and JsonConverter would give it."""
        if value is None:
            return replace(record, value=None)
        found = self.converter.convert(pa.array([value], pa.binary()), BatchSource(record.topic))
        assert found.schemas is not None
        assert found.rejected == []
        (schema,) = found.schemas.schemas
        return replace(record, value=envelope(schema, json_text(schema, found.fields[WHOLE][0])))


def envelope(schema: Schema, payload: bytes) -> str:
    """JsonConverter's envelope."""
    return json.dumps(
        {"schema": json.loads(msgspec.json.encode(schema_document(schema))), "payload": json.loads(payload)}
    )


def as_envelope(value: bytes) -> str:
    """JsonConverter's envelope of a transformed value (`sink_job.json.transformed`)."""
    found = parse_envelope(value)
    schema = msgspec.json.decode(found.schema, type=Schema | None)
    if schema is None:
        return json.dumps({"schema": None, "payload": json.loads(bytes(found.payload))})
    return envelope(schema, bytes(found.payload))
