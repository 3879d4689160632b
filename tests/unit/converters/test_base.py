"""What all converters of unstructured values share."""

from __future__ import annotations

import pyarrow as pa

from sink_job.converters.base import no_fields, null_mask
from sink_job.records.fields import MISSING


def test_the_null_mask_marks_the_nulls() -> None:
    found = null_mask(pa.array([None, b"", b"x", None], pa.binary()))
    assert found is not None
    assert found.tolist() == [True, False, False, True]


def test_a_column_without_nulls_has_no_mask() -> None:
    assert null_mask(pa.array([b"", b"x"], pa.binary())) is None
    assert null_mask(pa.array([], pa.binary())) is None


def test_the_null_mask_of_a_slice_covers_the_slice_alone() -> None:
    found = null_mask(pa.array([None, b"x", None, b"y"], pa.binary()).slice(1, 2))
    assert found is not None
    assert found.tolist() == [False, True]


def test_an_unstructured_value_lacks_every_field() -> None:
    assert no_fields(("a", "b.c"), 2) == {"a": [MISSING, MISSING], "b.c": [MISSING, MISSING]}
    assert no_fields((), 2) == {}
