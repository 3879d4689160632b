"""Divides a batch whose texts could be too large for one column of JSON texts, until a record is checked alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.connect.json_size import MAX_TEXT, TextLimit
from sink_job.converters.registered import Decoded

MAX_TEXTS: Final = 1024**3
"""The maximum bound of the length of all texts that are written together."""


def is_large(payload: pa.BinaryArray, limit: TextLimit) -> bool:
    """Whether `payload` has several rows, and the text of a row or all texts together could be too large."""
    if len(payload) < 2:
        return False
    sizes = np.diff(arrow_columns.bounds(payload))
    total = len(sizes) * limit.bound(0) + limit.bound(int(sizes.sum(dtype=np.int64)))
    return total > MAX_TEXTS or limit.bound(int(sizes.max())) > MAX_TEXT


def halved(payload: pa.BinaryArray, decode: Callable[[pa.BinaryArray], Decoded]) -> Decoded:
    """The result of `decode`, of one half after the other. Raises ColumnTooLarge."""
    half = len(payload) // 2
    first, second = decode(payload.slice(0, half)), decode(payload.slice(half))
    arrow_columns.check_bytes(sum(int(arrow_columns.bounds(each.texts)[-1]) for each in (first, second)))
    masks = [each.nulls for each in (first, second)]
    nulls = None
    if any(mask is not None for mask in masks):
        lengths = (half, len(payload) - half)
        nulls = np.concatenate(
            [np.zeros(n, np.bool_) if mask is None else mask for n, mask in zip(lengths, masks, strict=True)]
        )
    return Decoded(
        texts=pa.concat_arrays([first.texts, second.texts]),
        nulls=nulls,
        rejected=[*first.rejected, *((half + row, reason) for row, reason in second.rejected)],
        fields={name: [*values, *second.fields[name]] for name, values in first.fields.items()},
    )
