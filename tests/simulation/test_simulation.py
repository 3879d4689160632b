"""Simulated runs of whole sinks: new seeds, seeds that once failed, and reproducibility.

`S3SINK_SEED` is the base seed (default: random), `S3SINK_RUNS` the number of new runs.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from devtools.simulation.runner import Case, FailedCase, minimized, new_cases, read_cases, run_case, trace

SEEDS = Path(__file__).parent / "seeds.txt"
BASE = int(os.environ.get("S3SINK_SEED") or random.SystemRandom().randrange(1 << 32))
RUNS = int(os.environ.get("S3SINK_RUNS") or 300)
GROUPS = 6
TRACE_LINES = 40


def description(failed: FailedCase) -> str:
    """A failure: the invariant, the end of the minimized trace, and the command to repeat it."""
    smallest = minimized(failed)
    lines = trace(smallest.case)[-TRACE_LINES:]
    return "\n".join([f"base seed {BASE}, {failed.message}", *lines, f"repeat it with: {smallest.case.command}"])


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_invariant_holds_in_new_simulations(group: int) -> None:
    print(f"base seed {BASE}: repeat with S3SINK_SEED={BASE}")
    runs = RUNS // GROUPS
    for case in new_cases(BASE + group * runs, runs):
        failed = run_case(case)
        assert failed is None, description(failed)


@pytest.mark.parametrize("case", read_cases(SEEDS), ids=str)
def test_every_invariant_holds_in_a_simulation_that_once_failed(case: Case) -> None:
    failed = run_case(case)
    assert failed is None, description(failed)


def test_a_seed_reproduces_a_run() -> None:
    for case in new_cases(BASE, 5):
        assert trace(case) == trace(case), case.command


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_a_run_does_not_depend_on_hash_randomization(hash_seed: str) -> None:
    code = "import sys; from devtools.simulation.runner import *; print(hash_of(int(sys.argv[1]), 10))"
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(BASE)], env=environ, capture_output=True, text=True, check=True
    )
    from devtools.simulation.runner import hash_of

    assert int(done.stdout) == hash_of(BASE, 10), f"repeat with S3SINK_SEED={BASE}"
