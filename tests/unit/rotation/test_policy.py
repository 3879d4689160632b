"""The rotation policy of a manifest, and the state of a topic-partition while objects open, grow and close."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.units.s3_limits import MAX_PARTS
from sink_job.partitioning.time_zones import HOUR, zone
from sink_job.rotation.policy import MAX_PARTS_BEFORE_CLOSE, RotationContext, RotationPolicy
from sink_job.rotation.schedule import Schedule
from sink_job.rotation.types import Close, ObjectId, OpenObjectState, RotationState
from tests.unit.rotation.settings import object_settings

MI = 1 << 20


def policy(rotation: dict[str, Any] | None = None, **sections: Any) -> RotationPolicy:
    return RotationPolicy.of(object_settings(rotation=rotation, **sections))


def test_settings_that_are_not_given_are_off() -> None:
    found = policy({"flushSize": 5})
    assert (found.flush_size, found.interval, found.schedule, found.max_open_time) == (5, None, None, None)
    assert (found.per_object, found.separate) == (False, False)


@pytest.mark.parametrize(
    ("max_bytes", "expected"),
    [
        (None, 9_900 * 5 * MI),
        (7 * MI, 7 * MI),
        (9_900 * 5 * MI, 9_900 * 5 * MI),
        (9_901 * 5 * MI, 9_900 * 5 * MI),
    ],
)
def test_an_object_closes_before_it_has_too_many_parts(max_bytes: int | None, expected: int) -> None:
    assert MAX_PARTS_BEFORE_CLOSE == MAX_PARTS * 99 // 100
    rotation = {"maxBytes": max_bytes} if max_bytes else {"flushSize": 5}
    assert policy(rotation, s3={"partSize": 5 * MI}).max_bytes == expected


@pytest.mark.parametrize(("timezone", "expected"), [(None, "UTC"), ("Europe/Berlin", "Europe/Berlin")])
def test_the_schedule_has_the_time_zone_of_the_partitioner(timezone: str | None, expected: str) -> None:
    partitioner = {"type": "Hourly", "timezone": timezone} if timezone else None
    assert policy({"scheduleInterval": "1h"}, partitioner=partitioner).schedule == Schedule(zone(expected), HOUR)


def test_the_scope_object_and_separate_are_of_the_policy() -> None:
    assert policy({"flushSize": 5, "scope": "Object"}).per_object


HOURLY = RotationPolicy(schedule=Schedule(zone("UTC"), HOUR))


def context(
    settings: RotationPolicy | None = None, *objects: OpenObjectState, now: int = 50, next_schedule: int | None = None
) -> RotationContext:
    open_records = sum(each.count for each in objects)
    state = RotationState(next=9, committable=2, open_records=open_records, next_schedule=next_schedule)
    return RotationContext(settings or RotationPolicy(), state, objects, now)


def open_object(path: str, first: int, last: int, schema: str | None = None) -> OpenObjectState:
    count = last - first + 1
    return OpenObjectState(path=path, first=first, last=last, count=count, size=count, opened_at=7, schema=schema)


@pytest.mark.parametrize(
    ("settings", "next_schedule", "due"),
    [(HOURLY, 49, True), (HOURLY, 50, True), (HOURLY, 51, False), (HOURLY, None, False), (RotationPolicy(), 49, False)],
)
def test_the_schedule_is_due_from_its_next_point_on(
    settings: RotationPolicy, next_schedule: int | None, due: bool
) -> None:
    assert context(settings, next_schedule=next_schedule).due == due


@pytest.mark.parametrize(("settings", "point"), [(HOURLY, HOUR), (RotationPolicy(), 40)])
def test_a_renewed_schedule_has_the_first_point_after_now(settings: RotationPolicy, point: int) -> None:
    renewed = context(settings, next_schedule=40)
    renewed.renew_schedule()
    assert renewed.state.next_schedule == point


def test_records_open_an_object_at_the_round_clock() -> None:
    rotation = context(now=50)
    assert rotation.add(ObjectId("a", "s1"), first=5, last=8, count=3, size=30) == ObjectId("a", "s1")
    assert list(rotation.open.values()) == [
        OpenObjectState(path="a", schema="s1", first=5, last=8, count=3, size=30, opened_at=50)
    ]
    assert rotation.state.open_records == 3


@pytest.mark.parametrize(
    ("separate", "ids"),
    [(False, [ObjectId("a", "s1")]), (True, [ObjectId("a", "s1"), ObjectId("a", "s2")])],
)
def test_a_path_has_one_object_or_with_separate_one_for_each_schema(separate: bool, ids: list[ObjectId]) -> None:
    rotation = context(RotationPolicy(separate=separate), open_object("a", 2, 4, "s1"))
    assert rotation.add(ObjectId("a", "s2"), first=5, last=8, count=4, size=40) == ids[-1]
    assert [each.id for each in rotation.open.values()] == ids
    assert sum(each.count for each in rotation.open.values()) == rotation.state.open_records == 7


def test_an_object_that_grows_keeps_its_first_offset_and_its_time() -> None:
    rotation = context(None, open_object("a", 2, 4))
    rotation.add(ObjectId("a"), first=6, last=8, count=2, size=20)
    (grown,) = rotation.open.values()
    assert (grown.first, grown.last, grown.count, grown.size, grown.opened_at) == (2, 8, 5, 23, 7)


def test_a_close_leaves_the_other_objects_and_the_committable_offset() -> None:
    a, b = open_object("a", 2, 4), open_object("b", 5, 6)
    rotation = context(None, a, b)
    assert rotation.close([a]) == Close((a,))
    assert list(rotation.open.values()) == [b]
    assert (rotation.state.open_records, rotation.state.committable) == (2, 2)


def test_closing_all_moves_the_committable_offset_after_the_last_record() -> None:
    a, b = open_object("a", 2, 7), open_object("b", 5, 6)
    rotation = context(None, a, b)
    assert rotation.close_all() == Close((a, b))
    assert (rotation.open, rotation.state.open_records, rotation.state.committable) == ({}, 0, 8)
    assert rotation.state.interval_start is None


@pytest.mark.parametrize(
    ("per_object", "objects", "committable"),
    [
        (False, (), 9),
        (True, (), 9),
        (False, (open_object("a", 5, 6),), 2),
        (True, (open_object("a", 5, 6), open_object("b", 4, 7)), 4),
    ],
)
def test_the_committable_offset_is_the_first_that_is_in_no_closed_object(
    per_object: bool, objects: tuple[OpenObjectState, ...], committable: int
) -> None:
    assert context(RotationPolicy(per_object=per_object), *objects).committable == committable
