"""The model of tables that are continued: it holds, and no rule can be left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from model.continuation import CHANGES, CONTINUATION_RULES, DIVIDED, OMITTED, SHOWN_BY, UNDIVIDED, Continuations

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()


@pytest.mark.parametrize("records", [DIVIDED, UNDIVIDED], ids=["divided", "undivided"])
@pytest.mark.parametrize("stops", [False, True], ids=["NewTable", "Stop"])
@pytest.mark.parametrize("change", CHANGES)
def test_each_object_is_in_one_of_the_tables_once_whenever_registrations_and_delayed_commits_take_their_steps(
    change: str, stops: bool, records: tuple[tuple[int, ...], ...]
) -> None:
    assert Continuations(change, stops=stops, records=records).search().violation is None


@pytest.mark.parametrize("rule", CONTINUATION_RULES)
def test_tables_without_a_rule_of_their_continuation_have_a_counter_example(
    rule: str, show: Callable[[object], None]
) -> None:
    worlds = [
        Continuations(SHOWN_BY.get(rule, "nothing"), frozenset({rule}), stops, records)
        for stops in (False, True)
        for records in (DIVIDED, UNDIVIDED)
    ]
    searches = (each.search().violation for each in worlds)
    found = next((each for each in searches if each is not None and each.invariant == OMITTED[rule]), None)
    assert found is not None, f"nothing is {OMITTED[rule]} without {rule}"
    show(f"without: {CONTINUATION_RULES[rule]}\n{found}")


def test_the_page_has_each_rule_of_continuations_and_the_invariant_that_breaks_without_it() -> None:
    rows = re.findall(r"^\| (successor\.[a-z-]+) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [(rule, text, OMITTED[rule]) for rule, text in CONTINUATION_RULES.items()]
