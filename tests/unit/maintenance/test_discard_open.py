"""`discard-open` over a ledger that a driver has left: what it publishes, discards and leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.coordinator.context import StopCondition
from sink_job.ledger.store import Ledger
from sink_job.maintenance.discard_open import DiscardedPartition, DiscardReport, discard_open
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog

LEFT_OPEN = StopCondition(until_caught_up=True)
PARTITIONS = SyntheticLog(records=12, partitions=2)


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def test_without_a_ledger_nothing_is_written(sink_fixture: MemorySinkFixture) -> None:
    assert discard_open(sink_fixture.ledger_access()) == DiscardReport(None, 0, 0, 0)
    assert sink_fixture.s3.objects == {}


def test_the_open_objects_of_each_partition_are_discarded_and_counted(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(PARTITIONS, goal=LEFT_OPEN)
    visible = sink_fixture.offsets()
    report = discard_open(sink_fixture.ledger_access())
    assert (report.objects, report.records, report.published) == (2, 4, 0)
    assert report.partitions == (DiscardedPartition("log", 0, 1, 2, 10), DiscardedPartition("log", 1, 1, 2, 10))
    assert sink_fixture.offsets() == visible
    assert sink_fixture.orphans() == []


def test_a_partition_without_open_objects_is_not_reported(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=10), goal=LEFT_OPEN)
    report = discard_open(sink_fixture.ledger_access())
    assert (report.objects, report.partitions) == (0, ())


def test_a_repeated_command_discards_nothing_more(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(PARTITIONS, goal=LEFT_OPEN)
    discard_open(sink_fixture.ledger_access())
    report = discard_open(sink_fixture.ledger_access())
    assert (report.objects, report.records, report.partitions) == (0, 0, ())


def test_the_report_names_the_last_record_of_the_ledger(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(PARTITIONS, goal=LEFT_OPEN)
    report = discard_open(sink_fixture.ledger_access())
    access = sink_fixture.ledger_access()
    assert report.record == Ledger(access.s3, access.root, "reader").load().number


def test_a_later_driver_copies_the_discarded_records(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(PARTITIONS, goal=LEFT_OPEN)
    discard_open(sink_fixture.ledger_access())
    sink_fixture.run(SyntheticLog(records=15, partitions=2))
    copied = sorted(offset for key, offsets in sink_fixture.offsets().items() if "+0+" in key for offset in offsets)
    assert copied == list(range(15))
