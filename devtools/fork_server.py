"""Processes that begin in a tenth of a second: forked from one that has imported what they run.

A Python program of ours takes seconds to import what it stands on, which counts where a test starts it fifty times. The
parent (multiprocessing's fork server) has read the modules, and nothing else has happened in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_POLL_SECONDS = 0.005
_PR_SET_PDEATHSIG = 1


def forked(
    main: Callable[[Sequence[str]], int],
    argv: Sequence[str],
    *,
    imports: Sequence[str],
    log: Path,
    env: Mapping[str, str],
    cwd: Path | None,
) -> Any:
    """`main(argv)` in a process and session of its own, as `subprocess.Popen`; it dies with this process.

    `main` is a function of a module, and returns the exit code. `imports` are the modules that the parent reads: those
    of the first call. What they take from the environment at import is the parent's.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*imports])
    return _Popen(context.Process(target=_run, args=(main, [*argv], log, dict(env), cwd), daemon=True))


class _Popen:
    """What `devtools.processes.Process` uses of `subprocess.Popen`, for any thread."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._lock = threading.Lock()
        process.start()
        self.pid: int = process.pid
        while (
            self.poll() is None and os.getsid(self.pid) != self.pid
        ):  # until then it would not be found by its session
            time.sleep(_POLL_SECONDS)

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        with self._lock:
            found: int | None = self._process.exitcode
            return found

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self._process), timeout or 0)
            time.sleep(_POLL_SECONDS)
        return code

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def _run(
    main: Callable[[Sequence[str]], int], argv: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path | None
) -> None:
    """In the child: as if it had been started by `Process`."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(env)
    if cwd is not None:
        os.chdir(cwd)
    os.setsid()
    sys.exit(main(argv))
