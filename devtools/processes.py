"""Processes that are started here and ended here: by their id, in a session of their own, with nothing left behind.

Everything a process starts stays in its session (Linux: `setsid`), also what moves to a process group of its own as
PySpark's worker daemon does; so "all of it" is the session.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.02


class ServerFailedError(RuntimeError):
    """A server did not come up or did not end; the message carries the end of its log."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address which nothing listens on now, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until(
    is_so: Callable[[], bool], what: str, *, seconds: float, unless: Callable[[], str | None] | None = None
) -> None:
    """Returns as soon as `is_so`.

    Raises `ServerFailedError` after `seconds`, and at once when `unless` gives a reason why it never will be.
    """
    end = time.monotonic() + seconds
    while not is_so():
        reason = unless() if unless else None
        if reason is not None:
            raise ServerFailedError(f"{what}: {reason}")
        if time.monotonic() > end:
            raise ServerFailedError(f"{what}: not within {seconds:g} s")
        time.sleep(_POLL_SECONDS)


def accepts_connections(port: int, host: str = LOOPBACK) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def in_session(session: int) -> list[int]:
    """The processes of `session` (the id of the one that began it) that still run; zombies do not."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # pid (name) state ppid pgrp session …; the name may hold anything, so count from its closing bracket.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def signal_session(session: int, signal_number: int) -> None:
    """Sends a signal to every process of `session`."""
    for pid in in_session(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)


def kill_session(session: int) -> None:
    """SIGKILL for every process of `session`, stopped first so that none can act on another's death."""
    signal_session(session, signal.SIGSTOP)
    while in_session(session):
        signal_session(session, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


class Process:
    """A command in a session of its own, its output in a file.

    `with_parent`: it dies with this process, however this one ends. Without it (servers that are to be left running)
    nothing is ended at exit.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        with_parent: bool = True,
    ) -> None:
        self.log_path = log
        self._name = Path(command[0]).name
        self._with_parent = with_parent
        self._popen = self._start([*map(str, command)], log, {**os.environ, **(env or {})}, cwd)
        if with_parent:
            atexit.register(self.kill)

    def _start(
        self, command: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path | None
    ) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [*(_dying_with_parent() if self._with_parent else ()), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, which is the id of its session too."""
        return self._popen.pid

    @property
    def log(self) -> str:
        """What the process has written so far."""
        return self.log_path.read_text(errors="replace")

    def running(self) -> bool:
        return self._popen.poll() is None

    def wait(self, seconds: float) -> int:
        """The exit code (negative: the signal that ended it); `ServerFailedError` when it does not end in time."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ServerFailedError(f"{self}: still running after {seconds:g} s\n{self.last_lines()}") from None

    def terminate(self, seconds: float = 20) -> int:
        """SIGTERM to the process alone, as a supervisor does; whatever is left of its session afterwards is killed."""
        if self.running():
            self._popen.terminate()
        try:
            return self.wait(seconds)
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL for the process and all it started, now; nothing of it runs when this returns."""
        kill_session(self.pid)
        self._popen.wait()
        atexit.unregister(self.kill)

    def kill_alone(self) -> None:
        """SIGKILL for the process but not for what it started."""
        self._popen.kill()
        self._popen.wait()

    def pause(self) -> None:
        """SIGSTOP for all of it."""
        signal_session(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT for all of it."""
        signal_session(self.pid, signal.SIGCONT)

    def last_lines(self, count: int = 30) -> str:
        return "\n".join(self.log.splitlines()[-count:])

    def failed(self) -> str | None:
        """Why it is not running any more, for `wait_until`; None while it runs."""
        return None if self.running() else f"ended with {self._popen.returncode}\n{self.last_lines()}"

    def __str__(self) -> str:
        return f"{self._name} ({self.pid})"


@contextlib.contextmanager
def killed_at_end(process: Process) -> Iterator[Process]:
    try:
        yield process
    finally:
        process.kill()


def _dying_with_parent() -> list[str]:
    """The words before a command (util-linux) that make the kernel end it when this process is gone, also by SIGKILL.

    The kernel watches the thread that started it, so only the main thread, which lives long enough, asks for it.
    """
    setpriv = shutil.which("setpriv")
    if setpriv and threading.current_thread() is threading.main_thread():
        return [setpriv, "--pdeathsig", "KILL"]
    return []
