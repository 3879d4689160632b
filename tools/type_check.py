"""Runs mypy. A checkout without mypy's cache takes that of the last successful check of any checkout of the user.

Checking all files from nothing takes 90 s of CPU time. mypy compares the content of each file with its cache, so a
cache of other code, another mypy or other packages costs time and never changes a result. Only the standard library is
used.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sink_job.engine.cache import cache_dir

ROOT = Path(__file__).resolve().parent.parent
NAME = ".mypy_cache"
PROGRAM = Path(sys.executable).with_name("mypy")


def main(arguments: Sequence[str]) -> int:
    """The exit code of mypy."""
    own, kept = ROOT / NAME, cache_dir() / "mypy"
    take(kept, own)
    code = subprocess.run([PROGRAM, *arguments], cwd=ROOT, check=False).returncode
    if code == 0 and not arguments:
        keep(own, kept)
    return code


def take(kept: Path, own: Path) -> None:
    """Copies the cache of the user to a checkout that has none."""
    if not own.exists() and kept.exists():
        with contextlib.suppress(OSError), _locked(kept):
            _copy(kept, own)


def keep(own: Path, kept: Path) -> None:
    """Replaces the cache of the user if mypy has changed that of the checkout since."""
    if _changed(own) > _changed(kept):
        with contextlib.suppress(OSError), _locked(kept):
            _copy(own, kept)


def _changed(folder: Path) -> float:
    """When a file below the folder was last changed; 0 without files."""
    return max((path.stat().st_mtime for path in folder.rglob("*") if path.is_file()), default=0.0)


def _copy(source: Path, target: Path) -> None:
    """Puts a copy with the same times in place of `target` in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}-", ignore_cleanup_errors=True) as work:
        copy = Path(work, "new")
        shutil.copytree(source, copy)
        if target.exists():
            target.rename(Path(work, "old"))
        copy.rename(target)


@contextlib.contextmanager
def _locked(kept: Path) -> Iterator[None]:
    """Only one process at a time copies from or to the cache of the user."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_name(".mypy-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
