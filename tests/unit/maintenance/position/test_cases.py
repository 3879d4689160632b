"""Where a topic-partition starts after another writer, case by case."""

from __future__ import annotations

import re

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.maintenance.position.cases import (
    Case,
    FoundObject,
    PartitionFacts,
    PartitionPosition,
    compared_from,
    decide,
    to_compare,
)
from sink_job.verify.previous.previous_objects import ObjectEnd

TP = TopicPartition("log", 0)


def facts(committed: int | None, *firsts: int, begin: int = 0, end: int = 100) -> PartitionFacts:
    objects = tuple(FoundObject(f"k{first}", first, 5, f"e{first}") for first in firsts)
    return PartitionFacts(TP, committed, begin, end, objects)


def equal(first: int, last: int) -> ObjectEnd:
    return ObjectEnd(f"k{first}", "Equal", last, last - first + 1)


def different(first: int, last: int = -1) -> ObjectEnd:
    return ObjectEnd(f"k{first}", "Different", last, message="it differs")


def decided(
    found: PartitionFacts, *compared: ObjectEnd, reason: str | None = None, start_at_objects: bool = False
) -> PartitionPosition:
    return decide(found, compared, reason=reason, start_at_objects=start_at_objects)


@pytest.mark.parametrize(
    ("found", "compared", "case", "start", "after"),
    [
        pytest.param(facts(None), (), Case.NEW, None, None, id="nothing"),
        pytest.param(facts(20), (), Case.COMMITTED, 20, None, id="no object"),
        pytest.param(facts(20, 0, 10), (equal(10, 19),), Case.COMMITTED, 20, 20, id="objects before it"),
        pytest.param(facts(20, 0, 10), (), Case.COMMITTED, 20, None, id="older objects that Kafka no longer holds"),
        pytest.param(facts(20, 10), (different(10, 12),), Case.COMMITTED, 20, None, id="an older object was changed"),
        pytest.param(facts(20, 10), (different(10, 19),), Case.DIFFERENT, None, None, id="it reaches beyond it"),
        pytest.param(
            facts(20, 10), (ObjectEnd("k10", "Different", 12, 3, "x", 10),), Case.COMMITTED, 20, None, id="ten rows"
        ),
        pytest.param(
            facts(20, 10),
            (ObjectEnd("k10", "Different", 12, 3, "x", 11),),
            Case.DIFFERENT,
            None,
            None,
            id="too many rows",
        ),
        pytest.param(facts(15, 10), (equal(10, 19),), Case.ACCEPTED, 20, 20, id="inside of an object"),
        pytest.param(facts(20, 10, 20), (equal(10, 19), equal(20, 25)), Case.ACCEPTED, 26, 26, id="one object at it"),
        pytest.param(facts(20, 20, 30), (equal(20, 29), equal(30, 31)), Case.ACCEPTED, 32, 32, id="two objects"),
        pytest.param(facts(20, 20, 30), (equal(20, 29), different(30)), Case.DIFFERENT, None, None, id="one differs"),
        pytest.param(facts(20, 20), (ObjectEnd("k20", "Incomplete", 99, 80),), Case.DIFFERENT, None, None, id="more"),
        pytest.param(facts(20, 20, begin=30), (), Case.NOT_COMPARED, None, None, id="deleted in Kafka"),
        pytest.param(facts(None, 0, 10), (equal(10, 14),), Case.FORGOTTEN, None, 15, id="no offset"),
        pytest.param(facts(None, 10), (different(10),), Case.FORGOTTEN, None, None, id="no offset, and it differs"),
        pytest.param(facts(101, 0), (), Case.AHEAD, None, None, id="behind the log"),
        pytest.param(facts(5, begin=30), (), Case.COMMITTED, 5, None, id="the log begins later"),
    ],
)
def test_the_case_of_a_topic_partition(
    found: PartitionFacts, compared: tuple[ObjectEnd, ...], case: Case, start: int | None, after: int | None
) -> None:
    result = decided(found, *compared)
    assert (result.case, result.start, result.after_objects) == (case, start, after)
    assert bool(result.accepted) == (case is Case.ACCEPTED)
    assert bool(result.message) or case.starts


def test_with_start_at_objects_the_newest_object_is_accepted() -> None:
    result = decided(facts(None, 0, 10), equal(10, 14), start_at_objects=True)
    assert (result.case, result.start) == (Case.AFTER_OBJECTS, 15)
    assert [(o.key, o.first, o.last, o.records, o.bytes, o.etag) for o in result.accepted] == [
        ("k10", 10, 14, 5, 5, "e10")
    ]


def test_start_at_objects_does_not_accept_an_object_that_differs() -> None:
    assert decided(facts(None, 10), different(10), start_at_objects=True).case is Case.FORGOTTEN


def test_the_reason_why_nothing_can_be_compared_is_named() -> None:
    result = decided(facts(20, 20), reason="with partitioner Time they interleave")
    assert result.case is Case.NOT_COMPARED
    assert result.message == "k20: with partitioner Time they interleave"


def test_the_objects_beyond_the_offset_and_the_one_before_it_are_compared() -> None:
    found = facts(20, 0, 10, 20, 30)
    objects = to_compare(found)
    assert objects is not None
    assert [(o.key, o.is_required) for o in objects.objects] == [("k10", False), ("k20", True), ("k30", True)]
    assert compared_from(found, objects) == 10


def test_records_before_the_first_object_are_read() -> None:
    found = facts(20, 30, begin=5)
    objects = to_compare(found)
    assert objects is not None
    assert (objects.committed, compared_from(found, objects)) == (20, 5)


def test_records_before_the_offset_are_read_without_any_object() -> None:
    found = facts(20, begin=5)
    objects = to_compare(found)
    assert objects is not None
    assert (objects.objects, objects.committed, compared_from(found, objects)) == ((), 20, 5)


def test_an_older_object_of_which_kafka_has_a_part_is_read_for_the_number_of_its_records() -> None:
    found = facts(20, 10, begin=15)
    objects = to_compare(found)
    assert objects is not None
    assert ([o.key for o in objects.objects], compared_from(found, objects)) == (["k10"], 15)


def test_on_request_all_objects_that_kafka_has_records_of_are_compared_without_an_offset() -> None:
    found = facts(None, 0, 10, 20, 30, begin=15)
    objects = to_compare(found, all_objects=True)
    assert objects is not None
    assert [(o.key, o.is_required) for o in objects.objects] == [("k10", False), ("k20", False), ("k30", True)]
    assert (objects.committed, compared_from(found, objects)) == (30, 15)


@pytest.mark.parametrize(
    ("found", "compared", "at", "case", "uncovered", "words"),
    [
        pytest.param(
            facts(18, 0), (equal(0, 9),), 11, Case.AHEAD_OF_OBJECTS, 10, "k0, ends before offset 10", id="an end"
        ),
        pytest.param(facts(18), (), 3, Case.AHEAD_OF_OBJECTS, 3, "the record at offset 3", id="no object"),
        pytest.param(facts(18, 20), (), 3, Case.AHEAD_OF_OBJECTS, 3, "the record at offset 3", id="only later ones"),
        pytest.param(
            facts(18, 0),
            (ObjectEnd("k0", "Different", 2, 3, "it differs", 10),),
            11,
            Case.AHEAD_OF_OBJECTS,
            None,
            r"k0, has 10 records, fewer than Kafka has up to offset 11 \(it differs\)",
            id="counted",
        ),
        pytest.param(
            facts(None, 0, 10), (equal(0, 4),), 5, Case.FORGOTTEN, 5, "offset 5 is in no object", id="between objects"
        ),
    ],
)
def test_a_record_in_no_object_prevents_the_start(
    found: PartitionFacts, compared: tuple[ObjectEnd, ...], at: int, case: Case, uncovered: int | None, words: str
) -> None:
    result = decide(found, compared, reason=None, start_at_objects=True, uncovered=at)
    assert (result.case, result.start, result.uncovered) == (case, None, uncovered)
    assert re.search(words, result.message)


def test_without_an_offset_the_newest_object_is_compared() -> None:
    found = facts(None, 0, 10)
    objects = to_compare(found)
    assert objects is not None
    assert ([o.key for o in objects.objects], compared_from(found, objects)) == (["k10"], 10)


@pytest.mark.parametrize("found", [facts(0), facts(20, begin=20), facts(None), facts(20, 20, begin=21)])
def test_nothing_is_compared_without_objects_or_records(found: PartitionFacts) -> None:
    assert to_compare(found) is None
