"""docs/exactly-once.md names tests and sentences: they exist, and say what the page says."""

import re
from pathlib import Path

import pytest

from model.cases import COVERED, MISSED, Missed
from model.protocol_rules import SENTENCES

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "exactly-once.md").read_text()
ROWS = [
    tuple(re.split(r" \| ", line.strip("| ")))
    for line in PAGE.splitlines()
    if re.match(r"\| (p|reset\.|discard\.)", line)
]
"""The rows of the tables of sentences: name, text, and what it is needed for."""


@pytest.fixture(scope="module")
def defined() -> set[str]:
    """The names of all test functions."""
    sources = (path.read_text() for path in TESTS.rglob("test_*.py"))
    return {name for source in sources for name in re.findall(r"^\s*def (test_\w+)", source, re.MULTILINE)}


def test_every_test_that_the_page_names_exists(defined: set[str]) -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert named
    assert named - defined == set()


def test_every_promise_has_a_test() -> None:
    promises = re.split(r"^### (P\d+) ", PAGE.split("## The model")[0], flags=re.MULTILINE)[1:]
    texts = dict(zip(promises[::2], promises[1::2], strict=True))
    assert texts.keys() == {f"P{n}" for n in range(1, 12)}
    assert [promise for promise, text in texts.items() if "`test_" not in text] == []


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_sentence_stands_on_the_page_in_its_own_words(sentence: str) -> None:
    assert {row[1] for row in ROWS if row[0] == sentence} == {SENTENCES[sentence]}


@pytest.mark.parametrize("missed", MISSED, ids=lambda missed: " and ".join(missed.sentences))
def test_the_page_says_which_invariant_breaks_without_a_sentence(missed: Missed) -> None:
    invariant = missed.invariant if len(missed.sentences) == 1 else f"{missed.invariant} (both out)"
    assert all((sentence, SENTENCES[sentence], invariant) in ROWS for sentence in missed.sentences)


def test_sentences_that_can_be_missed_are_on_the_page_with_a_reason() -> None:
    broken = {missed.sentences[0] for missed in MISSED if len(missed.sentences) == 1}
    assert COVERED.keys() & broken == set()
    assert all(any(row[0] == sentence and "(both out)" not in row[2] for row in ROWS) for sentence in COVERED)
