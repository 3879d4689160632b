"""The simulation finds deliberate defects within a bounded number of runs.

`mutation_seeds.txt` has the seed of a run that finds each defect. This run is tried first; only if it does not find
the defect, the runs from `BASE` on are searched.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from devtools.simulation import mutations
from devtools.simulation.mutations import MUTATIONS
from devtools.simulation.table_mutations import TABLE_MUTATIONS
from devtools.simulation.table_successor_mutations import SUCCESSOR_MUTATIONS

RUNS = 600
BASE = 0
FILE = Path(__file__).parent / "mutation_seeds.txt"
SEEDS = {
    name: int(seed)
    for name, seed in (line.split() for line in FILE.read_text().splitlines() if line[:1] not in ("#", ""))
}


def is_found(name: str) -> bool:
    """Whether a run finds the defect. Warns if the seed of the file does not."""
    if name in SEEDS and mutations.search(name, 1, SEEDS[name]):
        return True
    found = mutations.search(name, RUNS, BASE)
    if found is not None:
        warnings.warn(
            f"the seed in {FILE.name} does not find {name}: write the line `{name} {BASE + found[0] - 1}`", stacklevel=2
        )
    return found is not None


@pytest.mark.model
@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_deliberate_defect_is_found(name: str) -> None:
    assert is_found(name), f"{name} was not found in {RUNS} runs"


def test_the_file_of_seeds_has_no_other_names() -> None:
    assert SEEDS.keys() <= {*MUTATIONS, *TABLE_MUTATIONS, *SUCCESSOR_MUTATIONS}


def test_a_seed_that_no_longer_finds_its_defect_is_reported_after_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, int]] = []

    def search(name: str, runs: int, base: int) -> tuple[int, object] | None:
        tried.append((runs, base))
        return (8, None) if runs == RUNS else None

    monkeypatch.setitem(SEEDS, "no_intents", 77)
    monkeypatch.setattr(mutations, "search", search)
    with pytest.warns(UserWarning, match=r"write the line `no_intents 7`"):
        assert is_found("no_intents")
    assert tried == [(1, 77), (RUNS, BASE)]
