"""The resident memory of the JVM and of the Python workers, from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class PeakRss(NamedTuple):
    """Peak resident memory in bytes, of the JVM and of the largest Python worker. None: unknown."""

    jvm: int | None = None
    python: int | None = None


def peak_rss(parent: int | None = None, proc: Path = _PROC) -> PeakRss:
    """The peaks of the running descendants of process `parent` (default: this one); unknown without /proc."""
    jvm = python = None
    for pid, name in _descendants(os.getpid() if parent is None else parent, proc):
        peak = _peak(pid, proc)
        if peak is None:
            continue
        if name == "java":
            jvm = max(jvm or 0, peak)
        elif name.startswith("python"):
            python = max(python or 0, peak)
    return PeakRss(jvm, python)


def _descendants(parent: int, proc: Path) -> list[tuple[int, str]]:
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in proc.iterdir() if proc.is_dir() else ():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                children.setdefault(int(rest.split()[1]), []).append((int(entry.name), name))
            except (OSError, IndexError, ValueError):
                continue
    found: list[tuple[int, str]] = []
    waiting = [parent]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [pid for pid, _ in below]
    return found


def _peak(pid: int, proc: Path) -> int | None:
    try:
        for line in (proc / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return None
