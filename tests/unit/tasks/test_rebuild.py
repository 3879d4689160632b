"""What to read for a rebuild, and what missing records mean."""

from __future__ import annotations

import pytest

from sink_job.ledger.state import ClosedObject, OffsetChecksum, OpenObject
from sink_job.rotation.types import OpenObjectState
from sink_job.tasks.rebuild import MissingRecords, RebuildInput, RebuildResult, all_missing


def closed(first: int, last: int, count: int = 1) -> ClosedObject:
    return ClosedObject(
        f"k{first}", "t", 0, f"closed{first}", first, last, 1, 1, "u", (), (), OffsetChecksum(count, first), 1
    )


def opened(first: int, last: int, count: int = 1) -> OpenObject:
    state = OpenObjectState(f"open{first}", first, last, count, 1, 0)
    return OpenObject(state, 1, OffsetChecksum(count, first))


def test_the_range_covers_the_closed_and_the_open_objects() -> None:
    both = RebuildInput(closed=(closed(5, 9), closed(3, 4)), open=(opened(2, 7), opened(8, 12)))
    assert both.offset_range() == (2, 13)
    assert RebuildInput(closed=(closed(5, 5),)).offset_range() == (5, 6)
    assert RebuildInput(open=(opened(6, 7),)).offset_range() == (6, 8)


def test_all_records_of_every_object_are_missing() -> None:
    found = all_missing(RebuildInput(closed=(closed(1, 5, 3),), open=(opened(7, 8, 2),)))
    assert found == RebuildResult(
        missing=(
            MissingRecords("closed1", 1, 5, OffsetChecksum(), OffsetChecksum(3, 1), absent=3),
            MissingRecords("open7", 7, 8, OffsetChecksum(), OffsetChecksum(2, 7), absent=2),
        )
    )
    assert all(each.is_loss and each.is_incomplete for each in found.missing)


def missing(found: int, expected: int, *, returned: int = 0, absent: int = 0, rules: bool = False) -> MissingRecords:
    other = ("babel 1 and 2",) if rules else ()
    return MissingRecords(
        "p", 0, 9, OffsetChecksum(found, 1), OffsetChecksum(expected, 2), returned, absent, other_rules=other
    )


@pytest.mark.parametrize(("found", "incomplete"), [(2, True), (3, False), (4, False)])
def test_an_object_is_incomplete_with_fewer_records_than_expected(found: int, incomplete: bool) -> None:
    assert missing(found, 3).is_incomplete is incomplete


@pytest.mark.parametrize(
    ("case", "is_loss"),
    [
        (missing(1, 3, absent=2), True),
        (missing(1, 3, absent=5), True),
        (missing(1, 3, absent=1), False),  # one lacking record was returned and not selected
        (missing(3, 3, absent=5), False),
        (missing(4, 3, absent=5), False),
        (missing(1, 3, returned=4, absent=2), True),
        (missing(0, 3, returned=4, absent=3, rules=True), False),  # other libraries may have selected others
        (missing(0, 3, returned=0, absent=3, rules=True), True),
    ],
)
def test_records_are_lost_if_kafka_returned_none_of_the_lacking_ones(case: MissingRecords, is_loss: bool) -> None:
    assert case.is_loss is is_loss
