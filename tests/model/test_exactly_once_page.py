"""The tests and rules in docs/exactly-once.md exist, and the wording of each rule is that of the model."""

import re
from pathlib import Path

import pytest

from model.cases import OMISSIONS, REDUNDANT, Omission
from model.protocol_rules import PROTOCOL_RULES

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "exactly-once.md").read_text()
ROWS = [
    tuple(re.split(r" \| ", line.strip("| ")))
    for line in PAGE.splitlines()
    if re.match(r"\| (p|reset\.|discard\.|topic\.|repair\.|loss\.)", line)
]
"""The rows of the tables of rules: id, text and broken invariant."""


@pytest.fixture(scope="module")
def defined() -> set[str]:
    """The names of all test functions."""
    sources = (path.read_text() for path in TESTS.rglob("test_*.py"))
    return {name for source in sources for name in re.findall(r"^\s*def (test_\w+)", source, re.MULTILINE)}


def test_every_test_on_the_page_exists(defined: set[str]) -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert named
    assert named - defined == set()


def test_every_promise_has_a_test() -> None:
    promises = re.split(r"^### (P\d+) ", PAGE.split("## The model")[0], flags=re.MULTILINE)[1:]
    texts = dict(zip(promises[::2], promises[1::2], strict=True))
    assert texts.keys() == {f"P{n}" for n in range(1, 12)}
    assert [promise for promise, text in texts.items() if "`test_" not in text] == []


@pytest.mark.parametrize("rule", PROTOCOL_RULES)
def test_the_page_has_each_rule_in_its_exact_wording(rule: str) -> None:
    assert {row[1] for row in ROWS if row[0] == rule} == {PROTOCOL_RULES[rule]}


@pytest.mark.parametrize("omission", OMISSIONS, ids=lambda omission: " and ".join(omission.rules))
def test_the_page_lists_the_invariant_that_breaks_without_a_rule(omission: Omission) -> None:
    invariant = omission.invariant if len(omission.rules) == 1 else f"{omission.invariant} (both omitted)"
    assert all((rule, PROTOCOL_RULES[rule], invariant) in ROWS for rule in omission.rules)


def test_the_page_gives_a_reason_for_each_redundant_rule() -> None:
    broken = {omission.rules[0] for omission in OMISSIONS if len(omission.rules) == 1}
    assert REDUNDANT.keys() & broken == set()
    assert all(any(row[0] == rule and "(both omitted)" not in row[2] for row in ROWS) for rule in REDUNDANT)
