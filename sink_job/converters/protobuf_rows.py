"""Reads Protobuf messages record by record. It defines which values are valid and what they contain.

Google's C reader (upb) decodes the binary form: it checks lengths, wire types, UTF-8 of proto3 and a depth of 100, and
as in Java the last value of a field counts and messages are merged. A required field of proto2 has to be set.
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from sink_job.schemas.protobuf_files import message_class
from sink_job.schemas.protobuf_values import converter


class RowReader:
    """Reads messages of one type."""

    def __init__(self, message: Descriptor) -> None:
        self._message = message_class(message)
        self._convert = converter(message)

    def read(self, data: bytes) -> object:
        """The value of a message in Connect's data model. Raises ValueError with the reason if it is not valid."""
        try:
            message = self._message.FromString(data)
        except DecodeError as error:
            raise ValueError(f"the value is not a valid Protobuf message: {_reason(error)}") from None
        if not self._message.IsInitialized(message):
            missing = ", ".join(self._message.FindInitializationErrors(message))
            raise ValueError(f"the value is a Protobuf message without required fields: {missing}")
        try:
            return self._convert(message)
        except ValueError as error:
            raise ValueError(f"the value is not a valid Protobuf message: {error}") from None


def _reason(error: DecodeError) -> str:
    """The reason without the name of the type."""
    return str(error).rpartition("': ")[2] or "it cannot be decoded"
