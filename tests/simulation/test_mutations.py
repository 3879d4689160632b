"""The simulation finds deliberate defects within a bounded number of runs."""

from __future__ import annotations

import pytest

from devtools.simulation.mutations import MUTATIONS, search

pytestmark = pytest.mark.model

RUNS = 600
BASE = 0


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_deliberate_defect_is_found(name: str) -> None:
    found = search(name, RUNS, BASE)
    assert found is not None, f"{name} was not found in {RUNS} runs"
