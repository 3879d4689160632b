"""What a build of a Go program reports while it runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devtools.go_progress import BuildProgress
from devtools.go_tool import build_go, run_go
from devtools.processes import ServerFailedError

PACKAGES = ["errors", "example.com/lib/v2", "example.com/program"]
GO = """#!/bin/sh
case "$1" in
list) printf '%s\\n' 'go: downloading example.com/lib v2.0.0' errors example.com/lib/v2 example.com/program ;;
build) printf '%s\\n' errors example.com/lib/v2 >&2
       while [ ! -e "$PROCEED" ]; do sleep 0.01; done ;;
fail) printf '%s\\n' errors '# example.com/lib' 'lib.go:3: undefined: x'; exit 1 ;;
esac
"""


def read(progress: BuildProgress, *lines: str) -> list[bool]:
    return [progress.read(line) for line in lines]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A go command whose build waits until the file is there."""
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    program.write_text(GO)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PROCEED", str(tmp_path / "proceed"))
    return tmp_path / "proceed"


def test_downloads_are_counted_before_packages_are_compiled() -> None:
    progress = BuildProgress()
    assert progress.text() == "reading the packages"
    assert read(progress, "go: downloading example.com/lib v2.0.0\n") == [True]
    assert progress.text() == "1 modules downloaded"


def test_compiled_packages_are_counted_of_all_packages_of_the_program() -> None:
    progress = BuildProgress(PACKAGES)
    read(progress, "errors\n", "example.com/lib/v2\n")
    assert progress.text() == "2 of at most 3 packages compiled"


def test_the_program_itself_is_compiled_last_and_then_linked() -> None:
    progress = BuildProgress(PACKAGES)
    read(progress, *PACKAGES)
    assert progress.text() == "3 of at most 3 packages compiled, linking"


def test_without_a_list_of_packages_only_the_compiled_ones_are_counted() -> None:
    progress = BuildProgress()
    read(progress, "errors")
    assert progress.text() == "1 packages compiled"


def test_messages_of_the_compiler_are_no_packages() -> None:
    lines = ["# example.com/lib", "lib.go:3: undefined: x", "go: finding module", ""]
    assert read(BuildProgress(PACKAGES), *lines) == [False] * 4


def test_a_build_reports_while_it_runs_how_many_packages_are_compiled(go: Path, tmp_path: Path) -> None:
    reported: list[str] = []

    def report(text: str) -> None:
        reported.append(text)
        if "2 of at most 3 packages compiled" in text:
            go.touch()

    build_go("build", ".", work=tmp_path, cwd=tmp_path, report=report, interval_s=0.01)
    assert reported[-1].startswith("  go build: 2 of at most 3 packages compiled, ")


def test_a_build_that_fails_is_reported_with_the_messages_of_the_compiler_alone(go: Path, tmp_path: Path) -> None:
    with pytest.raises(ServerFailedError) as failed:
        run_go(["fail"], work=tmp_path, cwd=tmp_path)
    assert str(failed.value).endswith("go fail failed:\n# example.com/lib\nlib.go:3: undefined: x\n")
