"""kube-state-metrics, built by Go from the pinned module of `src/`.

Only the standard library is imported here: the program is built while packages are installed.
"""

from __future__ import annotations

from pathlib import Path

from devtools.go_tool import built_programs

_SOURCES = Path(__file__).parent / "src"
_NAME = "kube-state-metrics"


def kube_state_metrics() -> Path:
    """The program: from the cache, else built once. Raises `ServerFailedError` where that is impossible."""
    return built_programs("kube-state-metrics", _SOURCES, {_NAME: "k8s.io/kube-state-metrics/v2"})[_NAME]
