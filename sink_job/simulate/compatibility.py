"""`spec.schemaCompatibility` in a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sink_job.api.enums import SchemaCompatibility, SchemaNamePosition
from sink_job.arrow.arrays import Mask
from sink_job.connect.compatibility import closes, rejection
from sink_job.connect.schema import Schema, schema_id
from sink_job.converters.base import BatchSource, Converted, SchemaColumn, ValueConverter
from sink_job.envelope.null_records import NULL_RECORD, WrittenNulls
from sink_job.records.batch import ANY_SCHEMA, NO_SCHEMA, REJECTED, NullRecords, Rows
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline, RejectedRow


class RecordSchemas:
    """The schemas of all records of a simulation, under a `spec.schemaCompatibility`. Sizes are those of the values as
    they came, also of records that are projected."""

    def __init__(self, compatibility: SchemaCompatibility, nulls: WrittenNulls | None = None) -> None:
        """`nulls`: None if records without a value are not written."""
        self._compatibility = compatibility
        self._nulls = nulls
        self._by_id: dict[str, Schema] = {}

    def _closes(self, of_object: str, of_record: str) -> bool:
        return closes(self._compatibility, self._by_id[of_object], self._by_id[of_record])

    def apply(
        self, prepared: PreparedBatch, schemas: Sequence[Schema | None], without_value: Mask
    ) -> tuple[Rows, list[RejectedRow]]:
        """The rows with the schemas of the records, and all data errors, ascending. `without_value`: a mask of the
        records without a value."""
        rows, errors = self._without_version(prepared, schemas)
        ids = [None if schema is None else schema_id(schema) for schema in schemas]
        self._by_id |= {id_: schema for id_, schema in zip(ids, schemas, strict=True) if id_ and schema}
        distinct = list(dict.fromkeys(id_ for id_ in ids if id_ is not None))
        if not distinct and self._nulls is None:
            return rows, errors
        codes: dict[str | None, int] = {None: NO_SCHEMA} | {id_: code for code, id_ in enumerate(distinct)}
        schema_codes = np.array([codes[id_] for id_ in ids], np.int32)
        check = self._closes if self._compatibility.projects else None
        nulls: NullRecords | None = None
        if self._nulls is not None and self._nulls.follow:
            schema_codes[without_value], nulls = ANY_SCHEMA, NullRecords(NO_SCHEMA, 0)
        elif self._nulls is not None:
            schema_codes[without_value] = len(distinct)
            distinct.append(schema_id(NULL_RECORD))
            self._by_id[distinct[-1]] = NULL_RECORD
        return replace(rows, schemas=schema_codes, schema_ids=distinct, nulls=nulls, closes=check), errors

    def _without_version(
        self, prepared: PreparedBatch, schemas: Sequence[Schema | None]
    ) -> tuple[Rows, list[RejectedRow]]:
        """Rejects the accepted records whose schema needs a version and has none."""
        rows, codes = prepared.rows, prepared.rows.codes.copy()
        errors = list(prepared.errors)
        for row, schema in enumerate(schemas):
            reason = rejection(self._compatibility, schema)
            if reason is not None and codes[row] >= 0:
                codes[row] = REJECTED
                errors.append(RejectedRow(row, int(rows.offsets[row]), reason))
        return replace(rows, codes=codes), sorted(errors)


def with_schemas(pipeline: RecordPipeline, schemas: Sequence[Schema | None]) -> RecordPipeline:
    """The pipeline for a batch whose records have these schemas, if paths contain their names."""
    if pipeline.partitioner.schema_name is SchemaNamePosition.NONE:
        return pipeline
    return replace(pipeline, converter=_WithSchemas(pipeline.converter, schemas))


@dataclass(frozen=True, slots=True)
class _WithSchemas:
    """Adds the schemas of one batch to what `converter` returns."""

    converter: ValueConverter
    schemas: Sequence[Schema | None]

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        distinct = list(dict.fromkeys(each for each in self.schemas if each is not None))
        codes = {None: NO_SCHEMA} | {each: code for code, each in enumerate(distinct)}
        column = SchemaColumn(np.array([codes[each] for each in self.schemas], np.int32), distinct)
        return replace(self.converter.convert(values, source), schemas=column)
