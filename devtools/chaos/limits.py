"""Limits for a process and all it starts: a small temporary folder, a control group's memory, the size of its files.

Whatever is mounted is mounted in a namespace of the process itself, so nothing stays behind however this ends.
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
    """Whether a process may have a file system of its own at its temporary folder."""
    if shutil.which("unshare") is None:
        return False
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return probe.returncode == 0


def in_small_folder(folder: Path, size: int) -> list[str]:
    """The words before a command that make `folder` a file system of `size` bytes, for that command alone."""
    script = f'mount -t tmpfs -o size={size} s3sink-chaos "$0" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(folder)]


@contextlib.contextmanager
def filled(pid: int, folder: Path, size: int) -> Iterator[bool]:
    """The small folder of the process `pid` has no byte left, until the block ends; whether that was possible."""
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
    """No process of the session can write beyond `size` bytes of a file, until the block ends."""
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
    """A control group (version 1) with a limit in bytes; `possible` says whether this machine lets us have one."""

    def __init__(self, limit: int) -> None:
        self.folder = _MEMORY / f"{_NAME}{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.folder.mkdir()
        (self.folder / "memory.limit_in_bytes").write_text(str(limit))

    @staticmethod
    def possible() -> bool:
        return (_MEMORY / "memory.limit_in_bytes").exists() and os.access(_MEMORY, os.W_OK)

    @property
    def words(self) -> list[str]:
        """The words before a command that put it into the group."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.folder)]

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed for want of memory."""
        for line in (self.folder / "memory.oom_control").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0

    @property
    def peak(self) -> int:
        """Most bytes that were in use."""
        return int((self.folder / "memory.max_usage_in_bytes").read_text())

    def remove(self) -> None:
        """Removes the group once its processes are gone."""
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
