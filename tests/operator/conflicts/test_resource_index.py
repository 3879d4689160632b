"""The index of the resources of all sinks: what it finds, and what one namespace may cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.conflicts import overlaps
from s3sink_operator.conflicts.resource_index import ResourceIndex
from s3sink_operator.types import SinkResources
from tests.operator.conflicts.test_overlaps import APART, ELDER, MINE, PATTERN, claims, named


def put(index: ResourceIndex, *sinks: SinkResources) -> None:
    for sink in sinks:
        index.put(sink.namespace, sink.name, sink)


def rivals(index: ResourceIndex, sink: SinkResources) -> list[str]:
    return sorted(each.name for each in index.competitors(sink.namespace, sink.name))


@given(claims(), st.data())
def test_conflicts_among_competitors_are_those_among_all_sinks(sinks: list[SinkResources], data: st.DataObject) -> None:
    """Also after sinks were changed and deleted."""
    index = ResourceIndex()
    put(index, *data.draw(claims()))
    for number in range(6):
        index.put("data", f"sink-{number}", None)
    assert index.number_of_entries == 0
    put(index, *sinks)
    for mine in sinks:
        found = index.competitors(mine.namespace, mine.name)
        assert overlaps.find_conflict(mine, found) == overlaps.find_conflict(mine, sinks)


def test_sinks_with_topics_of_their_own_are_no_rivals() -> None:
    index = ResourceIndex()
    put(index, MINE, APART)
    assert not index.competitors("data", "young")


def test_dead_letters_in_the_directory_of_another_sink_are_compared() -> None:
    index = ResourceIndex()
    inside = replace(MINE, topics_dir="mine", dead_letters="topics/rejected")
    put(index, inside, APART)
    assert rivals(index, inside) == ["elder"]
    assert rivals(index, APART) == ["young"]


def test_objects_in_the_directory_of_another_sink_are_compared() -> None:
    index = ResourceIndex()
    inside = named(MINE, "x", False)
    put(index, inside, replace(ELDER, topics_dir="x/y"))
    assert rivals(index, inside) == ["elder"]
    assert rivals(index, ELDER) == ["young"]


def many(count: int, topics: int, **changes: object) -> list[SinkResources]:
    """Sinks of a namespace, each with topics of its own."""
    return [
        replace(
            ELDER,
            namespace="many",
            name=f"sink-{number:05}",
            group=f"g-{number}",
            sink_id=f"s-{number}",
            topics=tuple(f"topic-{number}-{topic}" for topic in range(topics)),
            **changes,  # type: ignore[arg-type]
        )
        for number in range(count)
    ]


def test_the_entries_of_the_topics_of_one_namespace_are_limited() -> None:
    """The entries of 1,000 sinks with 1,000 topics each took 350 MB, the whole memory that the operator has."""
    index = ResourceIndex(max_topics=10_000)
    sinks = many(200, 1_000)
    put(index, *sinks)
    assert index.number_of_entries == 10_000
    assert [index.has_indexed_topics("many", each.name) for each in sinks] == [True] * 10 + [False] * 190


def test_sinks_of_another_namespace_are_compared_whatever_one_namespace_has() -> None:
    index = ResourceIndex(max_topics=100)
    put(index, *many(10, 60), MINE, ELDER)
    assert index.has_indexed_topics("data", "young")
    assert rivals(index, MINE) == ["elder"]


@pytest.mark.parametrize("shared", ["group", "sink_id"])
def test_the_group_and_the_ledger_of_a_sink_above_the_limit_are_compared(shared: str) -> None:
    index = ResourceIndex(max_topics=0)
    first, second = many(2, 5)
    second = replace(second, **{shared: getattr(first, shared)})
    put(index, first, second)
    assert rivals(index, first) == [second.name]
    assert rivals(index, second) == [first.name]


def test_a_pattern_is_compared_with_the_topics_of_a_sink_above_the_limit() -> None:
    index = ResourceIndex(max_topics=0)
    put(index, MINE, PATTERN)
    assert rivals(index, MINE) == ["elder"]
    assert rivals(index, PATTERN) == ["young"]


def test_topics_have_entries_as_soon_as_there_is_room() -> None:
    index = ResourceIndex(max_topics=10)
    first, second, third = many(3, 6)
    put(index, first, second, third)
    assert [index.has_indexed_topics("many", each.name) for each in (first, second, third)] == [True, False, False]
    index.put("many", first.name, None)
    assert [index.has_indexed_topics("many", each.name) for each in (second, third)] == [True, False]
    put(index, replace(second, topics=("one",)))
    assert index.has_indexed_topics("many", third.name)
    assert index.number_of_entries == 7


def test_an_indexed_sink_stays_indexed_when_its_namespace_grows() -> None:
    index = ResourceIndex(max_topics=10)
    first, second = many(2, 6)
    put(index, first, second)
    put(index, replace(first, topics=(*(first.topics or ()), "more")))
    assert index.has_indexed_topics("many", first.name)
    assert not index.has_indexed_topics("many", second.name)


def test_topics_that_a_pattern_was_observed_to_match_count() -> None:
    index = ResourceIndex(max_topics=10)
    sinks = [replace(each, topics=None, pattern="a.*", observed_topics=tuple(each.topics or ())) for each in many(3, 6)]
    put(index, *sinks)
    assert index.number_of_entries == 6


def test_a_status_alone_changes_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    index = ResourceIndex()
    put(index, MINE, ELDER)
    monkeypatch.setattr(ResourceIndex, "_index_topics", lambda *_: pytest.fail("the topics are indexed again"))
    put(index, replace(MINE, held="x", held_since="2025-11-03T00:00:00Z"))
    assert [each.held for each in index.competitors("data", "elder")] == ["x"]
