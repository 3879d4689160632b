"""Values without a schema in a binary form (CBOR, MessagePack), written as JSON.

The JSON is that of Kafka Connect's JsonConverter with `schemas.enable=false`
(org.apache.kafka.connect.json.JsonConverter.convertToJson):

- Bytes are base64. NaN and the infinities are the texts "NaN", "Infinity" and "-Infinity".
- A map with text keys alone is an object, any other map an array of pairs.
- Times are milliseconds since the epoch.

The same values are rejected for every output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api import enums
from sink_job.arrow import columns as arrow_columns
from sink_job.connect.errors import VALUE_ERRORS
from sink_job.converters.base import BatchSource, Converted
from sink_job.json.field_extraction import Extraction
from sink_job.records.fields import MISSING, Rejections

MAX_DEPTH: Final = 256
"""The maximum number of nested arrays and objects of the JSON. It is lower than Python's recursion limit, whose effect
varies with the caller."""

TOO_DEEP: Final = f"the value is nested deeper than {MAX_DEPTH} levels"
DUPLICATE_KEY: Final = "a map in the value has a key twice"

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


class RejectedItem(ValueError):
    """An item is valid, but is rejected. The message is the reason."""


class NotFinite(Enum):
    """A floating-point number that JSON cannot represent, as its text. It is no text: a path rejects it."""

    NAN = "NaN"
    INFINITY = "Infinity"
    NEGATIVE_INFINITY = "-Infinity"


class Normalizer:
    """Turns a decoded item into a value that msgspec encodes as the JSON of this module.

    `leaves` is for types of a decoder: the function that turns a value of the type into a value of one of `_SAME`. It
    raises RejectedItem for a rejection. `maps` are the decoder's types of maps.
    """

    def __init__(self, leaves: Mapping[type, Callable[[Any], object]], maps: tuple[type, ...] = (dict,)) -> None:
        self._by_type: dict[type, Callable[[Any, int], object]] = {
            float: _finite,
            list: self._array,
            tuple: self._array,
            **dict.fromkeys(maps, self._map),
            **{kind: _without_depth(leaf) for kind, leaf in leaves.items()},
        }

    def __call__(self, item: object) -> object:
        """Raises RejectedItem if the item is rejected."""
        return self._any(item, 0)

    def _any(self, item: object, depth: int) -> object:
        kind = type(item)
        return item if kind in _SAME else self._by_type[kind](item, depth)

    def _array(self, items: list[object], depth: int) -> list[object]:
        inner = _entered(depth)
        return [item if type(item) in _SAME else self._any(item, inner) for item in items]

    def _map(self, items: Mapping[Any, Any], depth: int) -> object:
        inner = _entered(depth)
        if set(map(type, items)) <= _TEXT:
            return {key: item if type(item) in _SAME else self._any(item, inner) for key, item in items.items()}
        pair = _entered(inner)
        return [[self._any(key, pair), self._any(item, pair)] for key, item in items.items()]


_SAME: Final = frozenset({str, int, bool, NoneType, bytes, Decimal})
"""The types that msgspec encodes as required."""

_TEXT: Final = {str}


def _entered(depth: int) -> int:
    if depth == MAX_DEPTH:
        raise RejectedItem(TOO_DEEP)
    return depth + 1


def _finite(number: float, _: int) -> float | NotFinite:
    if math.isfinite(number):
        return number
    if math.isnan(number):
        return NotFinite.NAN
    return NotFinite.INFINITY if number > 0 else NotFinite.NEGATIVE_INFINITY


def _without_depth(leaf: Callable[[Any], object]) -> Callable[[Any, int], object]:
    return lambda item, _: leaf(item)


class SchemalessConverter:
    """Converts values without a schema.

    `decode` reads one value and returns its normalized item. It raises ValueError with the reason for a rejection.
    `fields`: the fields to extract, dotted. `output` Json: the values become JSON texts; another one: they stay as they
    came.
    """

    def __init__(
        self,
        decode: Callable[[bytes], object],
        fields: tuple[str, ...] = (),
        output: enums.OutputFormat = enums.OutputFormat.JSON,
    ) -> None:
        self._decode = decode
        self._extraction = Extraction(fields) if fields else None
        self._to_json = output is enums.OutputFormat.JSON

    def convert(self, values: pa.BinaryArray, source: BatchSource | None = None) -> Converted:
        texts: list[bytes] = []
        nulls = np.zeros(len(values), np.bool_)
        rejected: Rejections = []
        records: list[object] = []
        for row, value in enumerate(values.to_pylist()):
            record = self._record(row, value, rejected)
            nulls[row] = record is None
            if self._to_json:
                texts.append(b"" if record is None or record is MISSING else _encode(record))
            if self._extraction:  # otherwise the item is released: it takes more memory than its value
                records.append(record)
        return Converted(
            values=arrow_columns.binaries(texts) if self._to_json else arrow_columns.without_nulls(values),
            nulls=nulls if nulls.any() else None,
            rejected=rejected,
            fields=self._extraction.columns(records) if self._extraction else {},
        )

    def _record(self, row: int, value: bytes | None, rejected: Rejections) -> object:
        """The item in `value`; None for no value, and MISSING after a rejection."""
        if value is None:
            return None
        try:
            return self._decode(value)
        except VALUE_ERRORS as error:
            rejected.append((row, str(error)))
            return MISSING
