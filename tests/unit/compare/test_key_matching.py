"""Objects of both sides are matched by their keys."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sink_job.compare.compared_objects import ComparedObject
from sink_job.compare.key_matching import Extents, last_offsets, match, merged


def named(path: str, first: int, last: int | None = None) -> ComparedObject:
    name = f"t/{path}/t+0+{first:010d}.json"
    return ComparedObject(f"topics/{name}", name, path, first, 1, last)


SIDES = st.lists(st.builds(named, st.sampled_from("pq"), st.integers(0, 8)), unique_by=lambda o: o.name, max_size=12)


@given(SIDES, SIDES)
def test_each_object_is_in_one_group_and_groups_are_in_order(
    sink: list[ComparedObject], other: list[ComparedObject]
) -> None:
    found = match(sink, other)
    assert Counter(o for group in found.groups for o in group.sink) == Counter(sink)
    assert Counter(o for group in found.groups for o in group.other) == Counter(other)
    for group in found.groups:
        for side in (group.sink, group.other):
            assert [o.first for o in side] == sorted(o.first for o in side)
            assert len({o.path for o in side}) <= 1


@given(SIDES, SIDES)
def test_equal_names_are_pairs_and_other_pairs_begin_at_one_offset(
    sink: list[ComparedObject], other: list[ComparedObject]
) -> None:
    found = match(sink, other)
    assert {one.name for one, _ in found.equal} == {o.name for o in sink} & {o.name for o in other}
    assert all(one.name == two.name for one, two in found.equal)
    assert all(one.first == two.first and one.name != two.name for one, two in found.moved)
    assert not {o.first for o in found.only_sink} & {o.first for o in found.only_other}


def test_objects_that_close_at_other_offsets_are_compared_with_the_pair_before_them() -> None:
    sink = [named("p", first) for first in (0, 5, 10, 15)]
    other = [named("p", first) for first in (0, 7, 15)]
    groups = [([o.first for o in g.sink], [o.first for o in g.other]) for g in match(sink, other).groups]
    assert groups == [([0, 5, 10], [0, 7]), ([15], [15])]


def test_objects_before_the_first_pair_of_their_path_are_a_group() -> None:
    found = match([named("p", 3), named("p", 9)], [named("p", 5), named("p", 9), named("q", 1)])
    groups = [([o.first for o in g.sink], [o.first for o in g.other]) for g in found.groups]
    assert groups == [([9], [9]), ([3], [5]), ([], [1])]
    assert [group.first for group in found.groups] == [9, 3, 1]


def test_the_last_offset_is_that_of_the_ledger_or_before_the_next_object_of_the_path() -> None:
    objects = [named("p", 0), named("q", 2, 4), named("p", 6), named("q", 9)]
    assert [last_offsets(objects, 12)[o.key] for o in objects] == [5, 4, 11, 11]


def test_extents_contain_the_offsets_between_first_and_last() -> None:
    extents = Extents([named("p", 3, 5), named("q", 5, 9), named("p", 20, 20), named("p", 30)])
    assert [offset for offset in range(32) if extents.contain(offset)] == [*range(3, 10), 20]


def test_ranges_that_follow_each_other_are_one() -> None:
    assert merged([(5, 9), (0, 4), (11, 12), (6, 7)]) == [(0, 9), (11, 12)]
