"""The rows of a converted batch: as they are under the schemas of their records, and under those of other objects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Indices
from sink_job.connect.schema import Schema
from sink_job.converters.base import BatchSource, Converted, ValueConverter
from sink_job.converters.projection import ProjectingConverter
from sink_job.formats.base import RowEncoder
from sink_job.json.lines import JsonLines

if TYPE_CHECKING:
    from sink_job.envelope.envelope import Envelopes


@dataclass(frozen=True)
class BatchRows:
    """A batch of `source`, with its `converted` values. With `envelopes`, `heads` are what rows have before their
    values."""

    batch: pa.RecordBatch
    source: BatchSource
    converted: Converted
    converter: ValueConverter
    format: RowEncoder
    envelopes: Envelopes | None = None
    heads: pa.BinaryArray | None = None

    def encoded(self) -> pa.BinaryArray:
        """All rows, each under the schema of its record."""
        converted = self.converted
        if self.envelopes is not None and self.heads is not None:
            return self.envelopes.rows(self.heads, self.envelopes.values(converted))
        if converted.rows is not None:
            return converted.rows
        if converted.lines is not None and isinstance(self.format, JsonLines):
            return converted.lines
        return self.format.encode(converted.values)

    def projected(self, rows: Indices, target: Schema) -> pa.BinaryArray:
        """`rows` under the schema `target` of an object, to which all of them can be projected. A row without a value
        stays one."""
        if self.envelopes is None or self.heads is None:
            return self.format.encode(self._values(rows, target))
        nulls, values = self.converted.nulls, arrow_columns.binaries([])
        without = None if nulls is None else nulls[rows]
        with_value = rows if without is None else rows[~without]
        if len(with_value):
            of_value = self.envelopes.of_value(target)
            assert of_value is not None, "no record with a value is projected to the schema of those without one"
            values = self._values(with_value, of_value)
        values = self.envelopes.projected_values(values, without, target)
        return self.envelopes.rows(self.heads.take(arrow_columns.integers(rows)), values)

    def _values(self, rows: Indices, target: Schema) -> pa.BinaryArray:
        """The values of `rows` under the schema `target`."""
        assert isinstance(self.converter, ProjectingConverter), "the spec rejects converters that cannot project"
        chosen = arrow_columns.integers(rows)
        headers = None if self.source.headers is None else self.source.headers.take(chosen)
        source = replace(self.source, headers=headers)
        return self.converter.project(self.batch.column("value").take(chosen), source, target)
