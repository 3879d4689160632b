"""Packs come back as the records that went into them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.spark.columnar_batch import iter_batches
from tests.support.columnar_batches import Read, rows

A, B = TopicPartition("t", 0), TopicPartition("ü", 1)

values = st.none() | st.binary(max_size=12)
headers = st.lists(st.tuples(st.text(max_size=3), values), max_size=3)
columns = st.fixed_dictionaries({name: st.booleans() for name in ("timestamp", "key", "headers")})


def packs_of(tp: TopicPartition) -> st.SearchStrategy[list[Read]]:
    record = st.builds(Read, st.just(tp), st.integers(0, 2**40), values, st.integers(-1, 2**42), values, headers)
    return st.lists(record, min_size=1, max_size=10)


def plain(record: Read, asked: dict[str, bool]) -> dict[str, Any]:
    pairs = [{"key": name, "value": value} for name, value in record.headers] or None
    every = {"timestamp": record.timestamp, "key": record.key, "headers": pairs}
    return {"offset": record.offset, "value": record.value, **{name: every[name] for name in asked if asked[name]}}


@given(st.lists(st.sampled_from([A, B]).flatmap(packs_of), min_size=1, max_size=4), columns, st.booleans())
def test_any_records_come_back_with_the_columns_that_were_asked_for(
    packs: list[list[Read]], asked: dict[str, bool], garbage: bool
) -> None:
    unpacked = list(iter_batches(rows(*packs, **asked, garbage=garbage)))
    for pack in unpacked:
        pack.records.validate(full=True)
    assert [pack.tp for pack in unpacked] == [pack[0].tp for pack in packs]
    assert [pack.records.to_pylist() for pack in unpacked] == [[plain(r, asked) for r in pack] for pack in packs]


def test_columns_have_the_types_of_the_seam() -> None:
    [pack] = iter_batches(rows([Read(A, 0, None, headers=[("h", b"1")])], timestamp=True, key=True, headers=True))
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    assert pack.records.schema == pa.schema(
        [
            ("offset", pa.int64()),
            ("value", pa.binary()),
            ("timestamp", pa.int64()),
            ("key", pa.binary()),
            ("headers", pairs),
        ]
    )


def test_values_are_not_copied() -> None:
    batch = rows([Read(A, 0, b"x" * 100), Read(A, 1, b"y" * 100)])
    [pack] = iter_batches(batch)
    assert pack.records["value"].buffers()[2].address == batch["value_bytes"].buffers()[2].address


def test_numbers_that_lie_askew_are_read_all_the_same() -> None:
    batch = rows(*[[Read(A, offset, b"x" * offset)] for offset in range(1, 4)])
    column = batch["offsets"]
    shifted = pa.py_buffer(b"\0" + column.buffers()[2].to_pybytes())
    askew = pa.Array.from_buffers(pa.binary(), 3, [None, column.buffers()[1], shifted.slice(1)])
    batch = batch.set_column(batch.schema.get_field_index("offsets"), "offsets", askew)
    assert [pack.records["offset"].to_pylist() for pack in iter_batches(batch)] == [[1], [2], [3]]
