"""The records of a batch as rows of an object of another writer.

A row of JSON or Bytes is what this sink would write. A row of Avro or Parquet is its canonical value: the records are
written as this sink would do it and read again, so both sides are read by the same code.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sink_job.api.enums import OutputFormat
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Indices
from sink_job.connect.projection import can_project
from sink_job.formats.block_rows import BlockRows
from sink_job.rotation.types import ObjectId
from sink_job.verify.rows.container_rows import ContainerRows
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline


class RecordRows:
    """The accepted records of a batch, under the schemas of objects. Each is written once for each of these schemas."""

    def __init__(self, pipeline: RecordPipeline, topic: str, prepared: PreparedBatch) -> None:
        self._pipeline = pipeline
        self._topic = topic
        self._prepared = prepared
        self._rows: Indices = np.flatnonzero(prepared.rows.codes >= 0)
        self._values: dict[str | None, Mapping[int, bytes]] = {}

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The row and the offset of each accepted record."""
        yield from zip(self._rows.tolist(), self._prepared.rows.offsets[self._rows].tolist(), strict=True)

    def schema_id(self, row: int) -> str | None:
        """The id of the schema of a record; None for one without a schema."""
        codes = self._prepared.rows.schemas
        return None if codes is None or codes[row] < 0 else self._prepared.rows.schema_ids[codes[row]]

    def value(self, row: int, of_object: str | None) -> bytes | None:
        """The row of a record in an object whose first record has the schema `of_object`; None if it cannot be in such
        an object."""
        target = self._target(row, of_object)
        if target not in self._values:
            self._values[target] = self._under(target)
        return self._values[target].get(row)

    def _target(self, row: int, of_object: str | None) -> str | None:
        """The schema under which the record is written: that of the object where records are projected."""
        return self.schema_id(row) if self._pipeline.projection is None else of_object

    def _under(self, target: str | None) -> Mapping[int, bytes]:
        """The rows of the records that can be written under the schema `target`."""
        rows, encoded = self._rows, self._prepared.encoded
        if target is not None:
            self._pipeline.keep_schemas(self._topic, [ObjectId("", target)], self._prepared.schemas)
            rows = rows[[self._fits(row, target) for row in rows.tolist()]]
            if (projection := self._prepared.projection) is not None:
                encoded = projection.replace(encoded, [(target, rows)])
        chosen = encoded.take(arrow_columns.integers(rows))
        values = chosen.to_pylist() if target is None or self._is_plain else self._canonical(target, chosen)
        return dict(zip(rows.tolist(), values, strict=True))

    @property
    def _is_plain(self) -> bool:
        return self._pipeline.containers is None

    def _fits(self, row: int, target: str) -> bool:
        own = self.schema_id(row)
        if own is None or own == target:
            return own == target
        if self._pipeline.projection is None:
            return False
        of_object = self._prepared.schemas.get(target) or self._pipeline.stores.objects.find(target)
        return can_project(self._prepared.schemas[own], of_object) is None

    def _canonical(self, target: str, datums: pa.BinaryArray) -> Sequence[bytes]:
        """The canonical values of rows under the schema `target`."""
        if not len(datums):
            return []
        encoder = self._pipeline.object_encoder("", self._topic, target)
        header = encoder.header()
        block = encoder.block(BlockRows.of(datums), len(header))
        content = header + block.data + encoder.footer([block.index])
        is_avro = self._pipeline.object_settings.format.output is OutputFormat.AVRO
        read = (
            ContainerRows.of_avro(io.BytesIO(content)) if is_avro else ContainerRows.of_parquet(pa.py_buffer(content))
        )
        return [value for batch in read.batches for value in batch]
