"""Values and the transforms of a section, for tests."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.connect.errors import InvalidValue
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.factory import transform_of
from sink_job.transforms.json_values import json_text
from sink_job.transforms.transform_list import TransformedBatch, TransformList

TP = TopicPartition("flights", 3)
ORIGIN = RecordOrigin("flights", 3, 7, 1_700_000_000_123)


def result(value: str | None, origin: RecordOrigin = ORIGIN, **spec: Any) -> str | None:
    """The JSON text that the transform makes of a text; None for a tombstone."""
    transform = transform_of(TransformSpec.model_validate(spec))
    assert transform is not None
    found = transform.transform(None if value is None else msgspec.Raw(value.encode()), origin)
    return None if found is None else json_text(found).decode()


def reason(value: str | None, **spec: Any) -> str:
    """Why the transform rejects a value."""
    with pytest.raises(InvalidValue) as raised:
        result(value, **spec)
    return str(raised.value)


def batch(*values: bytes | None, headers: list[list[str]] | None = None, start: int = 0) -> pa.RecordBatch:
    """Records of one batch; `headers` are the names of their headers."""
    names = headers or [[] for _ in values]
    pairs = [[{"key": name, "value": b""} for name in each] for each in names]
    return pa.record_batch(
        {
            "offset": arrow_columns.integers(np.arange(start, start + len(values), dtype=np.int64)),
            "value": arrow_columns.binaries(list(values)),
            "timestamp": arrow_columns.integers(np.full(len(values), -1, np.int64)),
            "headers": pa.array(pairs, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
    )


def applied(given: pa.RecordBatch, *specs: dict[str, Any]) -> TransformedBatch:
    return TransformList([TransformSpec.model_validate(each) for each in specs]).apply(given, TP)


def values(found: TransformedBatch) -> list[bytes | None]:
    column: list[bytes | None] = found.batch.column("value").to_pylist()
    return column
