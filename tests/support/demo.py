"""Runs of `make demo`."""

from __future__ import annotations

import sys
from pathlib import Path

from devtools.processes import Process, killed_at_end
from devtools.sink_process import LAUNCHER

_ROOT = Path(__file__).resolve().parents[2]
_JAVA = {**LAUNCHER, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""As SHORT_RUN of `devtools.sink_process`, for the demo's own manifests."""


def demo_output(directory: Path, *arguments: str) -> str:
    """The output of the demo. Raises AssertionError if it fails, prints a warning or leaves temporary files."""
    temporary = directory / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "demo", "run", *arguments]
    process = Process(command, log=directory / "log", cwd=_ROOT, env={**_JAVA, "TMPDIR": str(temporary)})
    with killed_at_end(process):
        assert process.wait(900) == 0, process.log
    assert not any(word in process.log for word in ("Warning", "Traceback", "Task was destroyed", "never retrieved"))
    assert [path.name for path in temporary.iterdir() if "s3sink" in path.name] == []
    return process.log
