"""With every rule in force, no order of effects, crashes and faults breaks an invariant.

A crashed driver takes no further step; each case is searched until every reachable state is visited.
"""

import pytest

from model.cases import LARGE, QUICK
from model.exploration import explore
from model.model_state import Case


@pytest.mark.parametrize("case", QUICK.values(), ids=QUICK.keys())
def test_every_invariant_holds_in_a_small_case(case: Case) -> None:
    assert explore(case).violation is None


@pytest.mark.model
@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE.keys())
def test_every_invariant_holds_in_a_large_case(case: Case) -> None:
    assert explore(case).violation is None
