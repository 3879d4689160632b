"""Text and bytes: unstructured values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType
from sink_job.codecs.converters import converter_for
from sink_job.converters.base import BatchSource
from sink_job.plain.bytes import BytesConverter
from sink_job.plain.text import TextConverter
from sink_job.records.fields import MISSING

SOURCE = BatchSource("t")


def test_the_text_converter_rejects_values_that_are_not_utf8() -> None:
    found = TextConverter().convert(pa.array(["ä".encode(), b"\xff", b"", None], pa.binary()), SOURCE)
    assert found.values.to_pylist() == ["ä".encode(), b"", b"", b""]
    assert found.rejected == [(1, "the value is not UTF-8 (byte 0)")]
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, False, False, True]


def test_the_bytes_converter_accepts_every_value() -> None:
    found = BytesConverter().convert(pa.array([b"\xff\x00", b"", None], pa.binary()), SOURCE)
    assert found.values.to_pylist() == [b"\xff\x00", b"", b""]
    assert found.rejected == []
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, False, True]


@pytest.mark.parametrize("choice", [ConverterType.TEXT, ConverterType.BYTES])
def test_unstructured_values_have_no_fields(choice: ConverterType) -> None:
    found = converter_for(choice, ("a",)).convert(pa.array([b"x", None], pa.binary()), SOURCE)
    assert found.fields == {"a": [MISSING, MISSING]}


def test_a_batch_without_nulls_has_no_mask() -> None:
    assert BytesConverter().convert(pa.array([b"x"], pa.binary()), SOURCE).nulls is None


def test_the_null_mask_of_a_slice_covers_the_slice_alone() -> None:
    values = pa.array([None, b"x", None, b"y"], pa.binary())
    found = BytesConverter().convert(values.slice(1, 2), SOURCE)
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, True]


def test_the_error_for_an_unsupported_converter_names_it() -> None:
    with pytest.raises(ValueError, match="converter Avro is not supported"):
        converter_for(ConverterType.AVRO, ())
