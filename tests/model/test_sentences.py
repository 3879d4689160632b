"""Each sentence of P2, P4, P6, P9, P10 and ADR 5 closes a counter-example: without it one is found. `-v` prints it."""

from collections.abc import Callable

import pytest

from model.cases import COVERED, MISSED, Missed
from model.model_state import Case
from model.protocol import explore
from model.protocol_rules import SENTENCES

SLOW = {
    "p10.intent-names",
    "p4.check-gap",
    "p4.above-snapshot",
    "p10.two-snapshots",
    "p10.lower-epochs",
    "p10.began-before",
}


def _missed(missed: Missed) -> object:
    marks = [pytest.mark.model] if SLOW & set(missed.sentences) else []
    return pytest.param(missed, id=" and ".join(missed.sentences), marks=marks)


@pytest.mark.parametrize("missed", [_missed(m) for m in MISSED])
def test_a_missing_sentence_is_found_by_its_counter_example(missed: Missed, show: Callable[[object], None]) -> None:
    violation = explore(missed.without, only=missed.invariant).violation
    assert violation is not None, f"nothing happens without {missed.sentences}"
    show("\n".join(f"without: {SENTENCES[sentence]}" for sentence in missed.sentences) + f"\n{violation}")
    assert violation.invariant == missed.invariant
    assert violation.trace


@pytest.mark.model
@pytest.mark.parametrize("missed", MISSED, ids=lambda missed: " and ".join(missed.sentences))
def test_with_the_sentence_back_in_the_same_world_the_invariant_holds(missed: Missed) -> None:
    only = None if missed.case.commands else missed.invariant
    assert explore(missed.case, only=only).violation is None


@pytest.mark.model
@pytest.mark.parametrize(("sentence", "case"), COVERED.items(), ids=COVERED.keys())
def test_a_sentence_that_others_stand_behind_can_be_missed(sentence: str, case: Case) -> None:
    without = Missed((sentence,), "", case).without
    assert explore(without).violation is None


def test_every_sentence_is_either_missed_or_stood_in_for() -> None:
    missed = {sentence for m in MISSED for sentence in m.sentences}
    assert missed | COVERED.keys() == SENTENCES.keys()
