"""Runs the steps of a preparation side by side, each as soon as those before it are done, and reports their progress.

Only the standard library is used: it runs before any package is installed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

PROGRESS_SECONDS = 5.0
_WORTH_A_LINE_S = 1.0
_END_SECONDS = 10.0
_TAIL = 4000

Report = Callable[[str], None]


class StepFailedError(RuntimeError):
    """A step ended with an error; the message carries the end of its output."""


@dataclass(frozen=True)
class Step:
    """`run` does the work and reports what it is doing; `after` names the steps that come first."""

    run: Callable[[Report], None]
    after: Sequence[str] = ()


def command(
    words: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str] | None = None
) -> Callable[[Report], None]:
    """The work of a step that is a process: each line of its output is reported. Raises StepFailedError."""

    def run(report: Report) -> None:
        run_process(words, report, cwd=cwd, env=env)

    return run


def run_process(
    words: Sequence[str | Path], report: Report, *, cwd: Path, env: Mapping[str, str] | None = None
) -> None:
    """Runs a process to its end and reports each line of its output; StepFailedError when it fails."""
    if _ending.is_set():
        raise StepFailedError("another step failed")
    output: list[str] = []
    with (
        subprocess.Popen(
            [*map(str, words)],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process,
        _running(process),
    ):
        for line in process.stdout or ():
            output.append(line)
            if line.strip():
                report(line.strip())
    if process.returncode:
        shown = " ".join(map(str, words))
        raise StepFailedError(f"{shown} ended with exit code {process.returncode}:\n{''.join(output)[-_TAIL:]}")


def run_steps(title: str, steps: Mapping[str, Step], *, out: TextIO = sys.stdout) -> None:
    """Runs all steps; returns when all are done. The first failure ends the others and is raised."""
    with _Progress(title, out) as progress, ThreadPoolExecutor(max(1, len(steps))) as pool:
        waiting, running, done = dict(steps), dict[Future[None], str](), set[str]()
        try:
            while waiting or running:
                for name in [name for name, step in waiting.items() if done.issuperset(step.after)]:
                    running[pool.submit(_timed, progress, name, waiting.pop(name))] = name
                if not running:
                    raise ValueError(f"the steps {', '.join(waiting)} wait for steps that are not there")
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    future.result()
                    done.add(running.pop(future))
        except BaseException:
            end_processes()
            wait(running)
            raise
        finally:
            _ending.clear()


def _timed(progress: _Progress, name: str, step: Step) -> None:
    progress.begin(name)
    try:
        step.run(lambda text: progress.say(name, text))
    except BaseException:
        progress.end(name, "failed")
        raise
    progress.end(name, "done")


class _Progress:
    """One line that is overwritten on a terminal; elsewhere a line every `PROGRESS_SECONDS`."""

    def __init__(self, title: str, out: TextIO) -> None:
        self._title = title
        self._out = out
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._running: dict[str, tuple[float, str]] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> _Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def begin(self, name: str) -> None:
        with self._lock:
            self._running[name] = (time.monotonic(), "")

    def say(self, name: str, text: str) -> None:
        with self._lock:
            self._running[name] = (self._running[name][0], text)

    def end(self, name: str, how: str) -> None:
        with self._lock:
            seconds = time.monotonic() - self._running.pop(name)[0]
            if seconds >= _WORTH_A_LINE_S:
                self._write(f"{self._title}: {name}: {how} in {seconds:.0f} s", last=True)

    def _tick(self) -> None:
        on_terminal = self._out.isatty()
        while not self._closed.wait(1.0 if on_terminal else PROGRESS_SECONDS):
            with self._lock:
                states = [f"{name} ({text[:60]})" if text else name for name, (_, text) in self._running.items()]
                if states:
                    line = f"{self._title}: {time.monotonic() - self._began:.0f} s: {', '.join(states)}"
                    self._write(line, last=not on_terminal)

    def _write(self, line: str, *, last: bool) -> None:
        if self._out.isatty():
            line = f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}"
        print(line, end="\n" if last else "", file=self._out, flush=True)


_processes: set[subprocess.Popen[str]] = set()
_processes_lock = threading.Lock()
_ending = threading.Event()


@contextlib.contextmanager
def _running(process: subprocess.Popen[str]) -> Iterator[None]:
    with _processes_lock:
        _processes.add(process)
    try:
        yield
    finally:
        with _processes_lock:
            _processes.discard(process)


def ending() -> bool:
    """Whether the steps are being ended, after an interrupt or the failure of one."""
    return _ending.is_set()


def end_processes() -> None:
    """Interrupts the processes of all steps, so that they remove their temporary files, and then kills them."""
    _ending.set()
    with _processes_lock:
        left = [*_processes]
    for number, seconds in ((signal.SIGINT, _END_SECONDS), (signal.SIGKILL, _END_SECONDS)):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        for process in left:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
        left = [process for process in left if process.poll() is None]
