"""The values of a batch before transforms: as they were read, or decoded with the schemas of a registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from sink_job.converters.base import BatchSource, SchemaTable
from sink_job.converters.registered import RegisteredConverter
from sink_job.transforms.decoded.whole_values import WHOLE
from sink_job.transforms.envelopes import EnvelopeValues, complete_schema_text
from sink_job.transforms.typed_values import TypedValue

UNREADABLE: Final = object()
"""A value that cannot be read. Only a Filter that reads no value applies to it."""


@dataclass(frozen=True, slots=True)
class ReadValues:
    """The values of a batch, one for each row, and the function that writes a changed one.

    `texts`: what a value is written as that no transform changes; None if such values are written, too. `reasons`: why
    values are UNREADABLE, by row; the converter rejects those without a reason. The others are those of `Converted`.
    """

    values: list[object]
    write: Callable[[object], bytes]
    texts: list[bytes | None] | None = None
    reasons: dict[int, str] = field(default_factory=dict)
    unresolved: list[tuple[int, str]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    dropped_properties: int = 0


class DecodedValues:
    """Decodes values with the schema of a registry or of the manifest. `converter` reads them as whole values."""

    def __init__(self, converter: RegisteredConverter, envelopes: EnvelopeValues | None = None) -> None:
        self.converter = converter
        self._envelopes = envelopes or EnvelopeValues(complete_schema_text)

    def with_table(self, table: SchemaTable) -> DecodedValues:
        """The same with the schemas of `table`."""
        return DecodedValues(self.converter.with_table(table), self._envelopes)

    def read(self, payload: pa.BinaryArray, source: BatchSource) -> ReadValues:
        """The values of a batch. Those from the first unresolved schema id on are UNREADABLE."""
        found = self.converter.convert(payload, source)
        assert found.schemas is not None, "whole values have a schema"
        values: list[object] = []
        schemas, is_null = found.schemas.schemas, payload.is_null().to_pylist()
        for row, (code, value) in enumerate(zip(found.schemas.codes.tolist(), found.fields[WHOLE], strict=True)):
            values.append(TypedValue(schemas[code], value) if code >= 0 else None if is_null[row] else UNREADABLE)
        reasons = dict(found.rejected)
        for row in reasons:
            values[row] = UNREADABLE
        return ReadValues(
            values,
            self._envelopes.write,
            None,
            reasons,
            found.unresolved,
            found.unknown,
            found.dropped_properties,
        )
