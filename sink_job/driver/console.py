"""Progress output: a live console on a terminal, log lines elsewhere.

Both show only data of the report, so they agree with `/report`. Log lines appear above the live console.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sink_job.api.report import PartitionReport, Report, RunState, Totals
from sink_job.driver.logs import LogHandler

LINE_EVERY_MS = 10_000
PUBLISH_LINE_EVERY_MS = 2_000
WINDOW_MS = 20_000
"""Time window for the rates on the live console, because rounds complete in bursts."""

_BESIDE_ROWS = 7  # lines of the console other than topic-partitions
_COLOURS = {RunState.RUNNING: "green", RunState.FAILED: "red", RunState.STOPPING: "yellow"}
_log = logging.getLogger(__name__)


class TaskCount(NamedTuple):
    """Completed and total tasks of the current round."""

    done: int
    total: int


class Rates:
    """Records and bytes per second over the last WINDOW_MS, or since the start."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int, int]] = deque()

    def add(self, report: Report) -> tuple[float, float]:
        """Adds a report; returns (records, bytes) per second."""
        now = report.now, report.totals.records, report.totals.bytes
        self._samples.append(now)
        while len(self._samples) > 2 and self._samples[1][0] <= now[0] - WINDOW_MS:
            self._samples.popleft()
        then = self._samples[0]
        seconds = (now[0] - then[0]) / 1000
        if seconds <= 0:
            return 0.0, 0.0
        return (now[1] - then[1]) / seconds, (now[2] - then[2]) / seconds


class LiveConsole:
    """Renders reports for the live console. `where` is the location of objects in the header."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._rates = Rates()

    def render(self, report: Report, *, height: int, tasks: TaskCount | None = None) -> RenderableType:
        """The console for a terminal of `height` lines, with the largest lag first."""
        return Group(
            Text(""),
            self._header(report, tasks),
            self._totals(report),
            _partitions(report, max(3, height - _BESIDE_ROWS)),
        )

    def _header(self, report: Report, tasks: TaskCount | None) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(report.name, style="bold").append(" → ").append(self._where)
        text.append(f"  {report.state.value}", style=_COLOURS.get(report.state, "cyan"))
        text.append(f"  {duration(report.now - report.started_at)}", style="dim")
        text.append(f"  round {_round(report, under_way=tasks is not None)}", style="dim")
        if tasks:
            text.append(f" ({tasks.done} of {tasks.total} tasks)", style="dim")
        return text

    def _totals(self, report: Report) -> Text:
        per_s, bytes_per_s = self._rates.add(report)
        totals = report.totals
        published = "none yet" if report.last_publish is None else f"{duration(report.now - report.last_publish)} ago"
        words = [
            f"{totals.records:,} records ({count(per_s)}/s)",
            f"{size(totals.bytes)} ({size(bytes_per_s)}/s)",
            f"{totals.objects:,} objects",
            f"{report.memory.open_objects:,} open",
            f"last publish {published}",
        ]
        problems = [f"{n:,} {what}" for n, what in (*_rejected_counts(totals), (totals.retries, "S3 retries")) if n]
        text = Text("  ".join(words))
        return text.append("  " + "  ".join(problems), style="yellow") if problems else text


def _round(report: Report, *, under_way: bool) -> int:
    """The record number of the round in the ledger, as in `/report` and `status`. It continues after a restart."""
    return (report.round or 0) + under_way


def _partitions(report: Report, rows: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("topic-partition", no_wrap=True)
    for title in ("committed", "end", "lag", "open"):
        table.add_column(title, justify="right", no_wrap=True)
    by_lag = sorted(report.partitions, key=lambda p: (-(p.lag or 0), p.topic, p.partition))
    shown = by_lag if len(by_lag) <= rows else by_lag[: rows - 1]
    for p in shown:
        table.add_row(f"{p.topic}-{p.partition}", f"{p.committed:,}", known(p.end), known(p.lag), str(p.open_objects))
    if rest := by_lag[len(shown) :]:
        table.add_row(f"and {len(rest):,} more", "", "", known(_lag(rest)), str(sum(p.open_objects for p in rest)))
    return table


class PlainConsole:
    """Renders reports as log lines, only after a change: at most one every 10 s, or every 2 s with new visible
    objects."""

    def __init__(self) -> None:
        self._logged: Report | None = None
        self._logged_at = 0
        self._logged_tasks: TaskCount | None = None

    def line(self, report: Report, read_tasks: Callable[[], TaskCount | None] = lambda: None) -> str | None:
        """The log line for this report; None if nothing changed or the last line is too recent."""
        logged = self._logged
        if logged is None:
            if report.state is not RunState.RUNNING or _lag(report.partitions) is None:
                return None
            self._mark_logged(report.model_copy(update={"totals": Totals()}))
            return f"running; {_open_and_lag(report)}"
        wait = PUBLISH_LINE_EVERY_MS if report.totals.objects > logged.totals.objects else LINE_EVERY_MS
        if report.now - self._logged_at < wait:
            return None
        if report.totals != logged.totals:
            self._mark_logged(report)
            return _changes(report, logged)
        tasks = read_tasks()
        if tasks and tasks != self._logged_tasks:
            self._logged_at, self._logged_tasks = report.now, tasks
            return f"round {_round(report, under_way=True)}: {tasks.done:,} of {tasks.total:,} tasks completed"
        return None

    def _mark_logged(self, report: Report) -> None:
        self._logged, self._logged_at, self._logged_tasks = report, report.now, None


def _changes(report: Report, logged: Report) -> str:
    seconds = (report.now - logged.now) / 1000
    new, old = report.totals, logged.totals
    return (
        f"{new.records:,} records ({count((new.records - old.records) / seconds)}/s, "
        f"{size((new.bytes - old.bytes) / seconds)}/s); {new.objects:,} objects "
        f"(+{new.objects - old.objects:,}){_rejected(report)}; {_open_and_lag(report)}"
    )


def _rejected(report: Report) -> str:
    return "".join(f", {n:,} {what}" for n, what in _rejected_counts(report.totals) if n)


def _rejected_counts(totals: Totals) -> Sequence[tuple[int, str]]:
    """Dead letters as `verify` counts them: with the null values among them."""
    return (totals.dropped, "dropped"), (totals.dead_letters + totals.null_dead_letters, "dead letters")


def _open_and_lag(report: Report) -> str:
    return f"{report.memory.open_objects:,} open; lag {known(_lag(report.partitions))}"


@contextmanager
def live(
    read: Callable[[], Report], tasks: Callable[[], TaskCount | None], where: str, handler: LogHandler, console: Console
) -> Iterator[None]:
    """Shows the live console on `console` while the context is active, with log lines above it."""
    screen = LiveConsole(where)
    previous = handler.write

    def write(line: str) -> None:
        console.print(Text(line), soft_wrap=True)

    handler.write = write
    try:
        with Live(
            get_renderable=lambda: screen.render(read(), height=console.height, tasks=tasks()),
            console=console,
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
        ):
            yield
    finally:
        handler.write = previous


@contextmanager
def plain(
    read: Callable[[], Report], tasks: Callable[[], TaskCount | None], *, poll_interval_s: float = 0.5
) -> Iterator[None]:
    """Logs progress lines while the context is active."""
    done = threading.Event()
    lines = PlainConsole()

    def poll() -> None:
        while not done.wait(poll_interval_s):
            line = lines.line(read(), tasks)
            if line:
                _log.info("%s", line)

    thread = threading.Thread(target=poll, name="s3sink-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def summary(report: Report) -> str:
    """The result of a run, in one line."""
    totals = report.totals
    still_open = f", {report.memory.open_objects:,} still open" if report.memory.open_objects else ""
    took = duration(report.now - report.started_at)
    return (
        f"{report.name}: {totals.records:,} records ({size(totals.bytes)}) in {took}; "
        f"{totals.objects:,} objects published{_rejected(report)}{still_open}; lag {known(_lag(report.partitions))}"
    )


def _lag(partitions: list[PartitionReport]) -> int | None:
    """The sum of all lags; None if one is unknown or there are no partitions."""
    lags = [p.lag for p in partitions]
    return None if None in lags or not lags else sum(lag for lag in lags if lag is not None)


def known(number: int | None) -> str:
    """A number with thousands separators; `?` for an unknown one."""
    return "?" if number is None else f"{number:,}"


def count(number: float) -> str:
    """`950`, `45.2 k`, `1.2 M`."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number:.0f}"


def size(number: float) -> str:
    """Bytes in decimal units: `950 B`, `12.3 MB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number:.0f} B"


def duration(ms: int) -> str:
    """`3 s`, `2 min 5 s`, `1 h 2 min`."""
    seconds = max(0, ms) // 1000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
