"""A batch taken apart: each choice of rows gives its bytes, ends, offsets and tally, views or copies alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.offset_checksum import checksum
from sink_job.records.batch import Rows
from sink_job.writer.record_pipeline import PreparedBatch
from sink_job.writer.row_slices import RowSelection, row_slices


def prepared(values: list[bytes], lead: int) -> PreparedBatch:
    """A batch of these rows; `lead` rows stand before them in the same buffers."""
    in_wire_format = pa.array([b"before"] * lead + values, pa.binary())[lead:]
    offsets = np.arange(len(values), dtype=np.int64) * 3 + 10
    rows = Rows(offsets=offsets, codes=np.zeros(len(values), np.int32), paths=["p"])
    return PreparedBatch(rows=rows, encoded=in_wire_format, errors=[], ignored=0)


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[bytes], int, list[RowSelection]]:
    values = draw(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=30))
    made: list[RowSelection] = []
    for _ in range(draw(st.integers(1, 5))):
        if draw(st.booleans()):
            start = draw(st.integers(0, len(values) - 1))
            made.append(RowSelection(None, slice(start, draw(st.integers(start + 1, len(values))))))
        else:
            rows = draw(st.sets(st.integers(0, len(values) - 1), min_size=1))
            made.append(RowSelection(None, np.array(sorted(rows), np.intp)))
    return values, draw(st.integers(0, 3)), made


@given(choices())
def test_each_choice_gives_its_rows_and_nothing_else(given: tuple[list[bytes], int, list[RowSelection]]) -> None:
    values, lead, made = given
    batch = prepared(values, lead)
    for (_, chosen), row_slice in zip(made, row_slices(batch, made), strict=True):
        rows = list(range(len(values)))[chosen] if isinstance(chosen, slice) else chosen.tolist()
        starts = [0, *row_slice.ends.tolist()]
        assert [bytes(row_slice.data[a:b]) for a, b in pairwise(starts)] == [values[n] for n in rows]
        assert row_slice.offsets.tolist() == batch.rows.offsets[rows].tolist()
        assert row_slice.checksum == checksum(batch.rows.offsets[rows])
