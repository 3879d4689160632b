"""The search by numbers of parts visits the same states as a search of whole states."""

from dataclasses import replace

import pytest

from model import protocol
from model.cases import AGAIN, DISCARD, RESET, SLEEPER, SNAPSHOTS, TINY, TURNS
from model.exploration import explore, relied_on
from model.initial_states import begin
from model.invariants import broken
from model.model_state import Case, ModelState
from model.search import Outcome, Search

CASES = {
    "faults": replace(TINY, faults=("moved", "vanish")),
    "a lost record": replace(TINY, snapshot_every=1, faults=("record lost",)),
    "a command beside drivers": SLEEPER,
    "commands in turn": replace(AGAIN, in_turn=True, commands=(RESET, DISCARD)),
    "a counter-example": replace(TURNS, without=("p4.conditional",)),
    "no progress": replace(SNAPSHOTS, records=1, without=("p4.above-snapshot",)),
}


def _explore_whole_states(case: Case) -> Outcome:
    return Search[ModelState](
        steps=lambda model: protocol.steps(case, model),
        broken=lambda model: next(broken(case, model), None),
        ended=lambda model: protocol.ended(case, model),
        relied_on=lambda label: relied_on(case, label),
        limit=100_000,
    ).run(begin(case))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_search_by_numbers_has_the_outcome_of_a_search_of_whole_states(case: Case) -> None:
    assert explore(case) == _explore_whole_states(case)
