"""promtool and Prometheus, built by Go from the pinned module of `src/`.

Only the standard library is imported here: the programs are built while packages are installed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from devtools.go_tool import building, go_version, locked, run_go
from sink_job.spark.cache import cache_dir

_SOURCES = Path(__file__).parent / "src"
_SOURCE_FILES = ("go.mod", "go.sum")
_PACKAGE = "github.com/prometheus/prometheus/cmd/"
_NAMES = ("promtool", "prometheus")
_TAGS = "remove_all_sd"  # targets come from the configuration and from files


class Programs(NamedTuple):
    """The paths of both programs."""

    promtool: Path
    prometheus: Path


def prometheus_programs() -> Programs:
    """Both programs: from the cache, else built once by Go. Raises `ServerFailedError` where that is impossible."""
    folder = _folder()
    programs = Programs(*(folder / name for name in _NAMES))
    with locked(folder):
        if not all(program.exists() for program in programs):
            with building(programs) as work:
                packages = [_PACKAGE + name for name in _NAMES]
                words = ["build", "-ldflags=-s -w", "-tags", _TAGS, "-o", f"{work}/"]
                run_go([*words, *packages], work=work, cwd=_SOURCES)
                for program in programs:
                    (work / program.name).rename(program)
    return programs


def _folder() -> Path:
    """The name contains a hash of the sources and of the Go version, so programs of other ones are elsewhere."""
    digest = hashlib.sha256(f"{_TAGS} {go_version(_SOURCES)}".encode())
    for name in _SOURCE_FILES:
        digest.update((_SOURCES / name).read_bytes())
    return cache_dir() / "bin" / f"prometheus-{digest.hexdigest()[:12]}"
