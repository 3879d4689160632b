"""JSON values with a JSON Schema as Connect's, for transforms. A property that is not required is optional."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from sink_job.api.enums import UnknownFields
from sink_job.connect.errors import VALUE_ERRORS, InvalidSchema
from sink_job.connect.limits import TEXT_TOO_DEEP
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.registered import Decoded, RegisteredConverter, SchemaSettings
from sink_job.json.converter import JsonConverter
from sink_job.json.json_schema.converter import registered_connect_schema, texts_of
from sink_job.json.typed.decoder import TextReading
from sink_job.records.fields import MISSING
from sink_job.transforms.decoded.whole_values import (
    WHOLE,
    cannot_be_used,
    check_transformable,
    decoded_values,
    whole_value_settings,
)


def whole_value_converter(settings: SchemaSettings) -> RegisteredConverter:
    """Reads values as Connect's."""
    decoder_for = partial(_WholeTextDecoder, unknown=settings.unknown)
    return RegisteredConverter((WHOLE,), whole_value_settings(settings), decoder_for)


class _WholeTextDecoder:
    """Decodes the texts of one schema. See `Decoder`."""

    def __init__(self, registered: RegisteredSchema, unknown: UnknownFields) -> None:
        """Raises InvalidSchema."""
        schema = registered_connect_schema(registered, optional_properties=True)
        try:
            check_transformable(schema)
        except InvalidSchema as error:
            raise cannot_be_used(registered, error) from None
        self._reading = TextReading(schema, unknown)
        self.schema = self._reading.schema
        self._json = JsonConverter(())

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`."""
        found, before = texts_of(self._json, payload), self._reading.dropped
        rejected = dict(found.rejected)
        nulls = np.zeros(len(payload), np.bool_) if found.nulls is None else found.nulls
        values: list[object] = []
        for row, text in enumerate(found.texts.to_pylist()):
            value: object = MISSING
            try:
                if row not in rejected:
                    value = None if nulls[row] else self._reading.read(text)
            except VALUE_ERRORS as error:
                rejected[row] = str(error) or "the value cannot be computed"
            except RecursionError:
                rejected[row] = TEXT_TOO_DEEP
            values.append(value)
        return decoded_values(payload, values, sorted(rejected.items()), self._reading.dropped - before)
