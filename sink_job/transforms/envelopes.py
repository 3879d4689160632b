"""JsonConverter's envelopes: read to values with a schema, and written again after transforms. Values with the schema
of a registry are written as such envelopes, too (`sink_job.json.transformed`)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_encoder import Encode, json_encoder
from sink_job.connect.schema import Schema
from sink_job.connect.schema_cache import cached_by_size, compiled_size
from sink_job.json.connect_envelope import envelope_schema, parse_envelope, payload_reader, schema_document
from sink_job.transforms.json_values import is_null, json_text
from sink_job.transforms.typed_values import TypedValue

_NO_SCHEMA = b'{"schema":null,"payload":%b}'
_ENCODER = msgspec.json.Encoder(decimal_format="number")
_ENVELOPE = b'{"schema":%b,"payload":%b}'

_Reader = tuple[Schema, Callable[[bytes], object]] | None


def complete_schema_text(schema: Schema) -> bytes:
    """The text of a whole schema, as `sink_job.json.transformed` reads it, with what JsonConverter does not write."""
    return msgspec.json.encode(schema)


class EnvelopeValues:
    """Reads and writes envelopes. Schemas are read once for each of their texts."""

    def __init__(self, schema_text: Callable[[Schema], bytes] | None = None) -> None:
        """`schema_text`: the text of a schema in the envelopes that are written; None for that of JsonConverter."""
        self._schema_text = schema_text or (lambda schema: msgspec.json.encode(schema_document(schema)))
        self._reader = cached_by_size(_reader_of, lambda text, found: len(text) + _size(found))
        self._writers: dict[int, tuple[Schema, bytes, Encode]] = {}

    def read(self, text: bytes) -> object:
        """A `TypedValue`, or a value without a schema. Raises ValueError, also for what is no envelope."""
        envelope = parse_envelope(text)
        reader, payload = self._reader(bytes(envelope.schema)), bytes(envelope.payload)
        if reader is None:
            return None if is_null(envelope.payload) else msgspec.Raw(payload)
        schema, read = reader
        return TypedValue(schema, read(payload))

    def write(self, value: object) -> bytes:
        """The envelope of a value. Raises InvalidValue if it does not conform to its schema."""
        if not isinstance(value, TypedValue):
            return _NO_SCHEMA % json_text(value)
        _, text, encode = self._writer(value.schema)
        try:
            return _ENVELOPE % (text, _ENCODER.encode(encode(value.value)))
        except RecursionError:
            raise InvalidValue("the value is nested too deeply") from None

    def _writer(self, schema: Schema) -> tuple[Schema, bytes, Encode]:
        """The schema, its text, and the function that turns a value into what msgspec encodes."""
        found = self._writers.get(id(schema))
        if found is None or found[0] is not schema:
            if len(self._writers) >= 1000:
                self._writers.clear()
            found = self._writers[id(schema)] = (schema, self._schema_text(schema), json_encoder(schema))
        return found


def _reader_of(text: bytes) -> _Reader:
    schema = envelope_schema(text)
    return None if schema is None else (schema, payload_reader(schema))


def _size(found: _Reader) -> int:
    return 1 if found is None else compiled_size(found[0])
