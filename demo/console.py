"""The demo's output: a heading for each step, a progress bar, and plain lines without a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from devtools.processes import ServerFailedError
from sink_job.api.errors import SinkError

_PIPED_WIDTH = 110
_REPORT_EVERY_S = 5.0
Advance = Callable[[int], None]


class Show:
    """The console of one run; it counts the steps and the time."""

    def __init__(self) -> None:
        terminal = Console()
        self.console = terminal if terminal.is_terminal else Console(width=_PIPED_WIDTH, highlight=False)
        self._began = self._lap = time.monotonic()
        self._step = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def outcome(self, play: Callable[[], int]) -> int:
        """Runs `play` and returns its exit code. Prints a failure without a traceback; Ctrl-C returns 130."""
        try:
            return play()
        except (ServerFailedError, SinkError, AssertionError) as error:
            self.console.print(f"[red]the demo failed[/red] after {self.seconds:.0f} s")
            self.console.print(str(error), markup=False, highlight=False)
            return 1
        except KeyboardInterrupt:
            return 130

    def result(self, good: bool) -> int:
        """Prints the result; returns the exit code."""
        self.console.print(
            f"\n[bold]{'All checks passed' if good else 'A check failed'}[/bold], in {self.seconds:.0f} s."
        )
        return 0 if good else 1

    def lap(self) -> float:
        """Seconds since the start of the step or the previous lap."""
        before, self._lap = self._lap, time.monotonic()
        return self._lap - before

    def step(self, title: str) -> None:
        self._step += 1
        self._lap = time.monotonic()
        self.console.print(f"\n[bold]{self._step}. {title}[/bold]")

    def say(self, text: str) -> None:
        self.console.print(f"   {text}", soft_wrap=True)

    @contextmanager
    def bar(self, what: str, total: int, unit: str) -> Iterator[Advance]:
        """A progress bar on a terminal, otherwise lines. Yields a function that sets the completed number."""
        began = reported = time.monotonic()
        last = 0
        columns = (SpinnerColumn(), TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as progress:
            task = progress.add_task(what, total=total)

            def advance(done: int) -> None:
                nonlocal last, reported
                last = done
                progress.update(task, completed=done)
                if not self.console.is_terminal and time.monotonic() - reported >= _REPORT_EVERY_S:
                    reported = time.monotonic()
                    self.say(f"{what}: {done:,} of {total:,} {unit} after {reported - began:.0f} s")

            yield advance
        self.say(f"{what}: {last:,} of {total:,} {unit} in {time.monotonic() - began:.1f} s")

    @contextmanager
    def spinner(self, what: str) -> Iterator[None]:
        """A spinner on a terminal during work without a known length; otherwise a line every few seconds."""
        if self.console.is_terminal:
            with self.console.status(what):
                yield
            return
        began, over = time.monotonic(), threading.Event()

        def report() -> None:
            while not over.wait(_REPORT_EVERY_S):
                self.say(f"{what}: {time.monotonic() - began:.0f} s")

        thread = threading.Thread(target=report, name="spinner", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
