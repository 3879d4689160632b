"""What the keys of a topic-partition show."""

from __future__ import annotations

import pytest

from sink_job.compare.compared_objects import ComparedObject, SinkPartition
from sink_job.compare.partition_keys import NO_END, PartitionKeys, Window
from sink_job.ledger.state import OffsetChecksum, RotationRange


def stored(first: int, last: int | None = None, path: str = "p", key: str = "") -> ComparedObject:
    name = key or f"t/{path}/t+0+{first}.json"
    return ComparedObject(f"{'sink' if last is not None else 'other'}/{name}", name, path, first, 1, last)


def sink(*objects: ComparedObject, start: int = 0, end: int = 20) -> SinkPartition:
    return SinkPartition(start, end, list(objects))


def kinds(keys: PartitionKeys) -> list[tuple[str, int]]:
    return [(each.type, each.offset) for each in keys.findings()]


@pytest.mark.parametrize(
    ("side", "other", "window", "expected"),
    [
        (sink(end=20), [stored(0), stored(30)], Window(), (0, 20)),
        (sink(end=20), [stored(0), stored(7)], Window(), (0, 8)),
        (sink(start=5), [stored(9)], Window(), (5, 10)),
        (sink(start=5), [stored(9)], Window(start=7, end=8), (7, 8)),
        (sink(start=5), [stored(9)], Window(start=1, end=99), (5, 10)),
        (sink(start=5), [stored(9)], Window(start=50), (50, 50)),
        (sink(end=20), [], Window(), (0, 20)),
        (None, [stored(9)], Window(), (0, 10)),
    ],
)
def test_offsets_where_both_have_arrived_are_compared(
    side: SinkPartition | None, other: list[ComparedObject], window: Window, expected: tuple[int, int]
) -> None:
    keys = PartitionKeys(side, other, window)
    assert (keys.start, keys.end) == expected


def test_an_object_takes_part_by_its_first_offset() -> None:
    keys = PartitionKeys(sink(stored(0, 9), stored(10, 19)), [stored(0), stored(10)], Window(start=1, end=11))
    assert ([o.first for o in keys.sink], [o.first for o in keys.other]) == ([10], [10])


def test_equal_keys_have_no_findings() -> None:
    assert kinds(PartitionKeys(sink(stored(0, 9), stored(10, 19)), [stored(0), stored(10)], Window())) == []


def test_each_difference_of_keys_has_its_type() -> None:
    side = SinkPartition(0, 40, [stored(0, 4), stored(5, 9, "q"), stored(12, 18)], [stored(19, 24)], {}, [], [])
    other = [stored(0), stored(5), stored(13), stored(19), stored(30)]
    assert kinds(PartitionKeys(side, other, Window())) == [
        ("ObjectMissing", 19),
        ("KeyDiffers", 5),
        ("KeyOnlyInSink", 12),
        ("KeyOnlyInOther", 13),
        ("OffsetsMissing", 30),
    ]


def test_a_damaged_object_is_a_finding_without_a_read() -> None:
    side = SinkPartition(0, 9, [stored(0, 4)], damaged={stored(0, 4).key: "it has 1 bytes, and 2 in the ledger"})
    (found,) = PartitionKeys(side, [stored(0)], Window()).findings()
    assert (found.type, found.type.exit_code) == ("ObjectDamaged", 5)


def test_offsets_that_the_sink_has_rejected_are_missing_with_the_reason() -> None:
    rotation = RotationRange("t", 0, 0, 9, OffsetChecksum(3, 0))
    side = SinkPartition(0, 9, [stored(0, 1)], [], {}, [stored(2, 4)], [rotation])
    found = list(PartitionKeys(side, [stored(0), stored(3)], Window()).findings())
    assert [each.message for each in found] == [
        "no object of the sink has this offset; the sink has rejected records around it; the ledger counts 3 offsets "
        "without a record in an object around it"
    ]


def test_an_object_that_the_ledger_does_not_list_is_marked() -> None:
    side = sink(stored(0, 4), ComparedObject("sink/x", "x", "p", 2, 1))
    (found,) = PartitionKeys(side, [stored(0), stored(9)], Window(end=5)).findings()
    assert found.message == "no object of the other begins at this offset; the ledger does not list this object"


@pytest.mark.parametrize(
    ("side", "other", "window", "expected"),
    [
        (None, [stored(0)], Window(), "the sink has copied no records of this topic-partition"),
        (sink(stored(0, 4)), [], Window(), "the other has no object of this topic-partition"),
        (
            sink(stored(5, 9), start=5),
            [stored(0), stored(5)],
            Window(),
            "1 object of the other begins before the sink's start offset 5",
        ),
        (
            sink(stored(0, 4), stored(5, 9), end=10),
            [stored(0)],
            Window(),
            "1 object of the sink begins at or after 1: the other has not arrived there",
        ),
        (
            sink(stored(0, 4), end=5),
            [stored(0), stored(5)],
            Window(),
            "1 object of the other begins at or after 5: the sink has not arrived there",
        ),
        (
            sink(stored(2, 4), stored(5, 9), end=10),
            [stored(1), stored(5)],
            Window(),
            "5 is the first offset at which both begin an object: --from 5 compares from there",
        ),
    ],
)
def test_what_did_not_take_part_is_a_note(
    side: SinkPartition | None, other: list[ComparedObject], window: Window, expected: str
) -> None:
    assert list(PartitionKeys(side, other, window).notes()) == [expected]


def test_objects_outside_the_chosen_offsets_are_no_note() -> None:
    keys = PartitionKeys(sink(stored(0, 4), stored(5, 9), end=10), [stored(0), stored(5)], Window(end=5))
    assert list(keys.notes()) == []
    assert keys.end < NO_END
