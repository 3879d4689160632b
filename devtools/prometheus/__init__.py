"""promtool and Prometheus, built by Go from the pinned module of `src/`.

Only the standard library is imported here: the programs are built while packages are installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from devtools.go_tool import built_programs

_SOURCES = Path(__file__).parent / "src"
_PACKAGE = "github.com/prometheus/prometheus/cmd"
_TAGS = "remove_all_sd"  # targets come from the configuration and from files


class Programs(NamedTuple):
    """The paths of both programs."""

    promtool: Path
    prometheus: Path


def prometheus_programs() -> Programs:
    """Both programs: from the cache, else built once. Raises `ServerFailedError` where that is impossible."""
    packages = {name: f"{_PACKAGE}/{name}" for name in Programs._fields}
    return Programs(**built_programs("prometheus", _SOURCES, packages, tags=_TAGS))
