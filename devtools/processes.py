"""Starts and ends processes by their id, each in its own session, without leaving processes behind.

All child processes stay in the session (Linux: `setsid`), including those that create their own process group, as
PySpark's worker daemon does. Functions that act on "the process and its children" therefore act on the session.
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
_PAUSE_FACTOR = 9
_MAX_PAUSE_SECONDS = 0.25


class ServerFailedError(RuntimeError):
    """A server did not start or did not end; the message contains the end of its log."""


def free_ports(count: int) -> list[int]:
    """Distinct ports of the loopback address without a listener."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until(
    is_so: Callable[[], bool], what: str, *, seconds: float, unless: Callable[[], str | None] | None = None
) -> None:
    """Returns as soon as `is_so` holds. The pause between two calls grows with the time that a call takes: a request
    to a server costs CPU time here and there.

    Raises `ServerFailedError` after `seconds`, or as soon as `unless` returns a reason why it cannot hold.
    """
    end = time.monotonic() + seconds
    while True:
        begin = time.monotonic()
        if is_so():
            return
        spent = time.monotonic() - begin
        reason = unless() if unless else None
        if reason is not None:
            raise ServerFailedError(f"{what}: {reason}")
        if time.monotonic() > end:
            raise ServerFailedError(f"{what}: timeout after {seconds:g} s")
        time.sleep(min(max(_POLL_SECONDS, _PAUSE_FACTOR * spent), _MAX_PAUSE_SECONDS))


def accepts_connections(port: int, host: str = LOOPBACK) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def in_session(session: int) -> list[int]:
    """The running processes of `session` (the id of its first process), without zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # pid (name) state ppid pgrp session …; the name may contain any character, so count from its closing
            # bracket.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def proportional_set_size(process: Path) -> int:
    """The memory of a process in bytes with its share of shared pages (PSS); `process` is its folder in /proc.

    0 if it has ended.
    """
    try:
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def signal_session(session: int, signal_number: int) -> None:
    """Sends a signal to every process of `session`."""
    for pid in in_session(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)


def kill_session(session: int) -> None:
    """Kills every process of `session`; stops them first, so that none reacts to the end of another."""
    signal_session(session, signal.SIGSTOP)
    while in_session(session):
        signal_session(session, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


class Process:
    """A command in its own session, with its output in a file.

    With `with_parent` it ends with this process, however this one ends. Without it (for servers that keep running)
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
        """The process id, which is also the id of its session."""
        return self._popen.pid

    @property
    def log(self) -> str:
        """The output of the process so far."""
        return self.log_path.read_text(errors="replace")

    def running(self) -> bool:
        return self._popen.poll() is None

    def wait(self, seconds: float) -> int:
        """The exit code (negative: the signal that ended it). Raises `ServerFailedError` on timeout."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ServerFailedError(f"{self}: still running after {seconds:g} s\n{self.last_lines()}") from None

    def terminate(self, seconds: float = 20) -> int:
        """Sends SIGTERM to the process only, as a supervisor does; then kills the rest of its session."""
        if self.running():
            self._popen.terminate()
        try:
            return self.wait(seconds)
        finally:
            self.kill()

    def kill(self) -> None:
        """Sends SIGKILL to the process and its children; none of them runs when this returns."""
        kill_session(self.pid)
        self._popen.wait()
        atexit.unregister(self.kill)

    def kill_alone(self) -> None:
        """Sends SIGKILL to the process but not to its children."""
        self._popen.kill()
        self._popen.wait()

    def pause(self) -> None:
        """Sends SIGSTOP to the process and its children."""
        signal_session(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Sends SIGCONT to the process and its children."""
        signal_session(self.pid, signal.SIGCONT)

    def last_lines(self, count: int = 30) -> str:
        return "\n".join(self.log.splitlines()[-count:])

    def failed(self) -> str | None:
        """The reason why it has ended, for `wait_until`; None while it runs."""
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
    """The command prefix (util-linux) that makes the kernel end a command with this process, also after a SIGKILL.

    The kernel observes the starting thread, so only the main thread, which lives long enough, uses it.
    """
    setpriv = shutil.which("setpriv")
    if setpriv and threading.current_thread() is threading.main_thread():
        return [setpriv, "--pdeathsig", "KILL"]
    return []
