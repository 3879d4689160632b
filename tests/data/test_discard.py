"""`s3sink discard-open` discards open objects and publishes closed ones; a later run loses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from devtools.processes import wait_until
from sink_job.api.errors import ConfigurationError, LedgerFenced, OwnershipConflict
from sink_job.coordinator.context import StopCondition
from tests.support.crash_points import crash_before_publishing
from tests.support.sink_fixture import SinkFixture, TickingClock
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
LARGE = SyntheticLog(records=25, value_bytes=600_000)
"""Its open objects have parts and staged remainders."""


def test_open_objects_are_removed_and_visible_ones_stay(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LARGE, DONE, flush_size=15)
    before = sink_fixture.contents()
    assert sink_fixture.orphans() != []
    found = sink_fixture.discard()
    assert (found.objects, found.records) == (1, 10)
    assert [(each.committed, each.records) for each in found.partitions] == [(15, 10)]
    assert sink_fixture.contents() == before
    assert sink_fixture.orphans() == []


def test_a_later_run_copies_the_discarded_records(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LARGE, DONE, flush_size=15)
    sink_fixture.discard()
    sink_fixture.run(LARGE, ALL, flush_size=15)
    assert [sink_fixture.offsets(key) for key in sink_fixture.contents()] == [list(range(15)), list(range(15, 25))]
    assert all(each.findings == () for each in sink_fixture.verify(LARGE))


def test_a_later_run_writes_discarded_records_under_its_own_settings(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LARGE, DONE, flush_size=15)
    sink_fixture.discard()
    sink_fixture.run(LARGE, ALL, flush_size=5)
    assert [sink_fixture.offsets(key) for key in sink_fixture.contents()][1:] == [
        list(range(15, 20)),
        list(range(20, 25)),
    ]
    assert all(each.findings == () for each in sink_fixture.verify(LARGE))


def test_with_scope_object_a_later_run_rebuilds_the_discarded_objects(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=23, paths=3)
    given: dict[str, Any] = {"flush_size": 4, "scope": "Object", "paths": True}
    sink_fixture.run(log, DONE, **given)
    before = sink_fixture.contents()
    sink_fixture.discard(**given)
    assert sink_fixture.contents() == before
    assert sink_fixture.orphans() == []
    sink_fixture.run(log, ALL, **given)
    assert sorted(offset for key in sink_fixture.contents() for offset in sink_fixture.offsets(key)) == list(range(23))
    assert all(each.findings == () for each in sink_fixture.verify(log, **given))


def test_closed_objects_become_visible_before_the_discard(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=15), flush_size=10)
    assert sink_fixture.keys() == []
    found = sink_fixture.discard()
    assert found.published == 1
    assert sink_fixture.keys() == [FIRST]


def test_a_lost_closed_object_is_left_to_a_driver(sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=15), flush_size=10)
    sink_fixture.abort_uploads_of(FIRST)
    with pytest.raises(ConfigurationError, match="lost before they were visible"):
        sink_fixture.discard()
    sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=10)
    assert sink_fixture.keys() == [FIRST]


def test_a_running_driver_is_fenced(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=15)
    driver = sink_fixture.start(
        log, StopCondition(), flush_size=10, clock=TickingClock(), context={"head_check_interval_ms": 1}
    )
    wait_until(lambda: sink_fixture.group() == {"log-0": 10}, "the driver's commit", seconds=60)
    sink_fixture.discard()
    assert driver.wait() == LedgerFenced.exit_code
    assert sink_fixture.keys() == [FIRST]
    assert sink_fixture.orphans() == []


def test_a_second_discard_removes_nothing(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LARGE, DONE, flush_size=15)
    sink_fixture.discard()
    assert sink_fixture.discard().objects == 0


def test_without_a_ledger_nothing_is_done(sink_fixture: SinkFixture) -> None:
    assert sink_fixture.discard().record is None
    assert [listed.key for listed in sink_fixture.s3.list("")] == []


def test_the_ledger_of_another_sink_is_not_changed(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LARGE, DONE, flush_size=15)
    orphans, records = sink_fixture.orphans(), sink_fixture.records()
    with pytest.raises(OwnershipConflict):
        sink_fixture.discard(name="other", spec={"sinkId": "default.log"})
    assert (sink_fixture.orphans(), sink_fixture.records()) == (orphans, records)
