"""With every sentence of the promises in force, no order of effects, crashes and faults breaks an invariant.

A crash is a driver that never moves again; each case is searched until there is nothing left.
"""

import pytest

from model.cases import LARGE, QUICK
from model.model_state import Case
from model.protocol import explore


@pytest.mark.parametrize("case", QUICK.values(), ids=QUICK.keys())
def test_every_invariant_holds_whatever_happens_in(case: Case) -> None:
    assert explore(case).violation is None


@pytest.mark.model
@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE.keys())
def test_every_invariant_holds_in_a_larger_world_with(case: Case) -> None:
    assert explore(case).violation is None
