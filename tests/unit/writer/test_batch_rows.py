"""The rows of a batch under the schemas of their records and of other objects."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType
from sink_job.connect.schema import Schema, SchemaType
from sink_job.converters.base import BatchSource, Converted
from sink_job.json.converter import JsonConverter
from sink_job.json.lines import JsonLines
from sink_job.writer.batch_rows import BatchRows

BATCH = pa.record_batch({"value": pa.array([b"1", b"2", b"3"], pa.binary())})
HEADERS = pa.array(
    [[], [{"key": "h", "value": b"x"}], []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
)
TARGET = Schema(SchemaType.STRING, name="target")


class Projecting(JsonConverter):
    """Projects a value to the name of the target, the value, and the number of its headers."""

    def project(self, values: pa.BinaryArray, source: BatchSource, target: Schema) -> pa.BinaryArray:
        assert source.headers is not None
        found = zip(values.to_pylist(), source.headers.to_pylist(), strict=True)
        return pa.array([b"%b %b %d" % (str(target.name).encode(), value, len(of)) for value, of in found], pa.binary())


def rows(converted: Converted, converter: JsonConverter | None = None) -> BatchRows:
    source, lines = BatchSource("t", HEADERS), JsonLines(ConverterType.JSON)
    return BatchRows(BATCH, source, converted, converter or Projecting(), lines)


@pytest.mark.parametrize(
    ("converted", "expected"),
    [
        (Converted(BATCH.column("value")), [b"1\n", b"2\n", b"3\n"]),
        (Converted(BATCH.column("value"), lines=pa.array([b"a", b"b", b"c"])), [b"a", b"b", b"c"]),
        (Converted(BATCH.column("value"), rows=pa.array([b"a", b"b", b"c"])), [b"a", b"b", b"c"]),
    ],
    ids=["values", "lines that the converter has", "rows that the converter has"],
)
def test_rows_are_the_values_in_the_form_of_the_output(converted: Converted, expected: list[bytes]) -> None:
    assert rows(converted).encoded().to_pylist() == expected


def test_projected_rows_are_those_of_the_converter_with_their_headers() -> None:
    found = rows(Converted(BATCH.column("value"))).projected(np.array([1, 2]), TARGET)
    assert found.to_pylist() == [b"target 2 1\n", b"target 3 0\n"]


def test_a_converter_that_cannot_project_is_a_fault_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="the spec rejects converters that cannot project"):
        rows(Converted(BATCH.column("value")), JsonConverter()).projected(np.array([1]), TARGET)
