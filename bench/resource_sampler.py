"""CPU and memory of process trees from /proc, by role: the JVM, the Python workers, the driver, the servers.

A thread of the bench's process takes four samples a second, so the measured processes do no additional work. The CPU
time of a process after its last sample is lost (at most a quarter of a second).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devtools.processes import proportional_set_size

_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_EVERY_S = 0.25
_PSS_EVERY = 4  # samples: a read makes the kernel walk all pages


@dataclass(frozen=True)
class Sample:
    """One sample. `cpu`: seconds so far by role. `rss`: bytes by role. `pss`: bytes, shared pages counted once."""

    cpu: Mapping[str, float]
    rss: Mapping[str, int]


@dataclass
class Peaks:
    """The peak sums in bytes: by role, and of the tree (all except the servers) by RSS and by PSS."""

    rss: dict[str, int] = field(default_factory=dict)
    tree_rss: int = 0
    tree_pss: int = 0


class Sampler:
    """Samples the session of process `root` and the servers' sessions inside a `with` block."""

    def __init__(self, root: int, servers: Mapping[str, int]) -> None:
        """`servers`: role to the id of a server's session."""
        self._sessions = {root: None, **{pid: name for name, pid in servers.items()}}
        self._root = root
        self._servers = set(servers)
        self._cpu: dict[int, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._peaks = Peaks()
        self._samples = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def sample(self) -> Sample:
        """Takes a sample, which also counts for the peaks."""
        with self._lock:
            return self._sample()

    def take_peaks(self) -> Peaks:
        """The peaks since the last call."""
        with self._lock:
            peaks, self._peaks = self._peaks, Peaks()
            return peaks

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self.sample()

    def _sample(self) -> Sample:
        rss: dict[str, int] = {}
        pss = 0
        self._samples += 1
        for entry in _PROC.iterdir():
            if entry.name.isdigit() and (found := self._one(entry)):
                role, resident = found
                rss[role] = rss.get(role, 0) + resident
                if role not in self._servers and self._samples % _PSS_EVERY == 0:
                    pss += proportional_set_size(entry)
        cpu: dict[str, float] = {}
        for role, seconds in self._cpu.values():
            cpu[role] = cpu.get(role, 0.0) + seconds
        peaks = self._peaks
        for role, size in rss.items():
            peaks.rss[role] = max(peaks.rss.get(role, 0), size)
        peaks.tree_rss = max(peaks.tree_rss, sum(size for role, size in rss.items() if role not in self._servers))
        peaks.tree_pss = max(peaks.tree_pss, pss)
        return Sample(cpu, rss)

    def _one(self, entry: Path) -> tuple[str, int] | None:
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            return None
        fields = rest.split()
        session, pid = int(fields[3]), int(entry.name)
        if session not in self._sessions:
            return None
        role = self._sessions[session] or self._role(pid, name)
        self._cpu[pid] = role, (int(fields[11]) + int(fields[12])) / _TICK
        return role, int(fields[21]) * _PAGE

    def _role(self, pid: int, name: str) -> str:
        if pid == self._root:
            return "driver"
        return "jvm" if name == "java" else "workers"


def spent(before: Sample, after: Sample) -> dict[str, float]:
    """CPU seconds by role between two samples."""
    return {role: round(seconds - before.cpu.get(role, 0.0), 2) for role, seconds in after.cpu.items()}
