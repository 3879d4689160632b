"""The model of registrations in a table: it holds, and no rule can be left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from model.registration import CHANGES, OMITTED, REGISTRATION_RULES, Registrations

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()


@pytest.mark.parametrize("change", CHANGES)
def test_each_object_is_in_the_table_once_whenever_registrations_and_delayed_commits_take_their_steps(
    change: str,
) -> None:
    assert Registrations(change).search().violation is None


@pytest.mark.parametrize("rule", REGISTRATION_RULES)
def test_a_registration_without_a_rule_has_a_counter_example(rule: str, show: Callable[[object], None]) -> None:
    changes = ["forgotten position"] if rule == "table.unused" else reversed(CHANGES)
    searches = (Registrations(change, frozenset({rule})).search().violation for change in changes)
    found = next((each for each in searches if each is not None and each.invariant == OMITTED[rule]), None)
    assert found is not None, f"nothing is {OMITTED[rule]} without {rule}"
    show(f"without: {REGISTRATION_RULES[rule]}\n{found}")


def test_the_page_has_each_rule_of_registrations_and_the_invariant_that_breaks_without_it() -> None:
    rows = re.findall(r"^\| (table\.[a-z-]+) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [(rule, text, OMITTED[rule]) for rule, text in REGISTRATION_RULES.items()]
