"""The interface of a converter, its result, and helpers of converters for unstructured values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.partitioning import arrow_columns
from sink_job.partitioning.field_values import MISSING, Rejections

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Converted:
    """The converted values of a batch.

    `values`: the bytes for the format, one per row, none of them null. A null or rejected row has an undefined value.
    `nulls`: a mask of the rows without a value; None if every row has one.
    `rejected`: (row, reason) of each rejected row, ascending.
    `fields`: for each requested field one value per row, MISSING where the record lacks the field.
    `lines`: each value followed by a newline, if the converter has computed that; else None.
    """

    values: pa.BinaryArray
    nulls: Mask | None = None
    rejected: Rejections = field(default_factory=list)
    fields: dict[str, list[object]] = field(default_factory=dict)
    lines: pa.BinaryArray | None = None


class ValueConverter(Protocol):
    """Converts the values of a batch."""

    def convert(self, values: pa.BinaryArray) -> Converted:
        """Converts `values`. A null is a Kafka tombstone."""
        ...


def null_mask(values: pa.BinaryArray) -> Mask | None:
    """A mask of the null rows; None if there are none."""
    return arrow_columns.truths(values.is_null()) if values.null_count else None


def no_fields(fields: tuple[str, ...], n: int) -> dict[str, list[object]]:
    """The fields of `n` unstructured values: MISSING in every row."""
    return {name: [MISSING] * n for name in fields}
