"""One object in one task: its parts, its remainder, its source ranges, and what a lost upload means."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.formats.compression import Uncompressed
from sink_job.formats.datum_rows import ConcatenatedBlocks
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.staging import StagedDataLost, StagingReader, StagingWriter
from sink_job.ledger.state import Extent, OffsetChecksum, OpenObject, Part, SourceRange
from sink_job.rotation.types import OpenObjectState
from sink_job.s3 import NoSuchUpload
from sink_job.writer.object_writer import (
    MAX_STAGED_EXTENTS,
    AppendedRows,
    ObjectWriter,
    PartUploader,
    extend_sources,
    spans,
)
from tests.support.memory_s3 import MemoryS3
from tests.unit.writer.tasks import rows_of

PART = 10
KEY = "topics/log/partition=0/log+0+0000000000.json"


class Objects:
    """The objects of a store, each of them written in several rounds."""

    def __init__(self) -> None:
        self.memory = MemoryS3()
        self.s3: Any = self.memory
        self.rounds = 0
        self.part_size = PART

    def writer(self, previous: OpenObject | None = None) -> ObjectWriter:
        return ObjectWriter(
            key=KEY,
            uploads=PartUploader(self.s3, threads=2, part_buffers=2),
            staged=StagingReader(self.s3),
            spill=SpillPool(1 << 20),
            encoder=ConcatenatedBlocks(Uncompressed()),
            part_size=self.part_size,
            previous=previous,
        )

    def round(self, previous: OpenObject | None, rows: Sequence[bytes], first: int = 0) -> OpenObject:
        """The object after a round that appends rows at the offsets from `first` on."""
        self.rounds += 1
        writer, staging = self.writer(previous), StagingWriter(self.s3, f"staging/{self.rounds}")
        if rows:
            writer.append(rows_of(rows, first))
        remainder = writer.stage(staging)
        staging.flush()
        last, count = first + len(rows) - 1, (previous.count if previous else 0) + len(rows)
        state = OpenObjectState(
            path="p", first=previous.first if previous else first, last=last, count=count, size=count, opened_at=0
        )
        return writer.to_open_object(state, settings=1, sources=writer.sources(0, ()), remainder=remainder)

    def finish(self, previous: OpenObject | None, rows: Sequence[bytes] = (), first: int = 0) -> bytes:
        """The bytes of the object when it is closed and published."""
        writer = self.writer(previous)
        if rows:
            writer.append(rows_of(rows, first))
        writer.finish()
        upload, parts = writer.result()
        assert upload is not None
        uploaded: list[Any] = [msgspec.structs.asdict(part) for part in parts]
        assert [part["number"] for part in uploaded] == list(range(1, len(parts) + 1))
        return b"".join(self.memory.uploads[upload].parts[part["number"]] for part in uploaded)


@pytest.fixture
def objects() -> Objects:
    return Objects()


# -- parts and remainders --------------------------------------------------------------------------------------------


def test_an_object_that_fills_no_part_is_staged_without_an_upload(objects: Objects) -> None:
    o = objects.round(None, [b"abc"])
    assert (o.upload, o.parts) == (None, ())
    assert objects.memory.uploads == {}
    (extent,) = o.blocks
    assert objects.memory.get(extent.name)[extent.offset : extent.offset + extent.length] == b"abc"


def test_a_part_of_whole_rows_is_sent_as_soon_as_it_is_full_and_the_rest_is_staged(objects: Objects) -> None:
    o = objects.round(None, [b"0123456", b"789ab", b"c"])
    (part,) = o.parts
    assert o.upload is not None
    assert (part.number, part.size) == (1, 12)
    assert objects.memory.uploads[o.upload].parts == {1: b"0123456789ab"}
    assert sum(extent.length for extent in o.blocks) == 1


@given(st.lists(st.lists(st.binary(min_size=1, max_size=9), max_size=5), min_size=1, max_size=6))
def test_the_bytes_of_an_object_do_not_depend_on_its_rounds(rounds: list[list[bytes]]) -> None:
    objects, o, first = Objects(), None, 0
    for rows in rounds:
        if rows or o is not None:
            o = objects.round(o, rows, first)
        first += len(rows)
    content = b"".join(row for rows in rounds for row in rows)
    if o is not None:
        assert objects.finish(o) == content


def test_an_object_without_new_rows_keeps_its_extents(objects: Objects) -> None:
    before = objects.round(None, [b"abc"])
    after = objects.round(before, [])
    assert (after.blocks, after.parts, after.offsets) == (before.blocks, before.parts, before.offsets)


def test_the_checksum_and_the_parts_continue_those_of_earlier_rounds(objects: Objects) -> None:
    o = objects.round(objects.round(None, [b"0123456789"]), [b"0123456789"], first=1)
    assert [part.number for part in o.parts] == [1, 2]
    assert o.offsets == checksum(np.arange(2, dtype=np.int64))


def test_many_staged_extents_are_compacted_into_one(objects: Objects) -> None:
    objects.part_size = 1000
    o, lengths = None, []
    for number in range(MAX_STAGED_EXTENTS + 3):
        o = objects.round(o, [b"x"], first=number)
        lengths.append(len(o.staged))
    assert max(lengths) <= MAX_STAGED_EXTENTS + 1
    assert o is not None
    assert objects.finish(o) == b"x" * (MAX_STAGED_EXTENTS + 3)


# -- what is lost ----------------------------------------------------------------------------------------------------


def open_object(**fields: Any) -> OpenObject:
    state = OpenObjectState(path="p", first=0, last=0, count=1, size=5, opened_at=0)
    return OpenObject(state, settings=1, offsets=OffsetChecksum(1, 0), **fields)


def test_an_object_whose_bytes_were_discarded_is_lost(objects: Objects) -> None:
    with pytest.raises(StagedDataLost, match=r"the bytes of s3://archive/topics/.*0000000000\.json were discarded"):
        objects.writer(open_object())


@pytest.mark.parametrize(
    "kept", [{"blocks": (Extent("staging/1", 0, 5, 0),)}, {"upload": "u", "parts": (Part(1, "e", 1, 5),)}], ids=str
)
def test_an_object_with_parts_or_staged_bytes_is_not(objects: Objects, kept: dict[str, Any]) -> None:
    assert objects.writer(open_object(**kept)).key == KEY


def test_an_upload_that_no_longer_exists_is_raised_with_the_result_and_not_before(objects: Objects) -> None:
    o = objects.round(None, [b"0123456789"])
    objects.memory.uploads.clear()
    writer = objects.writer(o)
    writer.append(rows_of([b"0123456789"], first=1))
    writer.drain()
    with pytest.raises(NoSuchUpload):
        writer.result()


def test_an_upload_of_an_earlier_round_is_not_one_that_the_task_has_started(objects: Objects) -> None:
    first = objects.writer()
    first.append(rows_of([b"0123456789"]))
    first.drain()
    assert first.started_upload is not None
    o = objects.round(None, [b"0123456789"])
    again = objects.writer(o)
    again.append(rows_of([b"0123456789"], first=1))
    again.drain()
    assert again.started_upload is None


def test_concurrent_parts_start_one_upload(objects: Objects) -> None:
    writer = objects.writer()
    writer.append(rows_of([b"0123456789"] * 5))
    writer.finish()
    upload, parts = writer.result()
    assert [*objects.memory.uploads] == [upload]
    assert len(parts) == 5


def test_no_more_parts_than_the_buffers_are_in_transfer() -> None:
    free, most, active = threading.Event(), [0], [0]
    lock = threading.Lock()
    nothing: Any = None
    uploads = PartUploader(nothing, threads=4, part_buffers=2)

    def send() -> Part:
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        free.wait(5)
        with lock:
            active[0] -= 1
        return Part(1, "e", 1, 1)

    futures = [uploads.submit(send, 1), uploads.submit(send, 1)]
    waiting = threading.Thread(target=lambda: futures.append(uploads.submit(send, 1)))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive(), "the third part waits for a buffer"
    free.set()
    waiting.join(5)
    assert [future.result().number for future in futures] == [1, 1, 1]
    assert most[0] <= 2
    assert (uploads.parts, uploads.bytes) == (3, 3)


# -- source ranges ---------------------------------------------------------------------------------------------------


def added(*batches: list[int], breaks: Sequence[int] = ()) -> AppendedRows:
    rows = AppendedRows()
    for offsets in batches:
        rows.add(np.array(offsets, np.int64), breaks)
    return rows


@pytest.mark.parametrize(
    ("batches", "breaks", "ranges"),
    [
        ([[3, 4, 7]], [], [(3, 8)]),
        ([[3, 4], [7, 9]], [], [(3, 10)]),
        ([[3, 4, 7]], [5], [(3, 5), (7, 8)]),
        ([[3, 4], [7, 9]], [5], [(3, 5), (7, 10)]),
        ([[3, 4], [7, 9]], [8], [(3, 8), (9, 10)]),
        ([[3, 4]], [0, 1, 9], [(3, 5)]),
        ([[3, 9]], [4, 5, 6], [(3, 4), (9, 10)]),
    ],
)
def test_ranges_join_batches_and_leave_out_the_breaks(
    batches: list[list[int]], breaks: list[int], ranges: list[tuple[int, int]]
) -> None:
    rows = added(*batches, breaks=breaks)
    assert rows.extend((), 7, breaks) == tuple(SourceRange(start, end, 7) for start, end in ranges)
    assert (rows.first, rows.last) == (batches[0][0], batches[-1][-1])


def test_without_rows_the_previous_ranges_stay() -> None:
    previous = (SourceRange(0, 3, 5),)
    assert AppendedRows().extend(previous, 9, ()) == previous
    assert AppendedRows().first is None


@pytest.mark.parametrize(
    ("clock", "breaks", "ranges"),
    [
        (5, [], [(0, 9, 5)]),
        (6, [], [(0, 3, 5), (4, 9, 6)]),
        (5, [3], [(0, 3, 5), (4, 9, 5)]),
    ],
    ids=["the same clock", "another clock", "a break between them"],
)
def test_a_range_is_extended_under_the_same_clock_and_not_over_a_break(
    clock: int, breaks: list[int], ranges: list[tuple[int, int, int]]
) -> None:
    found = extend_sources((SourceRange(0, 3, 5),), 4, 9, clock, breaks)
    assert found == tuple(SourceRange(*each) for each in ranges)


def test_a_source_range_extends_over_other_rejected_and_missing_records() -> None:
    assert extend_sources((SourceRange(0, 2, 0),), 5, 9, 0, [1, 20]) == (SourceRange(0, 9, 0),)


@given(st.sets(st.integers(0, 30), min_size=1), st.sets(st.integers(0, 30)))
def test_spans_contain_all_offsets_and_no_break(offsets: set[int], breaks: set[int]) -> None:
    offsets -= breaks
    if not offsets:
        return
    found = list(spans(np.array(sorted(offsets), np.int64), sorted(breaks)))
    covered = [offset for start, end in found for offset in range(start, end)]
    assert covered == sorted(set(covered))
    assert offsets <= set(covered)
    assert not breaks & set(covered)
    assert all(start in offsets and end - 1 in offsets for start, end in found)
