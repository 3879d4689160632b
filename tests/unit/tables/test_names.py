"""The names of tables."""

from __future__ import annotations

import pytest

from sink_job.api.errors import InvalidSpec, TableNotRegistered
from sink_job.tables.names import check_chosen, check_owner, check_successors, table_names


def test_each_topic_has_a_table_with_plain_characters() -> None:
    assert table_names("lake.{topic}", ["b", "A.b-c"]) == {"A.b-c": "lake.a_b_c", "b": "lake.b"}


def test_a_name_without_topic_is_that_of_the_only_topic() -> None:
    assert table_names("lake.flights", ["f"]) == {"f": "lake.flights"}


@pytest.mark.parametrize(("pattern", "topics"), [("lake.{topic}", ["a.b", "a_b"]), ("lake.all", ["a", "b"])])
def test_two_topics_with_one_table_are_rejected(pattern: str, topics: list[str]) -> None:
    names = table_names(pattern, [*topics, "C"] if "{" in pattern else topics)
    with pytest.raises(TableNotRegistered, match=f"the topics {topics[0]} and {topics[1]} have the same table"):
        check_owner(names, names[topics[0]])
    for topic in {*names} - {*topics}:
        check_owner(names, names[topic])


def test_a_chosen_table_that_does_not_exist_is_an_error_with_those_that_do() -> None:
    check_chosen({"lake.a", "lake.b"}, ["lake.b"])
    with pytest.raises(InvalidSpec, match=r"--table a is no table of this sink\. Its tables: lake\.a, lake\.b"):
        check_chosen({"lake.a", "lake.b"}, ["a"])


@pytest.mark.parametrize("name", ["lake.a_2", "lake.a_9"])
def test_a_table_with_the_name_that_another_one_may_continue_in_is_rejected(name: str) -> None:
    with pytest.raises(TableNotRegistered, match=f"with NewTable lake.a may be continued in {name}"):
        check_successors({"lake.a", name}, ["lake.a"])


def test_other_names_of_tables_may_be_beside_it() -> None:
    check_successors({"lake.a", "lake.a_1", "lake.a_10", "lake.b_2", "lake.a_b"}, ["lake.a"])
