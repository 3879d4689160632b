"""`s3sink discard-open`: what is open is given up, what is promised becomes visible, and a later sink loses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from devtools.processes import wait_until
from sink_job.api.errors import ConfigurationError, LedgerFenced, OwnershipConflict
from sink_job.coordinator.context import StopCondition
from tests.support.crash_points import end_before_publishing
from tests.support.sink_fixture import Place, Ticking
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
LARGE = FunctionLog(records=25, value_bytes=600_000)
"""Its open objects have parts and leftovers."""


def test_open_objects_go_and_visible_ones_stay(place: Place) -> None:
    place.run(LARGE, DONE, flush_size=15)
    before = place.bodies()
    assert place.litter() != []
    found = place.discard()
    assert (found.objects, found.records) == (1, 10)
    assert [(each.committed, each.records) for each in found.partitions] == [(15, 10)]
    assert place.bodies() == before
    assert place.litter() == []


def test_a_later_run_copies_what_was_given_up(place: Place) -> None:
    place.run(LARGE, DONE, flush_size=15)
    place.discard()
    place.run(LARGE, ALL, flush_size=15)
    assert [place.offsets(key) for key in place.bodies()] == [list(range(15)), list(range(15, 25))]
    assert all(each.findings == () for each in place.verify(LARGE))


def test_a_later_run_with_other_settings_cuts_what_was_given_up_by_those(place: Place) -> None:
    place.run(LARGE, DONE, flush_size=15)
    place.discard()
    place.run(LARGE, ALL, flush_size=5)
    assert [place.offsets(key) for key in place.bodies()][1:] == [list(range(15, 20)), list(range(20, 25))]
    assert all(each.findings == () for each in place.verify(LARGE))


def test_with_objects_of_their_own_pace_a_later_run_makes_the_given_up_ones_again(place: Place) -> None:
    log = FunctionLog(records=23, paths=3)
    given: dict[str, Any] = {"flush_size": 4, "scope": "Object", "paths": True}
    place.run(log, DONE, **given)
    before = place.bodies()
    place.discard(**given)
    assert place.bodies() == before
    assert place.litter() == []
    place.run(log, ALL, **given)
    assert sorted(offset for key in place.bodies() for offset in place.offsets(key)) == list(range(23))
    assert all(each.findings == () for each in place.verify(log, **given))


def test_what_was_promised_becomes_visible_first(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    end_before_publishing(place, monkeypatch, FunctionLog(records=15), flush_size=10)
    assert place.keys() == []
    found = place.discard()
    assert found.published == 1
    assert place.keys() == [FIRST]


def test_a_promised_object_that_is_lost_is_left_to_a_driver(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    end_before_publishing(place, monkeypatch, FunctionLog(records=15), flush_size=10)
    place.abort_uploads_of(FIRST)
    with pytest.raises(ConfigurationError, match="lost before they were visible"):
        place.discard()
    place.run(FunctionLog(records=15), DONE, flush_size=10)
    assert place.keys() == [FIRST]


def test_a_driver_that_lives_is_fenced(place: Place) -> None:
    log = FunctionLog(records=15)
    driver = place.start(log, StopCondition(), flush_size=10, clock=Ticking(), world={"look_every": 1})
    wait_until(lambda: place.group() == {"log-0": 10}, "the driver's commit", seconds=60)
    place.discard()
    assert driver.wait() == LedgerFenced.exit_code
    assert place.keys() == [FIRST]
    assert place.litter() == []


def test_a_second_time_gives_up_nothing(place: Place) -> None:
    place.run(LARGE, DONE, flush_size=15)
    place.discard()
    assert place.discard().objects == 0


def test_where_there_is_no_ledger_nothing_is_done(place: Place) -> None:
    assert place.discard().record is None
    assert [listed.key for listed in place.s3.list("")] == []


def test_another_sinks_ledger_is_left_alone(place: Place) -> None:
    place.run(LARGE, DONE, flush_size=15)
    litter, records = place.litter(), place.records()
    with pytest.raises(OwnershipConflict):
        place.discard(name="other", spec={"sinkId": "default.log"})
    assert (place.litter(), place.records()) == (litter, records)
