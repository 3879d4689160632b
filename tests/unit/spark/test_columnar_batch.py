"""Columnar batches are read as the records that were written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.spark.columnar_batch import iter_batches
from tests.support.columnar_batches import ConsumedRecord, batch_rows

A, B = TopicPartition("t", 0), TopicPartition("ü", 1)

values = st.none() | st.binary(max_size=12)
headers = st.lists(st.tuples(st.text(max_size=3), values), max_size=3)
columns = st.fixed_dictionaries({name: st.booleans() for name in ("timestamp", "key", "headers", "timestamp_type")})


def batches_of(tp: TopicPartition) -> st.SearchStrategy[list[ConsumedRecord]]:
    record = st.builds(
        ConsumedRecord,
        st.just(tp),
        st.integers(0, 2**40),
        values,
        st.integers(-1, 2**42),
        values,
        headers,
        st.integers(-1, 1),
    )
    return st.lists(record, min_size=1, max_size=10)


def plain(record: ConsumedRecord, requested: dict[str, bool]) -> dict[str, Any]:
    pairs = [{"key": name, "value": value} for name, value in record.headers] or None
    every = {
        "timestamp": record.timestamp,
        "key": record.key,
        "headers": pairs,
        "timestamp_type": record.timestamp_type,
    }
    return {
        "offset": record.offset,
        "value": record.value,
        **{name: every[name] for name in requested if requested[name]},
    }


@given(st.lists(st.sampled_from([A, B]).flatmap(batches_of), min_size=1, max_size=4), columns, st.booleans())
def test_records_are_read_with_the_requested_columns(
    written: list[list[ConsumedRecord]], requested: dict[str, bool], garbage: bool
) -> None:
    read = list(iter_batches(batch_rows(*written, **requested, garbage=garbage)))
    for batch in read:
        batch.records.validate(full=True)
    assert [batch.tp for batch in read] == [batch[0].tp for batch in written]
    assert [batch.records.to_pylist() for batch in read] == [[plain(r, requested) for r in batch] for batch in written]


def test_columns_have_the_types_of_the_engines_interface() -> None:
    [batch] = iter_batches(
        batch_rows(
            [ConsumedRecord(A, 0, None, headers=[("h", b"1")])],
            timestamp=True,
            key=True,
            headers=True,
            timestamp_type=True,
        )
    )
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    assert batch.records.schema == pa.schema(
        [
            ("offset", pa.int64()),
            ("value", pa.binary()),
            ("timestamp", pa.int64()),
            ("key", pa.binary()),
            ("headers", pairs),
            ("timestamp_type", pa.int8()),
        ]
    )


def test_values_are_not_copied() -> None:
    written = batch_rows([ConsumedRecord(A, 0, b"x" * 100), ConsumedRecord(A, 1, b"y" * 100)])
    [batch] = iter_batches(written)
    assert batch.records["value"].buffers()[2].address == written["value_bytes"].buffers()[2].address


def test_numbers_at_unaligned_addresses_are_read() -> None:
    written = batch_rows(*[[ConsumedRecord(A, offset, b"x" * offset)] for offset in range(1, 4)])
    column = written["offsets"]
    shifted = pa.py_buffer(b"\0" + column.buffers()[2].to_pybytes())
    unaligned = pa.Array.from_buffers(pa.binary(), 3, [None, column.buffers()[1], shifted.slice(1)])
    written = written.set_column(written.schema.get_field_index("offsets"), "offsets", unaligned)
    assert [batch.records["offset"].to_pylist() for batch in iter_batches(written)] == [[1], [2], [3]]
