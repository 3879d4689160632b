"""Sizes of records that are projected to the schema of their object, for scope Partition.

The size of a record is known only when its object is: the batch is measured segment by segment.
"""

from __future__ import annotations

import numpy as np

from sink_job.arrow.arrays import Codes, Integers, Mask
from sink_job.rotation.policy import RotationContext
from sink_job.rotation.row_index import AcceptedRows, first_true
from sink_job.rotation.schema_rules import SchemaSearch


class ProjectedSizes:
    """Measures the records of a batch with several schemas, and searches for maxBytes."""

    def __init__(self, rotation: RotationContext, accepted: AcceptedRows, schemas: SchemaSearch) -> None:
        assert accepted.sizes is not None, "projected records have sizes"
        self._limit = rotation.settings.max_bytes
        self._accepted = accepted
        self._schemas = schemas
        self._sizes: Integers = accepted.sizes.copy()
        self._held = np.zeros(accepted.code_count, np.int64)
        for code, slot in accepted.codes_of(rotation.open):
            self._held[code] = rotation.open[slot].size

    @classmethod
    def of(cls, rotation: RotationContext, accepted: AcceptedRows, schemas: SchemaSearch) -> ProjectedSizes | None:
        """None if the size of a record does not depend on its object."""
        if not accepted.is_projected or accepted.sizes is None or schemas.is_uniform:
            return None
        return cls(rotation, accepted, schemas)

    def filled(self, start: int, end: int) -> int:
        """The first index in the segment [start, end) with which an object reaches maxBytes, else `end`. Sets the sizes
        of the records up to it in `AcceptedRows.sizes`."""
        filled = first_true(start, end, self._measure)
        self._accepted.sizes = self._sizes
        return filled

    def _measure(self, start: int, end: int) -> Mask:
        sizes = self._schemas.sizes(start, end)
        self._sizes[start:end] = sizes
        codes = self._accepted.codes[start:end]
        so_far = _sums_by_code(codes, sizes) + self._held[codes]
        np.maximum.at(self._held, codes, so_far)
        return np.zeros(end - start, np.bool_) if self._limit is None else so_far >= self._limit

    def close_all(self) -> None:
        """All objects are closed before the next search."""
        self._held[:] = 0


def _sums_by_code(codes: Codes, sizes: Integers) -> Integers:
    """For each record the sum of the sizes of the records with its code up to and including it."""
    order = np.argsort(codes, kind="stable")
    ordered, sums = codes[order], np.cumsum(sizes[order])
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    before = np.concatenate(([0], sums[starts[1:] - 1]))
    so_far = np.empty(len(codes), np.int64)
    so_far[order] = sums - np.repeat(before, np.diff(np.append(starts, len(codes))))
    return so_far
