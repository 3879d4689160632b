"""JSON lines: a record is one JSON text and a newline.

JSON values stand as they came. Text becomes a JSON string, bytes a string of base64, as the connector's own converters
have it.
"""

from __future__ import annotations

import binascii
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.choices import Converter
from sink_job.cutting import columns

_ESCAPED: Final = r'["\\\x00-\x1f]'


class JsonLines:
    """Rows of JSON, made of what `converter` gives."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter

    def frame(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of `values`; of text, those that are UTF-8."""
        match self._converter:
            case Converter.TEXT:
                return _strings(values)
            case Converter.BYTES:
                encoded = (binascii.b2a_base64(value, newline=False) for value in values.to_pylist())
                return columns.binaries([b'"%b"\n' % text for text in encoded])
        return columns.joined(values, after=b"\n")


def _strings(values: pa.BinaryArray) -> pa.BinaryArray:
    quoted = columns.joined(values, before=b'"', after=b'"\n')
    escaped = pc.match_substring_regex(values.cast(pa.string()), _ESCAPED)
    rows = np.flatnonzero(columns.truths(escaped))
    if not len(rows):
        return quoted
    texts: list[bytes] = quoted.to_pylist()
    for row in rows.tolist():
        texts[row] = msgspec.json.encode(values[row].as_py().decode()) + b"\n"
    return columns.binaries(texts)
