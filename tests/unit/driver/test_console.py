"""Output of the live console and of the plain console."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console

from sink_job.api.report import PartitionReport, Report, RunState, Totals
from sink_job.driver import console
from sink_job.driver.logs import LogHandler
from tests.unit.driver.conftest import NOW, MakeReport


def shown(report: Report, *, height: int = 40, tasks: console.TaskCount | None = None) -> str:
    terminal = Console(file=io.StringIO(), width=120, record=True)
    terminal.print(console.LiveConsole("s3://archive").render(report, height=height, tasks=tasks))
    return terminal.export_text()


def partitions(count: int) -> list[PartitionReport]:
    return [
        PartitionReport(topic="t", partition=n, committed=0, next=0, end=n, lag=n, open_objects=1) for n in range(count)
    ]


def test_the_live_console_shows_the_progress(make_report: MakeReport) -> None:
    text = shown(make_report())
    assert "flights → s3://archive  Running  1 min 5 s  round 12" in text
    assert "1,500 records" in text
    assert "12.3 MB" in text
    assert "4 objects  2 open  last publish 3 s ago" in text
    row = next(line for line in text.splitlines() if line.startswith("flights-0"))
    assert row.split() == ["flights-0", "90", "120", "30", "2"]


def test_an_unknown_value_is_a_question_mark(make_report: MakeReport) -> None:
    row = next(line for line in shown(make_report()).splitlines() if line.startswith("flights-1"))
    assert row.split() == ["flights-1", "50", "?", "?", "0"]


def test_the_live_console_shows_the_tasks_of_the_current_round(make_report: MakeReport) -> None:
    assert "round 13 (3 of 8 tasks)" in shown(make_report(), tasks=console.TaskCount(3, 8))


def test_the_live_console_fits_the_terminal_and_shows_the_largest_lags(make_report: MakeReport) -> None:
    text = shown(make_report(partitions=partitions(100)), height=20)
    assert len(text.rstrip().splitlines()) <= 20
    assert "t-99 " in text
    assert "t-1 " not in text
    assert next(line for line in text.splitlines() if line.startswith("and 88 more")).split()[-2:] == ["3,828", "88"]


def test_dropped_records_and_retries_are_shown_if_there_are_any(make_report: MakeReport) -> None:
    assert "retries" not in shown(make_report())
    assert "3 dropped  2 S3 retries" in shown(make_report(totals=Totals(dropped=3, retries=2)))
    assert "4 dead letters" in shown(make_report(totals=Totals(dead_letters=4)))


def test_rates_are_averages_over_a_time_window(make_report: MakeReport) -> None:
    rates = console.Rates()
    totals = [Totals(records=1000 * n, bytes=100_000 * n) for n in range(100)]
    assert rates.add(make_report(now=NOW, totals=totals[0])) == (0.0, 0.0)
    assert rates.add(make_report(now=NOW + 1000, totals=totals[1])) == (1000.0, 100_000.0)
    for n in range(2, 60):
        rates.add(make_report(now=NOW + 1000 * n, totals=totals[n]))
    stalled = [rates.add(make_report(now=NOW + 1000 * n, totals=totals[59])) for n in range(60, 100)]
    assert stalled[-1] == (0.0, 0.0)


LAGGING = [PartitionReport(topic="t", partition=0, committed=0, next=0, end=7, lag=7)]


def test_the_plain_console_logs_changes_at_most_every_10_seconds(make_report: MakeReport) -> None:
    lines = console.PlainConsole()
    totals = Totals(records=1_000, bytes=1_000_000)
    assert lines.line(make_report(state=RunState.RECOVERING, totals=Totals(), partitions=LAGGING)) is None
    assert lines.line(make_report(totals=Totals())) is None
    assert lines.line(make_report(totals=Totals(), partitions=LAGGING)) == "running; 2 open; lag 7"
    assert lines.line(make_report(now=NOW + 60_000, totals=Totals())) is None
    assert lines.line(make_report(now=NOW + 9_999, totals=totals)) is None
    line = lines.line(make_report(now=NOW + 10_000, totals=totals))
    assert line == "1,000 records (100/s, 100.0 kB/s); 0 objects (+0); 2 open; lag ?"


def test_the_plain_console_logs_a_publication_after_2_seconds(make_report: MakeReport) -> None:
    lines = console.PlainConsole()
    lines.line(make_report(totals=Totals(), partitions=LAGGING))
    assert lines.line(make_report(now=NOW + 1_999, totals=Totals(objects=1))) is None
    assert "1 objects (+1)" in (lines.line(make_report(now=NOW + 2_000, totals=Totals(objects=1))) or "")


def test_the_plain_console_logs_the_tasks_of_a_long_round(make_report: MakeReport) -> None:
    lines = console.PlainConsole()
    lines.line(make_report(totals=Totals(), partitions=LAGGING))
    later = [make_report(now=NOW + 10_000 * n, totals=Totals()) for n in range(1, 4)]
    assert lines.line(later[0], lambda: console.TaskCount(1, 8)) == "round 13: 1 of 8 tasks completed"
    assert lines.line(later[1], lambda: console.TaskCount(1, 8)) is None
    assert lines.line(later[2], lambda: None) is None


def test_log_lines_appear_above_the_live_console(make_report: MakeReport) -> None:
    terminal = Console(file=io.StringIO(), width=100, height=20, force_terminal=True, color_system=None)
    handler = LogHandler(lambda line: pytest.fail("a line did not appear above the console"))
    previous = handler.write
    with console.live(make_report, lambda: None, "s3://archive", handler, terminal):
        handler.handle(logging.makeLogRecord({"msg": "[bold]a line[/bold] 7", "name": "sink_job.x"}))
    assert handler.write is previous
    assert isinstance(terminal.file, io.StringIO)
    text = terminal.file.getvalue()
    assert "[bold]a line[/bold] 7" in text
    assert text.rindex("flights → s3://archive") > text.index("a line")


def test_the_summary_is_one_line(make_report: MakeReport) -> None:
    report = make_report(partitions=partitions(3))
    assert console.summary(report) == (
        "flights: 1,500 records (12.3 MB) in 1 min 5 s; 4 objects published, 2 still open; lag 3"
    )


def test_dropped_records_are_in_the_summary_and_in_log_lines(make_report: MakeReport) -> None:
    lines = console.PlainConsole()
    lines.line(make_report(totals=Totals(), partitions=LAGGING))
    report = make_report(now=NOW + 10_000, totals=Totals(records=7, dropped=1_200))
    assert "0 objects (+0), 1,200 dropped; 2 open" in (lines.line(report) or "")
    assert "0 objects published, 1,200 dropped, 2 still open" in console.summary(report)


def test_dead_letters_are_in_the_summary_and_in_log_lines(make_report: MakeReport) -> None:
    lines = console.PlainConsole()
    lines.line(make_report(totals=Totals(), partitions=LAGGING))
    report = make_report(now=NOW + 10_000, totals=Totals(records=7, dead_letters=1_200))
    assert "0 objects (+0), 1,200 dead letters; 2 open" in (lines.line(report) or "")
    assert "0 objects published, 1,200 dead letters, 2 still open" in console.summary(report)


def test_null_values_among_the_dead_letters_are_counted_as_verify_counts_them(make_report: MakeReport) -> None:
    totals = Totals(dead_letters=3, null_dead_letters=4, ignored=4)
    assert "0 objects published, 7 dead letters, " in console.summary(make_report(totals=totals))
    assert "7 dead letters" in shown(make_report(totals=totals))


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (949.6, "950"), (45_200, "45.2 k"), (1_200_000, "1.2 M")], ids=str
)
def test_counts_are_abbreviated(number: float, text: str) -> None:
    assert console.count(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (950, "950 B"), (12_300, "12.3 kB"), (5e6, "5.0 MB"), (7.1e9, "7.1 GB")], ids=str
)
def test_sizes_use_decimal_units(number: float, text: str) -> None:
    assert console.size(number) == text


@pytest.mark.parametrize(
    ("ms", "text"), [(-5, "0 s"), (3_999, "3 s"), (125_000, "2 min 5 s"), (3_725_000, "1 h 2 min")], ids=str
)
def test_durations_use_two_units(ms: int, text: str) -> None:
    assert console.duration(ms) == text
