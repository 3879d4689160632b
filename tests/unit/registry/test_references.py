"""The schemas that a schema refers to, directly or indirectly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.registry.references import MAX_REFERENCES, InvalidReferences, Reference, Referenced, collect

Graph = Mapping[int, Sequence[int]]


def reference(number: int) -> Reference:
    return Reference(f"name{number}", f"subject{number}", 1)


def names(graph: Graph, start: Sequence[int]) -> list[str]:
    def fetch(each: Reference) -> Referenced:
        return Referenced(f"text of {each.name}", [*map(reference, graph.get(int(each.name[4:]), ()))])

    return [each.name for each in collect([*map(reference, start)], fetch)]


def test_a_schema_follows_those_that_it_refers_to() -> None:
    assert names({1: [2, 3], 2: [3]}, [1]) == ["name3", "name2", "name1"]


def test_a_schema_to_which_several_refer_is_fetched_once() -> None:
    assert names({1: [3], 2: [3]}, [1, 2]) == ["name3", "name1", "name2"]


def test_a_cycle_is_rejected() -> None:
    with pytest.raises(InvalidReferences, match="subject1 version 1 -> subject2 version 1 -> subject1 version 1"):
        names({1: [2], 2: [1]}, [1])


def test_a_chain_of_the_maximum_length_is_collected() -> None:
    graph = {number: [number + 1] for number in range(1, MAX_REFERENCES)}
    assert len(names(graph, [1])) == MAX_REFERENCES


def test_more_than_the_maximum_are_rejected() -> None:
    with pytest.raises(InvalidReferences, match="more than 1,000 references"):
        names({}, range(MAX_REFERENCES + 1))


@given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4)))
def test_without_a_cycle_every_schema_follows_its_references(edges: Graph) -> None:
    graph = {number: [other for other in others if other > number] for number, others in edges.items()}
    order = names(graph, [0])
    for at, name in enumerate(order):
        assert {f"name{other}" for other in graph.get(int(name[4:]), ())} <= {*order[:at]}
