"""How the tests are divided among workers: how many there are, and which files they run first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import FIRST_FILES
from tests.support.scheduling import SHARED_SPARK
from tools.workers import workers

TESTS = Path(__file__).resolve().parents[1]
GIB = 1 << 30


@pytest.mark.parametrize("name", FIRST_FILES)
def test_a_file_that_runs_first_exists(name: str) -> None:
    assert (TESTS / name).is_file()


def test_the_files_with_the_shared_spark_session_stay_with_one_worker() -> None:
    using = {
        path.relative_to(TESTS.parent).as_posix()
        for path in TESTS.rglob("test_*.py")
        if re.search(
            r"[( ](spark_fixture: Spark\w+|spark: SparkContext|sql: SparkSession|sink_here: SinkFactory)[,)\n]",
            path.read_text(),
        )
    }
    assert {file for file in using if not file.startswith("tests/cluster/")} == SHARED_SPARK


@pytest.mark.parametrize(
    ("cpus", "memory", "expected"),
    [(2, 24 * GIB, 4), (4, 16 * GIB, 3), (16, 32 * GIB, 6), (1, 64 * GIB, 2), (8, 4 * GIB, 2)],
)
def test_a_machine_has_two_workers_for_each_cpu_as_far_as_its_memory_allows(
    cpus: int, memory: int, expected: int
) -> None:
    assert workers(cpus, memory) == expected
