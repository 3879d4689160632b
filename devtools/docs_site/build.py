"""Builds the documentation site with MkDocs, strictly: a broken link or anchor is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from devtools.docs_site.packages import mermaid, packages
from devtools.processes import ServerFailedError

ROOT = Path(__file__).resolve().parents[2]
_NOTICE = "NO_MKDOCS_2_WARNING"  # the theme's advertisement of its successor


def run(program: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs `mkdocs` or `mike`, with its output in the result. Raises ServerFailedError without the packages."""
    env = {"PYTHONPATH": str(packages()), "S3SINK_MERMAID": str(mermaid()), _NOTICE: "1"}
    # mike starts mkdocs by its name.
    env["PATH"] = os.pathsep.join([str(packages() / "bin"), os.environ["PATH"]])
    command = [sys.executable, "-m", _MODULES[program], *map(str, words)]
    return subprocess.run(command, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False)


_MODULES = {"mkdocs": "mkdocs", "mike": "mike.driver"}


def build(folder: Path, *, extra: Sequence[str] = ()) -> None:
    """Writes the site into `folder`. Raises ServerFailedError with MkDocs' messages if one of them is a warning."""
    done = run("mkdocs", "build", "--strict", "--site-dir", folder, *extra)
    if done.returncode:
        raise ServerFailedError(f"the documentation has errors:\n{done.stdout}{done.stderr}")
