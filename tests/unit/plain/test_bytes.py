"""Bytes: every value passes unchanged."""

from __future__ import annotations

import pyarrow as pa

from sink_job.converters.base import BatchSource
from sink_job.plain.bytes import BytesConverter
from sink_job.records.fields import MISSING

SOURCE = BatchSource("t")


def test_the_bytes_converter_accepts_every_value() -> None:
    found = BytesConverter().convert(pa.array([b"\xff\x00", b"", None], pa.binary()), SOURCE)
    assert found.values.to_pylist() == [b"\xff\x00", b"", b""]
    assert found.rejected == []
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, False, True]


def test_every_field_is_missing_also_the_whole_value() -> None:
    found = BytesConverter(("a", "")).convert(pa.array([b"x", None], pa.binary()), SOURCE)
    assert found.fields == {"a": [MISSING, MISSING], "": [MISSING, MISSING]}


def test_a_batch_without_nulls_has_no_mask() -> None:
    assert BytesConverter().convert(pa.array([b"x"], pa.binary()), SOURCE).nulls is None
