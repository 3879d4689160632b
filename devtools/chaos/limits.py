"""Limits for a process and its children: a small temporary folder, a control group's memory, the size of files.

Mounts are made in a namespace of the process, so they never remain after its end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from devtools.processes import in_session

_MEMORY = Path("/sys/fs/cgroup/memory")
_PAUSE_SECONDS = 0.05
_NAME = "s3sink-chaos-"


def may_mount() -> bool:
    """Whether a process can have its own file system at its temporary folder."""
    if shutil.which("unshare") is None:
        return False
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return probe.returncode == 0


def in_small_folder(folder: Path, size: int) -> list[str]:
    """The command prefix that makes `folder` a file system of `size` bytes, for that command only."""
    script = f'mount -t tmpfs -o size={size} s3sink-chaos "$0" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(folder)]


@contextlib.contextmanager
def filled(pid: int, folder: Path, size: int) -> Iterator[bool]:
    """Fills the small folder of the process `pid` until the block ends; yields whether this was possible."""
    filler = Path(f"/proc/{pid}/root{folder}/filler")
    try:
        full = False
        try:
            with filler.open("wb", buffering=0) as out:
                for _ in range(0, size + 1, 1 << 12):
                    out.write(bytes(1 << 12))
        except OSError as error:
            full = error.errno == errno.ENOSPC
        yield full
    finally:
        with contextlib.suppress(OSError):
            filler.unlink()


@contextlib.contextmanager
def limited_files(session: int, size: int) -> Iterator[None]:
    """Limits the files of all processes of the session to `size` bytes until the block ends."""
    kept: dict[int, tuple[int, int]] = {}
    try:
        for pid in in_session(session):
            with contextlib.suppress(ProcessLookupError):
                kept[pid] = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, kept[pid][1]))
        yield
    finally:
        for pid in in_session(session):
            hard = kept.get(pid, next(iter(kept.values()), (0, resource.RLIM_INFINITY)))[1]
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


class MemoryGroup:
    """A control group (version 1) with a limit in bytes; `possible` returns whether this machine allows one."""

    def __init__(self, limit: int) -> None:
        self.folder = _MEMORY / f"{_NAME}{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.folder.mkdir()
        (self.folder / "memory.limit_in_bytes").write_text(str(limit))

    @staticmethod
    def possible() -> bool:
        return (_MEMORY / "memory.limit_in_bytes").exists() and os.access(_MEMORY, os.W_OK)

    @property
    def words(self) -> list[str]:
        """The command prefix that puts a command into the group."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.folder)]

    @property
    def kills(self) -> int:
        """The number of processes that the kernel has killed because the group was out of memory."""
        for line in (self.folder / "memory.oom_control").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0

    @property
    def peak(self) -> int:
        """Peak memory in bytes."""
        return int((self.folder / "memory.max_usage_in_bytes").read_text())

    def remove(self) -> None:
        """Removes the group after its processes have ended."""
        for _ in range(100):
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(_PAUSE_SECONDS)


def remove_old_groups() -> None:
    """Removes the groups of runs that were killed."""
    for folder in _MEMORY.glob(f"{_NAME}*"):
        if not Path("/proc", folder.name.removeprefix(_NAME).partition("-")[0]).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
