"""Records that are written under the schema of their object: `spec.schemaCompatibility` Backward, Full and Forward.

The schema of an object is that of its first record. The records of other schemas are projected to it. Sizes are needed
before the rotation has decided, and bytes after it; a row is projected once for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sink_job.api.enums import SchemaCompatibility
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Codes, Indices, Integers, Mask
from sink_job.connect import compatibility
from sink_job.connect.limits import deeper
from sink_job.connect.projection import can_project
from sink_job.connect.schema import Schema, schema_id
from sink_job.converters.base import SchemaColumn
from sink_job.envelope.null_records import is_null_record
from sink_job.records.batch import ANY_SCHEMA, NO_SCHEMA
from sink_job.records.fields import Rejections
from sink_job.writer.schema_stores import ObjectSchemaStore

MAX_SCHEMAS_TOGETHER: Final = 8
"""Maximum number of schemas of a batch whose rows are projected together."""


Project = Callable[[Indices, Schema], pa.BinaryArray]
"""(rows of a batch, schema) -> these rows, encoded under the schema."""


@dataclass(frozen=True)
class ProjectionRules:
    """A value of `spec.schemaCompatibility` that projects. `store` has the schemas of the objects that were opened
    before a batch."""

    mode: SchemaCompatibility
    store: ObjectSchemaStore

    def rejections(self, schemas: SchemaColumn, skip: Mask) -> Rejections:
        """The rows that are data errors because of their schema, without the rows of the mask `skip`."""
        reasons = [compatibility.rejection(self.mode, each) for each in schemas.schemas]
        invalid = [code for code, reason in enumerate(reasons) if reason is not None]
        rows = np.flatnonzero(np.isin(schemas.codes, invalid) & ~skip)
        return [(row, str(reasons[schemas.codes[row]])) for row in rows.tolist()]

    def batch(self, schemas: SchemaColumn, skip: Mask, project: Project, prefix_bytes: int = 0) -> BatchProjection:
        """The projection of a batch with these schemas, without the rows of the mask `skip`. `prefix_bytes`: see
        `RowEncoder`."""
        return BatchProjection(self, schemas, skip, project, prefix_bytes)


class BatchProjection:
    """Writes the rows of a batch under the schemas of objects. Projects each row once for each of these schemas."""

    def __init__(
        self, rules: ProjectionRules, schemas: SchemaColumn, skip: Mask, project: Project, prefix_bytes: int
    ) -> None:
        self.ids = [schema_id(each) for each in schemas.schemas]
        self.schemas = dict(zip(self.ids, schemas.schemas, strict=True))
        """The schemas of the batch by their ids."""
        self._rules = rules
        self._codes: Codes = np.where(skip, np.int32(NO_SCHEMA), schemas.codes)
        self._project = project
        self._prefix_bytes = prefix_bytes
        self._targets: dict[str, _ProjectedRows] = {}

    def closes(self, open_schema: str, record: str) -> bool:
        """Whether a record of the batch closes an open object; both are ids of schemas."""
        of_object, of_record = self._schema(open_schema), self._schema(record)
        if open_schema != record and (is_null_record(of_object) or is_null_record(of_record)):
            return True  # an envelope can be projected to one without a value, which would lose the value
        return compatibility.closes(self._rules.mode, of_object, of_record)

    def sizes(self, target: str, rows: Indices) -> Integers:
        """The encoded sizes of `rows` under the schema with the id `target`, in bytes."""
        return np.diff(arrow_columns.bounds(self.encoded(target, rows))).astype(np.int64) + self._prefix_bytes

    def encoded(self, target: str, rows: Indices) -> pa.BinaryArray:
        """`rows`, which have another schema than `target`, encoded under it."""
        if target not in self._targets:
            self._targets[target] = _ProjectedRows(len(self._codes))
        projected = self._targets[target]
        missing = projected.missing(rows)
        if len(missing):
            missing = projected.missing(self._all_of_their_schemas(missing))
            with deeper():
                projected.add(missing, self._project(missing, self._schema(target)))
        return projected.take(rows)

    def _all_of_their_schemas(self, rows: Indices) -> Indices:
        """All rows of the batch with the schemas of `rows`, if there are few schemas: objects with a few rows each are
        projected together."""
        if len(self.ids) > MAX_SCHEMAS_TOGETHER:
            return rows
        return np.flatnonzero(np.isin(self._codes, np.unique(self._codes[rows])))

    def replace(self, encoded: pa.BinaryArray, targets: Sequence[tuple[str | None, slice | Indices]]) -> pa.BinaryArray:
        """The rows of the batch, `encoded` under their own schemas, each under the schema of its target: the id of the
        object's schema, and rows of the object. Other rows are unchanged, and so are rows that cannot be projected:
        the rotation puts none of them into the object, but Kafka may hold other records by now."""
        source, parts, end = np.arange(len(encoded)), [encoded], len(encoded)
        for target, chosen in targets:
            rows = self._to_project(target, chosen)
            if target is not None and len(rows):
                source[rows] = end + np.arange(len(rows))
                end += len(rows)
                parts.append(self.encoded(target, rows))
        return encoded if len(parts) == 1 else pa.concat_arrays(parts).take(arrow_columns.integers(source))

    def _to_project(self, target: str | None, chosen: slice | Indices) -> Indices:
        """The rows of `chosen` that have another schema than `target`, which can be projected to it."""
        rows = np.arange(*chosen.indices(len(self._codes))) if isinstance(chosen, slice) else chosen
        distinct = np.unique(self._codes[rows]).tolist()
        others = [code for code in distinct if target is not None and self._is_projectable(code, target)]
        return rows[np.isin(self._codes[rows], others)]

    def _is_projectable(self, code: int, target: str) -> bool:
        if code == ANY_SCHEMA:
            return True
        if code == NO_SCHEMA or self.ids[code] == target or is_null_record(self._schema(target)):
            return False
        return can_project(self.schemas[self.ids[code]], self._schema(target)) is None

    def _schema(self, target: str) -> Schema:
        return self.schemas.get(target) or self._rules.store.find(target)


class _ProjectedRows:
    """Rows of a batch of `size` rows, encoded under one schema."""

    def __init__(self, size: int) -> None:
        self._position: Integers = np.full(size, -1, np.int64)
        self._encoded: pa.BinaryArray = arrow_columns.binaries([])

    def missing(self, rows: Indices) -> Indices:
        return rows[self._position[rows] < 0]

    def add(self, rows: Indices, encoded: pa.BinaryArray) -> None:
        self._position[rows] = len(self._encoded) + np.arange(len(rows))
        self._encoded = pa.concat_arrays([self._encoded, encoded])

    def take(self, rows: Indices) -> pa.BinaryArray:
        return self._encoded.take(arrow_columns.integers(self._position[rows]))
