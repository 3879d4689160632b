"""VersityGW's program, built by Go from the pinned modules of `src/`.

Only the standard library is imported here: the program is built while packages are installed.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from devtools.go_tool import build_go, building, go_version, locked
from sink_job.engine.cache import cache_dir

_SOURCES = Path(__file__).parent / "src"
_SOURCE_FILES = ("main.go", "go.mod", "go.sum")


def versitygw_binary() -> Path:
    """VersityGW's program: from the cache, else built once by Go; `ServerFailedError` where that is impossible."""
    program = _program()
    with locked(program.parent):
        if not program.exists():
            with building([program]) as work:
                build_go("build", ".", "-ldflags=-s -w", output=work / "versitygw", work=work, cwd=_SOURCES)
                (work / "versitygw").rename(program)
    return program


def versitygw_possible() -> bool:
    """Whether `versitygw_binary` can give one: it is built already, or Go is installed."""
    return _program().exists() or shutil.which("go") is not None


def _program() -> Path:
    """The name contains a hash of the sources and of the Go version, so a program of other ones has another name."""
    digest = hashlib.sha256(go_version(_SOURCES).encode())
    for name in _SOURCE_FILES:
        digest.update((_SOURCES / name).read_bytes())
    return cache_dir() / "bin" / f"versitygw-{digest.hexdigest()[:12]}"
