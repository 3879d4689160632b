"""The levels of the tests: which command runs which tests, and what the CI run prints at its end."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests import conftest
from tools.closing_line import closing_line

ROOT = Path(__file__).resolve().parents[2]
MARKERS = [
    line.partition(":")[0]
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
]


def pytest_commands(target: str) -> list[str]:
    """The commands with pytest that `make TARGET` would run."""
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "ARGS", "WORKERS")}
    done = subprocess.run(["make", "-n", target], cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if " -m pytest " in line]


@cache
def selection(target: str) -> str:
    """The marker expression of a target, which selects among all tests: it names no paths."""
    (command,) = pytest_commands(target)
    found = re.search(
        r' -m pytest (?:-n \S+ --dist loadfile --no-loadscope-reorder )?-m "([^"]+)"((?: --[\w-]+(?:=\S+)?)*) *$',
        command,
    )
    assert found, command
    return found[1]


def selects(expression: str, markers: set[str]) -> bool:
    """Whether pytest's -m selects a test with these markers: the expression is also one of Python."""
    return bool(eval(expression, {"__builtins__": {}}, {name: name in markers for name in MARKERS}))


def marker_sets() -> list[set[str]]:
    return [set(each) for size in range(len(MARKERS) + 1) for each in itertools.combinations(MARKERS, size)]


@pytest.mark.parametrize("markers", marker_sets(), ids=lambda markers: "+".join(sorted(markers)) or "none")
def test_a_test_of_any_markers_is_in_exactly_one_of_test_and_test_cluster(markers: set[str]) -> None:
    assert [selects(selection(target), markers) for target in ("test", "test-cluster")].count(True) == 1


def test_no_folder_that_test_cluster_does_not_import_has_a_test_of_a_cluster() -> None:
    (command,) = pytest_commands("test-cluster")
    folders = re.findall(r" --ignore=(\S+)", command)
    assert "tests/unit" in folders
    marked = re.compile(r"\bmark\.(cluster|e2e)\b")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert [str(file) for file in files if marked.search(file.read_text())] == []


def test_the_fast_tests_are_a_part_of_make_test() -> None:
    fast, whole = selection("test-fast"), selection("test")
    assert all(selects(whole, markers) for markers in marker_sets() if selects(fast, markers))
    assert selects(fast, set())


def test_the_processes_of_make_keep_bytecode() -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["make", "-s", "--eval", "environment: ; @env", "environment"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "PATH=" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout


def test_the_ci_run_has_both_levels() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^level test \| tee ", text, re.MULTILINE)
    assert re.search(r"^ +level test-cluster ", text, re.MULTILINE)


def ci_run(folder: Path, test: str, test_cluster: str, *, lint: str = "exit 0") -> subprocess.CompletedProcess[str]:
    """`.ci/run` in a checkout in `folder` whose `make` runs these commands in it, and nothing else."""
    for name in (".ci/run", "tools/closing_line.py"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    make = folder / "bin" / "make"
    make.parent.mkdir(exist_ok=True)
    make.write_text(f"#!/bin/sh\ncase $1 in lint) {lint};; test) {test};; test-cluster) {test_cluster};; esac\n")
    make.chmod(0o755)
    env = os.environ | {"PATH": f"{make.parent}:{os.environ['PATH']}", "S3SINK_CACHE": str(folder / "cache")}
    return subprocess.run([folder / ".ci" / "run"], env=env, capture_output=True, text=True, timeout=120, check=False)


GREEN = "echo '== 3 passed in 1.00s =='"


def test_the_ci_run_succeeds_when_both_levels_do(tmp_path: Path) -> None:
    done = ci_run(tmp_path, GREEN, GREEN)
    assert (done.returncode, done.stdout.splitlines()[-1].strip("=")) == (0, " 6 passed in 2.00s ")


def test_the_ci_run_succeeds_where_tail_cannot_watch_the_log(tmp_path: Path) -> None:
    """As where all inotify instances are in use."""
    tail = tmp_path / "bin" / "tail"
    tail.parent.mkdir()
    tail.write_text("#!/bin/sh\nexit 1\n")
    tail.chmod(0o755)
    done = ci_run(tmp_path, GREEN, GREEN)
    assert (done.returncode, done.stdout.splitlines()[-1].strip("=")) == (0, " 6 passed in 2.00s ")
    assert done.stdout.count("3 passed") == 2


def test_the_levels_of_the_ci_run_run_side_by_side(tmp_path: Path) -> None:
    done = ci_run(tmp_path, f"until [ -e began ]; do sleep 0.1; done; {GREEN}", f"touch began; {GREEN}")
    assert done.returncode == 0


def test_a_ci_run_that_ends_early_ends_the_tests_beside_it(tmp_path: Path) -> None:
    done = ci_run(
        tmp_path,
        GREEN,
        "echo $$ > new; mv new began; exec sleep 600",
        lint="until [ -e began ]; do sleep 0.1; done; exit 1",
    )
    assert done.returncode == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "began").read_text()), 0)


@pytest.mark.parametrize("command", [f"{GREEN}; exit 2", "echo '== 9 deselected in 1.00s =='; exit 5", "exit 1"])
@pytest.mark.parametrize("first", [True, False], ids=["test", "test-cluster"])
def test_the_ci_run_fails_when_pytest_fails_without_a_failed_test(tmp_path: Path, command: str, first: bool) -> None:
    done = ci_run(tmp_path, *((command, GREEN) if first else (GREEN, command)))
    assert done.returncode == 1
    assert re.search(r" 1 errors in | no closing line", done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("fixtures", "markers", "missing"),
    [
        (["tests.conftest.kafka"], {"data"}, set()),
        (["tests.conftest.kafka", "tests.conftest.spark"], {"data"}, {"spark"}),
        (["tests.cluster.conftest.control_plane"], set(), {"cluster"}),
        (["tests.conftest.helm"], {"data"}, {"cluster"}),
        (["tests.unit.s3.conftest.s3"], set(), set()),
    ],
)
def test_a_test_that_starts_a_server_has_the_marker_of_that_server(
    fixtures: list[str], markers: set[str], missing: set[str]
) -> None:
    assert conftest.missing_markers(fixtures, markers) == missing


def test_closing_lines_are_added_to_one_of_the_same_form() -> None:
    first = "x\n=== 2 failed, 5204 passed, 1 skipped, 1 warning in 3349.15s (0:55:49) ===\nexit code 2\n"
    second = "=== 467 passed, 1 skipped, 1 error in 12.5s ===\nmake: *** [test-cluster] Error 1\nexit code 2\n"
    assert closing_line([first, second]).strip("=") == (
        " 2 failed, 5671 passed, 2 skipped, 1 warnings, 1 errors in 3361.65s (0:56:01) "
    )


def test_a_run_without_a_closing_line_is_an_error() -> None:
    with pytest.raises(ValueError, match="log 2 has no closing line"):
        closing_line(["1 passed in 0.40s\nexit code 0", "Killed\nexit code 0"])


def test_a_run_whose_exit_code_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="log 1 does not end with an exit code"):
        closing_line(["1 passed in 0.40s\n"])


def test_a_run_that_fails_without_a_failed_test_counts_as_one_error() -> None:
    logs = ["!!!! KeyboardInterrupt !!!!\n== 3 passed in 2.00s ==\nexit code 2\n", "1 passed in 0.40s\nexit code 0\n"]
    assert closing_line(logs).strip("=") == " 4 passed, 1 errors in 2.40s "
