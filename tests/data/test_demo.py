"""`make demo` from start to end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from demo.flights import Flights
from devtools.processes import Process, killed_at_end

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.data
def test_the_flights_are_ordered_by_time_and_add_up_by_month() -> None:
    flights = Flights()
    times = [record.timestamp or 0 for record in flights.records()]
    assert len(times) == len(flights) == sum(month.flights for month in flights.months()) == 336_776
    assert times == sorted(times)


@pytest.mark.data
@pytest.mark.spark
def test_the_demo_succeeds_and_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "demo", "run"]
    process = Process(command, log=tmp_path / "log", cwd=ROOT, env={"TMPDIR": str(temporary)})
    with killed_at_end(process):
        assert process.wait(900) == 0, process.log
    assert "kill -9 of all its processes at part 2 of lake/flights/year=2013/" in process.log
    assert not any(word in process.log for word in ("Warning", "Traceback", "Task was destroyed", "never retrieved"))
    assert "336,776 flights in 60 objects; the source has 336,776: equal" in process.log
    assert [path.name for path in temporary.iterdir() if "s3sink" in path.name] == []
