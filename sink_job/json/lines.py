"""JSON lines: a row is one JSON text and a newline.

JSON values are written unchanged. Text becomes a JSON string, bytes a base64 string, as with the connector's own
converters.
"""

from __future__ import annotations

import binascii
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.enums import ConverterType
from sink_job.arrow import columns as arrow_columns

_ESCAPED: Final = np.isin(np.arange(256), [*range(32), ord('"'), ord("\\")])
"""A mask of the bytes that must be escaped in a JSON string."""


class JsonLines:
    """Encodes the values of a converter as JSON."""

    prefix_bytes = 0

    def __init__(self, converter: ConverterType) -> None:
        self._converter = converter

    def encode(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """See `RowEncoder.encode`. Text values must be UTF-8."""
        if self._converter in (ConverterType.TEXT, ConverterType.BYTES):
            return self.texts(values, b"\n")
        return arrow_columns.joined(values, after=b"\n")

    def texts(self, values: pa.BinaryArray, end: bytes = b"") -> pa.BinaryArray:
        """The JSON texts of `values`, each before `end`, if the converter has Text or Bytes; otherwise `values`, which
        are JSON already."""
        match self._converter:
            case ConverterType.TEXT:
                return _strings(values, end)
            case ConverterType.BYTES:
                encoded = (binascii.b2a_base64(value, newline=False) for value in values.to_pylist())
                return arrow_columns.binaries([b'"%b"%b' % (text, end) for text in encoded])
        return values


def _strings(values: pa.BinaryArray, end: bytes) -> pa.BinaryArray:
    data, bounds = arrow_columns.content(values), arrow_columns.bounds(values)
    if not _ESCAPED[data[bounds[0] : bounds[-1]]].any():
        return arrow_columns.joined(values, before=b'"', after=b'"' + end)
    encode = msgspec.json.Encoder().encode
    return arrow_columns.binaries([encode(value.decode()) + end for value in values.to_pylist()])
