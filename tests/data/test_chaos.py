"""A short chaos run with real processes; `make chaos ARGS=--real` is the long one."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from devtools.processes import Process, in_session, killed_at_end, wait_until

pytestmark = [pytest.mark.data, pytest.mark.spark]


def chaos(folder: Path, *arguments: str) -> Process:
    """The command, with its temporary files in `folder`."""
    temp = folder / "t"
    temp.mkdir()
    command = [sys.executable, "-m", "devtools.chaos", "--real", *arguments]
    return Process(command, log=folder / "log", env={"TMPDIR": str(temp)})


def processes_of(folder: Path) -> list[int]:
    """The processes whose command line or working directory contains the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                named = str(folder).encode() in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if named:
                found.append(int(entry.name))
    return found


def test_three_faults_under_load_leave_every_record_in_one_object(tmp_path: Path) -> None:
    with killed_at_end(chaos(tmp_path, "--cycles", "3", "--seed", "1", "--report", str(tmp_path / "report"))) as run:
        assert run.wait(900) == 0, run.log
    figures = json.loads((tmp_path / "report.json").read_text())
    assert figures["cycles"] == 3
    assert figures["verified"] == 1
    assert figures["records"] > 0
    assert figures["findings"] == []
    assert list((tmp_path / "t").glob("s3chaos-*")) == []


def test_an_interrupted_run_ends_all_its_processes_and_removes_its_folder(tmp_path: Path) -> None:
    with killed_at_end(chaos(tmp_path, "--cycles", "1", "--seed", "1")) as run:
        wait_until(lambda: len(processes_of(tmp_path / "t")) >= 3, "broker, server and driver", seconds=200)
        os.kill(run.pid, signal.SIGINT)
        assert run.wait(60) == 1, run.log
        assert processes_of(tmp_path / "t") == []
        assert in_session(run.pid) == []
    assert list((tmp_path / "t").glob("s3chaos-*")) == []
