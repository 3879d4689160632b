"""The path clock: rounds whose clocks give the same time path are recorded as one offset range, and the members chosen
by the recorded ranges and clocks are the records that the rounds wrote (P2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.api.spec import ObjectSettings
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.state import SourceRange
from sink_job.writer.row_selection import clock_ranges, group_by_id, select_rows
from tests.unit.rotation.settings import object_settings
from tests.unit.writer.one_partition import TP, OnePartition, batches

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOON = 1_698_494_400_000  # 2023-10-28T12:00:00Z: the evening after it, Berlin repeats an hour


def expect_members(one: OnePartition, values: Sequence[bytes]) -> None:
    """Each object's records are found again by its path, offset ranges and clocks alone, in whatever batches."""
    found: dict[int, list[int]] = {id(o): [] for o in one.objects}
    for batch in batches(0, values):
        offsets = batch.column("offset").to_pylist()
        for clock in clock_ranges(one.objects, offsets[0], offsets[-1]):
            rows = one.pipeline.prepare(batch, clock, TP).rows
            for o, indices in select_rows(group_by_id(one.objects), rows, clock):
                found[id(o)] += rows.offsets[indices].tolist()
    for o in one.objects:
        assert checksum(np.array(found[id(o)], dtype=np.int64)) == o.offsets, (o.path, o.sources)


def by_the_clock(partitioner: dict[str, Any], rotation: dict[str, Any]) -> ObjectSettings:
    return object_settings(
        partitioner={"timestampExtractor": "Wallclock", "locale": "en", **partitioner}, rotation=rotation
    )


DAILY = by_the_clock({"type": "Daily", "timezone": "Europe/Berlin"}, {"flushSize": 1000})
HOURS_ALONE = {"type": "Time", "duration": "1h", "pathFormat": "'hour'=HH", "timezone": "Europe/Berlin"}
ONE = [b'{"kind":"a"}']


def test_rounds_of_a_day_are_one_offset_range_of_a_daily_path() -> None:
    one = OnePartition(DAILY)
    for n in range(50):
        one.round(NOON + n * 10_000, ONE)
    assert one.seen() == [(SourceRange(0, 50, NOON),)]


def test_another_day_begins_another_offset_range() -> None:
    one = OnePartition(DAILY)
    for now in (NOON, NOON + HOUR, NOON + DAY, NOON + DAY + HOUR):
        one.round(now, ONE)
    assert one.seen() == [(SourceRange(0, 2, NOON),), (SourceRange(2, 4, NOON + DAY),)]


def test_a_path_that_comes_back_is_recorded_under_another_clock() -> None:
    one = OnePartition(by_the_clock(HOURS_ALONE, {"flushSize": 1000}))
    for now in (NOON, NOON + HOUR, NOON + DAY + HOUR, NOON + DAY + HOUR + MINUTE):  # Berlin is at 14, 15, 14 h
        one.round(now, ONE)
    first = (SourceRange(0, 1, NOON), SourceRange(2, 4, NOON + DAY + HOUR))
    assert one.seen() == [first, (SourceRange(1, 2, NOON + HOUR),)]


def test_an_object_that_a_round_closes_and_one_that_follows_it_share_no_record() -> None:
    one = OnePartition(by_the_clock({"type": "Daily", "timezone": "UTC"}, {"flushSize": 3}))
    one.round(NOON, ONE * 2)
    one.round(NOON + 1, ONE * 3)
    assert one.seen() == [(SourceRange(0, 3, NOON),), (SourceRange(3, 5, NOON),)]


def test_record_times_follow_the_round_clock_and_not_the_path_clock() -> None:
    one = OnePartition(by_the_clock({"type": "Daily", "timezone": "UTC"}, {"interval": "1h"}))
    one.round(NOON, ONE)
    one.round(NOON + 30 * MINUTE, ONE)
    assert one.state.rotation.last_time == NOON + 30 * MINUTE
    result = one.round(NOON + HOUR, ONE)
    assert [(o.first, o.last) for o in result.closed] == [(0, 1)]
    assert one.seen() == [(SourceRange(0, 2, NOON),), (SourceRange(2, 3, NOON),)]


def test_the_path_clock_does_not_outlive_the_settings_that_it_was_taken_under() -> None:
    one = OnePartition(by_the_clock(HOURS_ALONE, {"flushSize": 1000}))
    one.round(NOON, ONE)
    one.round(NOON + 1, [], close=True)
    one.object_settings, one.number = DAILY, 2
    one.round(NOON + 2, ONE)
    assert one.seen() == [(SourceRange(0, 1, NOON),), (SourceRange(1, 2, NOON + 2),)]


def test_without_paths_by_the_clock_there_is_no_path_clock() -> None:
    one = OnePartition(object_settings(partitioner={"type": "Field", "fields": ["kind"]}, rotation={"flushSize": 1000}))
    one.round(NOON, ONE)
    one.round(NOON + DAY, ONE)
    assert (one.state.path_clock, one.seen()) == (None, [(SourceRange(0, 2, 0),)])


def test_a_record_holds_only_the_offset_range_that_changed() -> None:
    one = OnePartition(by_the_clock(HOURS_ALONE, {"flushSize": 1000}))
    for n in range(5):
        one.round(NOON + n * DAY, ONE)
        one.round(NOON + n * DAY + HOUR, ONE)
    assert max(len(o.sources) for o in one.state.open) == 5
    one.round(NOON + 5 * DAY, ONE)
    assert [len(o.sources) for o in one.changes[-1].state.open] == [1]


# -- whatever the clocks are -----------------------------------------------------------------------------------------

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "+05:30"]
PATTERNS = ["'hour'=HH", "HH'h'mm", "EEE", "yyyy-MM-dd/HH", "hh"]
STEPS = [0, 0, 1, 10_000, 10_000, 7 * MINUTE, 29 * MINUTE, HOUR, HOUR, DAY - HOUR, DAY, DAY + HOUR]
CHANGES = [NOON, 1_698_533_400_000, 1_679_790_000_000, 1_699_160_000_000, 1_696_086_000_000, 12 * HOUR]


@st.composite
def partitioners(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["Daily", "Hourly", "Time", "FieldAndTime"]))
    found: dict[str, Any] = {"type": kind, "timezone": draw(st.sampled_from(ZONES))}
    if kind in ("Time", "FieldAndTime"):
        found |= {"duration": draw(st.sampled_from(["10m", "1h", "24h"]))}
        found |= {"pathFormat": draw(st.sampled_from(PATTERNS))}
    if kind == "FieldAndTime":
        found["fields"] = ["kind"]
    return found


@st.composite
def rotations(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {"scope": draw(st.sampled_from(["Partition", "Object"]))}
    found["flushSize"] = draw(st.sampled_from([2, 3, 7, 1000]))
    if draw(st.booleans()):
        found["interval"] = "1h"
    if draw(st.booleans()):
        found["scheduleInterval"] = "30m"
    if draw(st.booleans()):
        found["maxOpenTime"] = "40m"
    return found


def rounds_of(start: int, drawn: Iterable[tuple[int, list[bytes]]]) -> Iterator[tuple[int, list[bytes]]]:
    now = start
    for step, kinds in drawn:
        now += step
        yield now, [b'{"kind":"%s"}' % kind for kind in kinds]


@settings(max_examples=300, deadline=None)
@given(
    partitioners(),
    rotations(),
    st.sampled_from(CHANGES),
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.lists(st.sampled_from([b"a", b"b"]), max_size=5)), min_size=1, max_size=14
    ),
)
def test_members_chosen_by_recorded_ranges_and_clocks_are_the_records_that_the_rounds_wrote(
    partitioner: dict[str, Any], rotation: dict[str, Any], start: int, drawn: list[tuple[int, list[bytes]]]
) -> None:
    one = OnePartition(by_the_clock(partitioner, rotation))
    values: list[bytes] = []
    clocks: list[int] = []
    for now, more in rounds_of(start, drawn):
        values += more
        one.round(now, more)
        assert one.state.path_clock is not None
        clocks.append(one.state.path_clock)
        expect_members(one, values)
    assert clocks == sorted(clocks)


@pytest.mark.parametrize("partitioner", [HOURS_ALONE, {"type": "Daily", "timezone": "UTC"}], ids=["hours", "days"])
def test_no_two_neighbouring_ranges_of_an_object_have_the_same_clock(partitioner: dict[str, Any]) -> None:
    one = OnePartition(by_the_clock(partitioner, {"flushSize": 1000}))
    for n in range(100):
        one.round(NOON + n * 23 * MINUTE, ONE)
    for ranges in one.seen():
        clocks = [each.clock for each in ranges]
        assert clocks == sorted(set(clocks))
