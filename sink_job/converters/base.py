"""What every converter gives, and what the ones without structure share."""

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
    """A batch's values, read.

    `values` are the bytes for the format, without nulls (without meaning where a row is null or refused). `nulls`
    tells the rows that have no value, None when there are none. `refused` are (row, what is wrong), ascending.
    `fields` hold a value per row for each name asked for, MISSING where the record lacks it. `lines` are the values
    with a newline behind each, when the converter had to make them anyway.
    """

    values: pa.BinaryArray
    nulls: Mask | None = None
    rejected: Rejections = field(default_factory=list)
    fields: dict[str, list[object]] = field(default_factory=dict)
    lines: pa.BinaryArray | None = None


class ValueConverter(Protocol):
    """Reads the values of a batch."""

    def convert(self, values: pa.BinaryArray) -> Converted:
        """`values` may hold nulls: Kafka's tombstones."""
        ...


def null_mask(values: pa.BinaryArray) -> Mask | None:
    """Which rows are null; None when none is."""
    return arrow_columns.truths(values.is_null()) if values.null_count else None


def no_fields(fields: tuple[str, ...], n: int) -> dict[str, list[object]]:
    """The fields of values that have none."""
    return {name: [MISSING] * n for name in fields}
