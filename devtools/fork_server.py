"""Processes that start in a tenth of a second: they are forked from a process with all imports.

The imports of the product's programs take seconds, which matters if a test starts them fifty times. The parent
(multiprocessing's fork server) has imported the modules and done nothing else.
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
    """Runs `main(argv)` in its own process and session, as `subprocess.Popen` does; it ends with this process.

    `main` is a function of a module and returns the exit code. `imports` are the modules that the parent imports; those
    of the first call count. Modules that read the environment at import see that of the parent.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*imports])
    return _Popen(context.Process(target=_run, args=(main, [*argv], log, dict(env), cwd), daemon=True))


class _Popen:
    """The part of `subprocess.Popen` that `devtools.processes.Process` uses; thread-safe."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._lock = threading.Lock()
        process.start()
        self.pid: int = process.pid
        while self.poll() is None and os.getsid(self.pid) != self.pid:  # before, it would not be found by its session
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
    """Runs in the child: sets up the same environment as `Process`."""
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
