"""Argo CD's own code for health checks and actions, built by Go from the pinned modules of `src/`.

Only the standard library is imported here: the program is built while packages are installed.
"""

from __future__ import annotations

from pathlib import Path

from devtools.go_tool import built_programs

_SOURCES = Path(__file__).parent / "src"
_NAME = "argocd-customization"


def argocd_customization() -> Path:
    """The program of `src/main.go`: from the cache, else built once. Raises `ServerFailedError` where that fails."""
    return built_programs("argocd", _SOURCES, {_NAME: "."})[_NAME]
