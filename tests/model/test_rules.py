"""The model finds a counter-example for each omitted rule of P2, P4, P6, P9, P10, ADR 5 and ADR 47. `-v` prints it."""

from collections.abc import Callable
from functools import cache

import pytest

from model.cases import OMISSIONS, REDUNDANT, Omission
from model.exploration import explore
from model.model_state import Case
from model.protocol_rules import PROTOCOL_RULES
from model.search import Outcome

SLOW = {
    "p10.intent-names",
    "p4.check-gap",
    "p4.above-snapshot",
    "p10.two-snapshots",
    "p10.lower-epochs",
    "p10.started-before",
}


@cache
def outcome(case: Case, only: str | None) -> Outcome:
    """The outcome of a search; several rules have the same case."""
    return explore(case, only=only)


def _parameter(omission: Omission) -> object:
    marks = [pytest.mark.model] if SLOW & set(omission.rules) else []
    return pytest.param(omission, id=" and ".join(omission.rules), marks=marks)


@pytest.mark.parametrize("omission", [_parameter(m) for m in OMISSIONS])
def test_an_omitted_rule_has_a_counter_example(omission: Omission, show: Callable[[object], None]) -> None:
    violation = explore(omission.without, only=omission.invariant).violation
    assert violation is not None, f"no invariant breaks without {omission.rules}"
    show("\n".join(f"without: {PROTOCOL_RULES[rule]}" for rule in omission.rules) + f"\n{violation}")
    assert violation.invariant == omission.invariant
    assert violation.trace


@pytest.mark.model
@pytest.mark.parametrize("omission", OMISSIONS, ids=lambda omission: " and ".join(omission.rules))
def test_the_invariant_holds_in_the_same_case_with_the_rule(omission: Omission) -> None:
    only = None if omission.case.commands else omission.invariant
    assert outcome(omission.case, only).violation is None


@pytest.mark.model
@pytest.mark.parametrize(("rule", "case"), REDUNDANT.items(), ids=REDUNDANT.keys())
def test_a_redundant_rule_can_be_omitted(rule: str, case: Case) -> None:
    without = Omission((rule,), "", case).without
    assert explore(without).violation is None


def test_every_rule_is_necessary_or_redundant() -> None:
    necessary = {rule for m in OMISSIONS for rule in m.rules}
    assert necessary | REDUNDANT.keys() == PROTOCOL_RULES.keys()
