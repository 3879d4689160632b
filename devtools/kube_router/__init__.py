"""kube-router, whose controller of NetworkPolicies enforces them, built by Go from the pinned module of `src/`.

Only the standard library is imported here: the program is built while packages are installed.
"""

from __future__ import annotations

from pathlib import Path

from devtools.go_tool import built_programs

_SOURCES = Path(__file__).parent / "src"
_NAME = "kube-router"


def kube_router() -> Path:
    """The program: from the cache, else built once. Raises `ServerFailedError` where that is impossible."""
    return built_programs(_NAME, _SOURCES, {_NAME: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"})[_NAME]
