"""Tables that are continued, in simulated time: no violation in random runs, and deliberate defects are found."""

from __future__ import annotations

import os
import warnings

import pytest

from devtools.simulation import table_successor_mutations
from devtools.simulation.table_successor_mutations import SUCCESSOR_MUTATIONS
from devtools.simulation.table_successors import run_case
from tests.simulation.test_mutations import SEEDS

pytestmark = pytest.mark.model

RUNS = 100
FIRST_SEED = int(os.environ.get("S3SINK_SEED", "1"))


def test_each_object_is_in_one_table_once_whatever_happens() -> None:
    """`S3SINK_SEED` chooses other runs."""
    for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
        violation = run_case(seed)
        assert violation is None, f"seed {seed}: {violation}"


@pytest.mark.parametrize("name", sorted(SUCCESSOR_MUTATIONS))
def test_a_deliberate_defect_is_found(name: str) -> None:
    if table_successor_mutations.violation(name, SEEDS[name]) is None:
        found = table_successor_mutations.search(name, 1_200)
        assert found is not None, f"{name} was not found in 1,200 runs"
        warnings.warn(f"mutation_seeds.txt: write the line `{name} {found}`", stacklevel=1)
