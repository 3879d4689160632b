"""What a driver passes to others: names that the clean-up relies on, and changes of the clock for the report."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from sink_job.coordinator.context import StopCondition
from sink_job.ledger.staging import is_expired
from sink_job.ledger.store import Ledger
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def test_the_staging_object_of_a_round_is_not_expired_before_the_record_of_the_round(
    sink_fixture: MemorySinkFixture,
) -> None:
    sink_fixture.run(SyntheticLog(records=9), goal=StopCondition(until_caught_up=True), snapshot_every=100)
    store: Any = sink_fixture.s3
    ledger = Ledger(store, sink_fixture.root, "reader")
    head = ledger.load()
    named = {
        name.removeprefix(f"{sink_fixture.root}staging/"): number
        for number in range(head.number, 0, -1)  # the first record that names an object counts
        for change in ledger.record(number).partitions.values()
        for name in change.state.staged()
    }
    assert named
    assert [name for name, number in named.items() if is_expired(name, head.epoch, number - 1)] == []
    assert [name for name, number in named.items() if not is_expired(name, head.epoch, number)] == []


def test_jumps_of_the_clock_are_in_the_report(sink_fixture: MemorySinkFixture) -> None:
    steady = itertools.count(0, 60_000)  # a minute passes at each call, and the host's clock does not move
    driver = sink_fixture.driver(SyntheticLog(records=3), steady_clock=steady.__next__)
    driver.run()
    assert driver.progress.report().totals.clock_jumps > 0
