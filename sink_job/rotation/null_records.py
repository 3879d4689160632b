"""The schemas of records without a value (`errors.onNullValue: Write`).

Such a record has no schema of its own, and must not close the objects of the records around it. So it counts as one
with the schema of the last record with a value, also of an earlier round: `RotationState.last_schema`. It neither
depends on how the records are divided into batches and rounds, nor on which objects are open.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sink_job.arrow.arrays import Codes
from sink_job.records.batch import ANY_SCHEMA, NO_SCHEMA, Rows


def with_schemas_of_nulls(rows: Rows, last_schema: str | None) -> tuple[Rows, str | None]:
    """The rows without ANY_SCHEMA, and the schema of the last accepted record with a value. `last_schema`: that of the
    batches before; None if there is no such record, or it has no schema."""
    nulls, schemas = rows.nulls, rows.schemas
    if nulls is None or schemas is None:
        return rows, last_schema
    has_value = (rows.codes >= 0) & (schemas != ANY_SCHEMA) & (schemas != nulls.schema)
    if nulls.schema == NO_SCHEMA:
        has_value |= (rows.codes >= 0) & (schemas == NO_SCHEMA)
    previous = np.maximum.accumulate(np.where(has_value, np.arange(len(rows)), -1))
    of_batch = int(schemas[previous[-1]]) if previous[-1] >= 0 else None
    after = last_schema if of_batch is None else rows.schema_ids[of_batch] if of_batch != NO_SCHEMA else None
    without = schemas == ANY_SCHEMA
    if not without.any():
        return rows, after
    ids, before = rows.schema_ids, nulls.schema
    if last_schema is not None:
        ids = ids if last_schema in ids else [*ids, last_schema]
        before = ids.index(last_schema)
    filled: Codes = np.where(previous >= 0, schemas[previous], np.int32(before)).astype(np.int32)
    sizes = rows.sizes
    if sizes is not None and nulls.size:
        sizes = sizes + np.where(without & (filled != nulls.schema), nulls.size, 0)
    return replace(rows, schemas=np.where(without, filled, schemas), schema_ids=ids, sizes=sizes), after
