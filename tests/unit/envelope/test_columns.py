"""Longs of Avro column-wise."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from sink_job.arrow.varints import encode_long
from sink_job.envelope.columns import longs


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)))
@example([n for exponent in range(64) for n in (2**exponent - 1, -(2**exponent))])
@example([])
def test_longs_by_column_are_those_that_are_encoded_one_by_one(values: list[int]) -> None:
    assert longs(np.array(values, np.int64)).to_pylist() == [encode_long(value) for value in values]
