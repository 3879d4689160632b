"""Text and bytes: values without structure."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType
from sink_job.converters import converter_for
from sink_job.converters.bytes import BytesConverter
from sink_job.converters.text import TextConverter
from sink_job.partitioning.field_values import MISSING


def test_text_has_to_be_utf8() -> None:
    found = TextConverter().convert(pa.array(["ä".encode(), b"\xff", b"", None], pa.binary()))
    assert found.values.to_pylist() == ["ä".encode(), b"", b"", b""]
    assert found.rejected == [(1, "the value is not UTF-8 (byte 0)")]
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, False, False, True]


def test_bytes_may_be_anything() -> None:
    found = BytesConverter().convert(pa.array([b"\xff\x00", b"", None], pa.binary()))
    assert found.values.to_pylist() == [b"\xff\x00", b"", b""]
    assert found.rejected == []
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, False, True]


@pytest.mark.parametrize("choice", [ConverterType.TEXT, ConverterType.BYTES])
def test_values_without_structure_have_no_fields(choice: ConverterType) -> None:
    found = converter_for(choice, ("a",)).convert(pa.array([b"x", None], pa.binary()))
    assert found.fields == {"a": [MISSING, MISSING]}


def test_a_batch_without_nulls_has_no_mask() -> None:
    assert BytesConverter().convert(pa.array([b"x"], pa.binary())).nulls is None


def test_a_slice_knows_its_own_nulls() -> None:
    values = pa.array([None, b"x", None, b"y"], pa.binary())
    found = BytesConverter().convert(values.slice(1, 2))
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, True]


def test_a_converter_that_is_not_built_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="converter Avro is not built yet"):
        converter_for(ConverterType.AVRO, ())
