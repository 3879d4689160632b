"""Reads Protobuf messages column-wise with ptars, for the types that fuzzing has shown right.

ptars accepts some data that is no message, drops what it cannot represent in its own types for dates and times, and
keeps each member of a oneof that the data contains. So:

- Google's C reader reads each message first. If it rejects one, ptars gets none.
- ptars gets other types with the same binary form (`sink_job.protobuf.column_types`): strings are bytes there,
  enums are integers, members of oneofs are optional fields, and logical types are messages like any other.
- Recursive messages, messages without fields, small integers and defaults in the entries of maps are not used.

Anything unusual in a batch raises `UnusualValues`. Then its records are read one by one, which decides what is invalid.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import ptars
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.columnar import NotColumnar, UnusualValues
from sink_job.connect.json_encoder import JsonOptions
from sink_job.connect.schema import Schema
from sink_job.converters.registered import Decoded
from sink_job.protobuf.column_text import field_values, message_texts
from sink_job.protobuf.column_types import has_required, reading_message
from sink_job.protobuf.files import message_class
from sink_job.protobuf.to_connect import WRAPPERS
from sink_job.records.fields import segments

_PANIC: Final = "PanicException"
"""The exception for a panic in Rust code. It cannot be imported, and is no Exception."""


class ProtobufColumnDecoder:
    """Decodes messages of one type column-wise."""

    def __init__(self, message: Descriptor, schema: Schema, fields: tuple[str, ...], options: JsonOptions) -> None:
        """Raises NotColumnar if the type, or the type of a field, is not read column-wise."""
        if message.full_name in WRAPPERS:
            raise NotColumnar("a wrapper as the whole message is not read column-wise")
        reading = reading_message(message)
        self._message = message_class(message)
        self._has_required = has_required(message)
        self._texts = message_texts(message, schema, options)
        self._fields = {name: field_values(message, segments(name)) for name in fields}
        self._handler = ptars.HandlerPool([reading.file]).get_for_message(reading)

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`; all rows are valid. Raises UnusualValues if that must be decided row-wise."""
        self._check(payload)
        column = self._read(payload)
        texts = self._texts(column)
        return Decoded(texts, fields={name: read(column) for name, read in self._fields.items()})

    def _check(self, payload: pa.BinaryArray) -> None:
        parsed = map(self._message.FromString, payload.to_pylist())
        try:
            if not self._has_required:
                deque(parsed, maxlen=0)
            elif not all(map(self._message.IsInitialized, parsed)):
                raise UnusualValues("a required field is not set")
        except DecodeError as error:
            raise UnusualValues(str(error)) from None

    def _read(self, payload: pa.BinaryArray) -> pa.StructArray:
        try:
            batch: Any = self._handler.array_to_record_batch(arrow_columns.without_nulls(payload))
        except Exception as error:
            raise UnusualValues(str(error)) from None
        except BaseException as error:
            if type(error).__name__ != _PANIC:
                raise
            raise UnusualValues(str(error)) from None
        return batch.to_struct_array()
