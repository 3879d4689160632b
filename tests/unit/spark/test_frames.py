"""Frames are read as the records that were written, whatever the sizes in which a socket delivers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.engine.types import Columns
from sink_job.spark.conf import SOCKET_DIR_LENGTH
from sink_job.spark.frames import FrameReader, RangeBatch, ReadError, socket_path, socket_prefix
from tests.support.frames import VALUES, ConsumedRecord, end, error, frame, reader_of

ALL = Columns(timestamp=True, key=True, headers=True, timestamp_type=True)
RECORDS = [ConsumedRecord(7, b"abc"), ConsumedRecord(9, b"d")]

values = st.none() | st.binary(max_size=12)
headers = st.lists(st.tuples(st.text(max_size=3), values), max_size=3)
columns = st.builds(Columns, *[st.booleans()] * 4, st.sampled_from([b"", b"\n", b"\r\n"]))
records = st.builds(
    ConsumedRecord, st.integers(0, 2**40), values, st.integers(-1, 2**42), values, headers, st.integers(-1, 1)
)


def batches(sent: bytes, columns: Columns = VALUES, *, chunk: int = 1 << 20) -> list[RangeBatch]:
    with reader_of(sent, columns, chunk=chunk) as reader:
        return list(iter(reader.next, None))


def plain(record: ConsumedRecord, columns: Columns) -> dict[str, Any]:
    every = {
        "timestamp": record.timestamp,
        "key": record.key,
        "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
        "timestamp_type": record.timestamp_type,
    }
    return {
        "offset": record.offset,
        **(
            {"row": record.value if record.value is None else record.value + columns.separator}
            if columns.separator
            else {"value": record.value}
        ),
        **{name: every[name] for name in every if getattr(columns, name)},
    }


@given(st.lists(st.lists(records, min_size=1, max_size=10), max_size=4), columns, st.sampled_from([13, 128, 1 << 20]))
def test_records_are_read_with_the_requested_columns(
    written: list[list[ConsumedRecord]], columns: Columns, chunk: int
) -> None:
    sent = b"".join(frame(number, each, columns) for number, each in enumerate(written))
    read = batches(sent + end(), columns, chunk=chunk)
    for batch in read:
        batch.records.validate(full=True)
    assert [batch.number for batch in read] == list(range(len(written)))
    assert [batch.records.to_pylist() for batch in read] == [[plain(r, columns) for r in batch] for batch in written]


def test_columns_have_the_types_of_the_engines_interface() -> None:
    [batch] = batches(frame(0, [ConsumedRecord(0, None, headers=[("h", b"1")])], ALL) + end(), ALL)
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


def test_columns_are_views_of_the_received_buffer() -> None:
    written = [ConsumedRecord(number, b"x" * 999) for number in range(100)]
    before = pa.total_allocated_bytes()
    [batch] = batches(frame(0, written) + end())
    assert pa.total_allocated_bytes() - before < 1.1 * batch.records.nbytes
    offsets, value = (batch.records[name].buffers() for name in ("offset", "value"))
    size_of_bounds = (101 * 4 + 7) // 8 * 8
    assert value[1].address - offsets[1].address == 100 * 8
    assert value[2].address - value[1].address == size_of_bounds


def test_values_of_any_size_leave_the_next_columns_aligned() -> None:
    for size in range(17):
        [batch] = batches(frame(0, [ConsumedRecord(1, b"x" * size, timestamp=5, key=b"k")], ALL) + end(), ALL)
        assert batch.records["timestamp"].buffers()[1].address % 8 == 0
        assert batch.records.to_pylist()[0]["timestamp"] == 5


def test_a_batch_stays_valid_after_the_next_one() -> None:
    first, second = batches(frame(0, RECORDS) + frame(1, [ConsumedRecord(1, b"zzz")]) + end())
    assert first.records["value"].to_pylist() == [b"abc", b"d"]
    assert second.records["value"].to_pylist() == [b"zzz"]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, len(frame(0, RECORDS)) - 1, len(frame(0, RECORDS))])
def test_a_reader_that_ends_before_the_end_frame_is_an_error(size: int) -> None:
    with pytest.raises(ReadError, match="has ended before it has sent all records"):
        batches(frame(0, RECORDS)[:size])


def test_an_error_of_the_reader_follows_the_records_before_it() -> None:
    sent = frame(0, RECORDS) + error("a-b-1 7 20\norg.x.Outer: cannot\njava.io.Inner: since: disk")
    with reader_of(sent) as reader:
        assert reader.next() is not None
        with pytest.raises(ReadError) as caught:
            reader.next()
    assert str(caught.value).split("\n") == [
        "the range from offset 7 of partition a-b-1 cannot be read",
        "Caused by: org.x.Outer: cannot",
        "Caused by: java.io.Inner: since: disk",
    ]


def test_an_error_that_may_be_about_any_of_several_ranges_has_no_place() -> None:
    with pytest.raises(ReadError) as caught:
        batches(error("\norg.x.Outer: cannot"))
    assert str(caught.value).split("\n") == [
        "ranges that are fetched together cannot be read",
        "Caused by: org.x.Outer: cannot",
    ]


def test_a_missing_socket_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FrameReader(socket_path(str(tmp_path / "s3sink"), 3), Columns())


def test_the_path_of_a_socket_has_the_number_of_the_attempt() -> None:
    assert socket_path("/work/s3sink-abc", 3) == Path("/work/s3sink-abc-3.sock")


def test_the_path_of_a_socket_fits_into_the_limit_of_the_operating_system() -> None:
    directory = "/" + "x" * (SOCKET_DIR_LENGTH - 1)
    path = socket_path(socket_prefix(directory), 2**63 - 1)
    assert path.parent == Path(directory)
    assert len(bytes(path)) <= 107
