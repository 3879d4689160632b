"""Values with a schema as Connect's, for transforms: what a converter of Kafka Connect would hand to them.

A `WholeValueDecoder` writes no value. The values of a batch are the field `WHOLE` of `Converted`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from sink_job.api.enums import OutputFormat
from sink_job.connect.errors import VALUE_ERRORS, InvalidSchema
from sink_job.connect.limits import VALUE_TOO_DEEP
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.connect.visitor import is_recursive
from sink_job.converters.registered import Decoded, SchemaSettings
from sink_job.records.fields import MISSING, Rejections

WHOLE: Final = ""
"""The name of the field that is the whole value."""


class WholeValueDecoder:
    """Decodes the values of one schema. See `Decoder`; the texts that it returns are the payloads."""

    def __init__(self, schema: Schema, read: Callable[[bytes], object]) -> None:
        """`read` returns the value of a payload in Connect's data model, and raises ValueError with the reason if it is
        not valid, or RecursionError. Raises InvalidSchema if values with the schema cannot be transformed."""
        check_transformable(schema)
        self.schema = schema
        self._read = read

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        values: list[object] = []
        rejected: Rejections = []
        for row, data in enumerate(payload.to_pylist()):
            try:
                values.append(self._read(data))
            except VALUE_ERRORS as error:
                values.append(MISSING)
                rejected.append((row, str(error) or "the value cannot be computed"))
            except RecursionError:
                values.append(MISSING)
                rejected.append((row, VALUE_TOO_DEEP))
        return decoded_values(payload, values, rejected)


def check_transformable(schema: Schema) -> None:
    """Raises InvalidSchema if values with the schema cannot be transformed: a recursive schema refers to a struct by
    its name, which a transform may change or take away."""
    if is_recursive(schema):
        raise InvalidSchema("it is recursive, and spec.transforms cannot change such a schema")


def decoded_values(payload: pa.BinaryArray, values: list[object], rejected: Rejections, dropped: int = 0) -> Decoded:
    """Values of one schema; MISSING where they are rejected. `dropped`: see `Decoded.dropped_properties`."""
    nulls = np.fromiter((each is None for each in values), np.bool_, len(values))
    return Decoded(payload, nulls if nulls.any() else None, rejected, {WHOLE: values}, dropped)


def whole_value_settings(settings: SchemaSettings) -> SchemaSettings:
    """The settings of a converter whose texts are not used."""
    return replace(settings, output=OutputFormat.BYTES)


def cannot_be_used(registered: RegisteredSchema, error: InvalidSchema) -> InvalidSchema:
    """The error with the name of the schema."""
    return InvalidSchema(f"{registered.label} cannot be used: {error}")
