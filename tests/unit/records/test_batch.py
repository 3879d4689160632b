"""Parts of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from sink_job.arrow.arrays import Indices, Integers
from sink_job.records.batch import NO_SCHEMA, REJECTED, Rows


def asked_rows(schema: str, rows: Indices) -> Integers:
    """The rows that are asked for, as their sizes."""
    return rows * 10


BATCH = Rows(
    offsets=np.array([5, 7, 8, 11]),
    codes=np.array([0, REJECTED, 1, 0], np.int32),
    paths=["a", "b"],
    times=np.array([50, 70, 80, 110]),
    sizes=np.array([1, 2, 3, 4]),
    schemas=np.array([0, NO_SCHEMA, 1, 0], np.int32),
    schema_ids=["s", "t"],
    closes=lambda before, now: before != now,
    projected_sizes=asked_rows,
)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (2, 2), (3, 4)])
def test_a_part_has_these_rows_of_every_column(start: int, end: int) -> None:
    part = BATCH.between(start, end)
    assert len(part) == end - start
    assert part.offsets.tolist() == [5, 7, 8, 11][start:end]
    assert part.codes.tolist() == [0, REJECTED, 1, 0][start:end]
    assert part.times is not None
    assert part.times.tolist() == [50, 70, 80, 110][start:end]
    assert part.sizes is not None
    assert part.sizes.tolist() == [1, 2, 3, 4][start:end]
    assert part.schemas is not None
    assert part.schemas.tolist() == [0, NO_SCHEMA, 1, 0][start:end]


def test_the_codes_of_a_part_mean_the_paths_and_schemas_of_the_batch() -> None:
    part = BATCH.between(2, 3)
    assert (part.paths, part.schema_ids, part.closes) == (["a", "b"], ["s", "t"], BATCH.closes)


def test_the_projected_sizes_of_a_part_are_those_of_its_rows_also_in_a_part_of_it() -> None:
    part = BATCH.between(1, 4)
    assert part.projected_sizes is not None
    assert part.projected_sizes("s", np.array([0, 2])).tolist() == [10, 30]
    inner = part.between(1, 3)
    assert inner.projected_sizes is not None
    assert inner.projected_sizes("s", np.array([0, 1])).tolist() == [20, 30]


def test_a_batch_without_optional_columns_has_parts_without_them() -> None:
    part = Rows(offsets=np.array([1, 2]), codes=np.array([0, 0], np.int32), paths=["a"]).between(1, 2)
    assert (part.times, part.sizes, part.schemas, part.closes, part.projected_sizes) == (None,) * 5
