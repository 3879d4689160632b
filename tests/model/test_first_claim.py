"""The model of the first claim in the place of another writer: it holds, and no rule can be left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from model.first_claim import FIRST_CLAIM_RULES, OMITTED, FirstClaim, Written

BEYOND = {
    "no object beyond the offset": None,
    "an equal object": Written("writer", 1, 2),
    "an object that differs": Written("writer", 1, 2, is_equal=False),
}
PAGE = (Path(__file__).parents[2] / "docs" / "exactly-once.md").read_text()


@pytest.mark.parametrize("beyond", BEYOND.values(), ids=BEYOND)
def test_each_record_is_in_one_object_whenever_the_task_and_the_drivers_take_their_steps(
    beyond: Written | None,
) -> None:
    assert FirstClaim(beyond).search().violation is None


@pytest.mark.parametrize("rule", FIRST_CLAIM_RULES)
def test_a_first_claim_without_a_rule_has_a_counter_example(rule: str, show: Callable[[object], None]) -> None:
    found = [FirstClaim(beyond, frozenset({rule})).search().violation for beyond in BEYOND.values()]
    violations = [each for each in found if each is not None]
    assert violations, f"nothing breaks without {rule}"
    show(f"without: {FIRST_CLAIM_RULES[rule]}\n{violations[0]}")
    assert {each.invariant for each in violations} == {OMITTED[rule]}


def test_the_page_has_each_rule_of_the_first_claim_and_the_invariant_that_breaks_without_it() -> None:
    rows = re.findall(r"^\| (first\.[a-z-]+) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [(rule, text, OMITTED[rule]) for rule, text in FIRST_CLAIM_RULES.items()]
