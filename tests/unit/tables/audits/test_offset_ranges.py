"""Ranges of offsets whose objects do not overlap with others."""

from __future__ import annotations

import msgspec
import numpy as np

from sink_job.ledger.state import ClosedObject, OffsetChecksum
from sink_job.tables.audits.offset_ranges import OffsetComponent, OffsetRanges
from tests.unit.tables.parquet_objects import listed


def closed(partition: int, first: int, last: int, count: int, hashed: int = 0) -> ClosedObject:
    o = listed("k", b"", count)
    place = {"partition": partition, "first": first, "last": last, "offsets": OffsetChecksum(count, hashed)}
    return msgspec.structs.replace(o, **place)


def ranges(*objects: tuple[ClosedObject, bool]) -> OffsetRanges:
    found = OffsetRanges()
    for o, is_own in objects:
        found.add(o, is_own=is_own)
    return found


def test_objects_that_overlap_are_one_component() -> None:
    found = ranges(
        (closed(1, 10, 19, 10, 3), False),
        (closed(0, 20, 29, 4, 5), False),
        (closed(0, 0, 9, 5, 2**64 - 1), False),
        (closed(0, 4, 12, 4, 7), True),
        (closed(0, 8, 15, 6, 9), False),
    ).components()
    assert [found[number] for number in range(len(found))] == [
        OffsetComponent(0, 0, 16, OffsetChecksum(11, 8), 15, 1),
        OffsetComponent(0, 20, 30, OffsetChecksum(4, 5), 4, 0),
        OffsetComponent(1, 10, 20, OffsetChecksum(10, 3), 10, 0),
    ]
    assert [found[number].is_dense for number in range(3)] == [False, False, True]


def test_a_record_is_in_the_component_with_its_offset() -> None:
    found = ranges((closed(0, 0, 9, 10), False), (closed(0, 20, 29, 10), True), (closed(3, 5, 6, 2), False))
    records = [(0, -1), (0, 0), (0, 9), (0, 10), (0, 20), (0, 30), (3, 4), (3, 6), (1, 5), (9, 5)]
    partitions, offsets = (np.array([each[at] for each in records]) for at in (0, 1))
    assert found.components().of(partitions, offsets).tolist() == [-1, 0, 0, -1, 1, -1, -1, 2, -1, -1]


def test_no_objects_have_no_components() -> None:
    found = OffsetRanges().components()
    assert (len(found), found.of(np.array([0]), np.array([1])).tolist()) == (0, [-1])
