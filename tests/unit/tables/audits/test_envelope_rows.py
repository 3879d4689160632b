"""The topic, partition and offset of the rows of a file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.audits.envelope_rows import EnvelopeIds, EnvelopeRows, RowBatch
from tests.support.memory_s3 import MemoryS3
from tests.unit.tables.parquet_objects import column, parquet

IDS = EnvelopeIds(topic=5, partition=6, offset=7)


def read(content: bytes | None) -> list[RowBatch]:
    s3: Any = MemoryS3()
    if content is not None:
        s3.put("f", content)
    return list(EnvelopeRows(IDS, "log").read(s3, "f"))


def test_rows_are_read_by_the_ids_of_their_columns_and_counted_if_they_are_of_others() -> None:
    fields = [column(7, "place", pa.int64()), column(9, "x", pa.string()), column(5, "t", pa.string())]
    values: dict[str, list[Any]] = {
        "place": [3, 1, 2, None, 4, 5],
        "x": ["a"] * 6,
        "t": ["log", "log", "other", "log", None, "log"],
        "p": [0, 1, 0, 0, 0, None],
    }
    (batch,) = read(parquet([*fields, column(6, "p", pa.int32())], values))
    assert (batch.partitions.tolist(), batch.offsets.tolist()) == ([0, 1], [3, 1])
    assert (batch.foreign, batch.without) == (1, 3)


def test_a_file_without_a_column_has_rows_without_an_envelope() -> None:
    (batch,) = read(parquet([column(7, "offset", pa.int64())], {"offset": [1, 2]}))
    assert (len(batch.offsets), batch.without) == (0, 2)


def test_a_file_without_field_ids_is_read_by_names() -> None:
    fields = [pa.field("offset", pa.int64()), pa.field("topic", pa.string()), pa.field("partition", pa.int32())]
    (batch,) = read(parquet(fields, {"offset": [1], "topic": ["log"], "partition": [2]}))
    assert (batch.partitions.tolist(), batch.offsets.tolist()) == ([2], [1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("a", 5), ("b", 6), ("c", 7), ("d", 7)], "several columns with the field id 7"),
        ([("a", 5), ("b", 6), ("b", 7)], "several columns with the name b"),
    ],
)
def test_a_file_with_a_column_twice_is_an_error(fields: list[tuple[str, int]], message: str) -> None:
    """Readers differ in which one they read."""
    schema = pa.schema([column(number, name, pa.int64()) for name, number in fields])
    stream = pa.BufferOutputStream()
    pq.write_table(pa.table([[1]] * len(fields), schema=schema), stream)
    with pytest.raises(TableNotRegistered, match=message):
        read(stream.getvalue().to_pybytes())


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read: .*no such object"), (b"PAR1xx", "is not a valid Parquet file")]
)
def test_a_file_that_cannot_be_read_is_an_error(content: bytes | None, message: str) -> None:
    with pytest.raises(TableNotRegistered, match=message):
        read(content)
