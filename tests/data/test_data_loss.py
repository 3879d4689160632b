"""`onDataLoss: Continue` where an object has to be rebuilt and Kafka no longer holds all of its records.

What is left of it is kept under the key of its first record, the rest is reported once and counted, and `verify` knows
of it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from sink_job.api.errors import DataLoss
from sink_job.api.spec import load_sink
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.verify.compare_job import CompareContext, compare
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import PartitionResult
from tests.support.crash_points import end_after_rebuilding, end_before_publishing
from tests.support.sink_fixture import Place, manifest
from tests.support.synthetic_log import FileGroup, FunctionEngine, FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
CONTINUE: dict[str, Any] = {"onDataLoss": "Continue"}
OPEN: dict[str, Any] = {"flush_size": 100, "spec": CONTINUE}
LARGE = 1_000_000
"""Bytes of a record when parts are to be uploaded and not staged."""


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundLoop, "truncation_check_ms", 1)


def key(first: int, path: str = "partition=0") -> str:
    return f"topics/log/{path}/log+0+{first:010d}.json"


def run(place: Place, log: FunctionLog, goal: StopCondition = ALL, **given: Any) -> int:
    """Runs the sink; returns how many offsets it reported as lost."""
    driver = place.driver(log, goal, **given)
    driver.run()
    return driver.progress.lost_offsets


def contents(place: Place) -> dict[str, list[int]]:
    return {name: place.offsets(name) for name in place.bodies()}


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings about records that are lost."""
    return [r.message for r in caplog.records if r.levelno == logging.WARNING and "no longer holds" in r.message]


def proved(place: Place, log: FunctionLog, **given: Any) -> PartitionResult:
    """The verdict on the sink's topic-partition, found right with and without --deep."""
    given = {"flush_size": 10, **given}
    sink = load_sink(manifest(place.bucket, place.endpoint, **given))
    admin = FileGroup(log, place.folder / "group.json")
    found = collect_evidence(sink, place.s3, admin)
    world = CompareContext(s3=place.settings, admin=admin, engine=FunctionEngine(log))
    verdict, *before = found.results()
    deep, *_ = compare(found, [verdict], world, sink.spec.errors)
    assert (verdict.findings, deep.findings, [each.findings for each in before if each.findings]) == ((), (), [])
    return deep


def lose_unpublished(place: Place) -> None:
    """Removes what the objects that are not visible yet consist of."""
    place.delete_staging()
    for upload in list(place.s3.list_uploads("")):
        place.s3.abort(upload.key, upload.upload_id)


# -- open objects ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value_bytes", [100, LARGE], ids=["staged", "uploaded"])
@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_an_open_object_keeps_the_records_that_kafka_still_holds(
    place: Place, caplog: pytest.LogCaptureFixture, value_bytes: int, compression: str
) -> None:
    given = {**OPEN, "compression": compression}
    place.run(FunctionLog(records=15, value_bytes=value_bytes), DONE, **given)
    lose_unpublished(place)
    held = FunctionLog(records=25, value_bytes=value_bytes, starts_at=10)
    assert run(place, held, **given) == 10
    assert contents(place) == {key(10) + {"None": "", "Gzip": ".gz"}[compression]: list(range(10, 25))}
    assert place.group() == {"log-0": 25}
    assert len(reports(caplog)) == 1
    assert "log-0" in reports(caplog)[0]
    assert "10 of the" in reports(caplog)[0]
    assert key(0) in reports(caplog)[0]
    assert place.litter() == []


def test_records_that_are_lost_are_a_note_of_verify_and_not_a_finding(place: Place) -> None:
    place.run(FunctionLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(place)
    held = FunctionLog(records=25, starts_at=10, value_bytes=LARGE)
    place.run(held, DONE, **OPEN)
    verdict = proved(place, held, **OPEN)
    assert (verdict.lost, verdict.gaps, verdict.pending_records) == (10, 10, 15)
    (note,) = (note for note in verdict.notes if "onDataLoss" in note)
    assert "10 records" in note
    place.run(held, ALL, **OPEN)
    verdict = proved(place, held, **OPEN)
    assert (verdict.lost, verdict.gaps, verdict.records) == (10, 10, 15)


def test_a_loss_is_not_reported_again_at_the_next_start(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.run(FunctionLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(place)
    held = FunctionLog(records=25, starts_at=10, value_bytes=LARGE)
    assert run(place, held, DONE, **OPEN) == 10
    caplog.clear()
    assert run(place, held, DONE, **OPEN) == 0
    assert run(place, held, ALL, **OPEN) == 0
    assert reports(caplog) == []


def test_a_record_that_was_compacted_away_is_missing_from_its_object_alone(place: Place) -> None:
    place.run(FunctionLog(records=15), DONE, **OPEN)
    lose_unpublished(place)
    held = FunctionLog(records=20, holes=frozenset({3, 4, 9}))
    assert run(place, held, **OPEN) == 3
    kept = [offset for offset in range(20) if offset not in held.holes]
    assert contents(place) == {key(0): kept}
    assert proved(place, held, **OPEN).lost == 3


def test_an_open_object_without_any_record_left_is_given_up(place: Place) -> None:
    place.run(FunctionLog(records=15), DONE, **OPEN)
    lose_unpublished(place)
    held = FunctionLog(records=40, starts_at=30)
    assert run(place, held, **OPEN) == 30
    assert contents(place) == {key(30): list(range(30, 40))}
    assert place.group() == {"log-0": 40}
    verdict = proved(place, held, **OPEN)
    assert (verdict.lost, verdict.gaps) == (15, 30)


def test_all_that_was_read_may_be_gone_and_nothing_new_be_there(place: Place) -> None:
    place.run(FunctionLog(records=15), DONE, **OPEN)
    lose_unpublished(place)
    held = FunctionLog(records=15, starts_at=15)
    assert run(place, held, **OPEN) == 15
    assert contents(place) == {}
    assert place.group() == {"log-0": 15}
    assert proved(place, held, **OPEN).lost == 15


def test_records_that_are_lost_do_not_count_for_flush_size(place: Place) -> None:
    given: dict[str, Any] = {"flush_size": 20, "spec": CONTINUE}
    place.run(FunctionLog(records=15), DONE, **given)
    lose_unpublished(place)
    held = FunctionLog(records=65, starts_at=10)
    place.run(held, DONE, **given)
    assert contents(place) == {key(10): list(range(10, 30)), key(30): list(range(30, 50))}
    assert proved(place, held, **given).pending_records == 15


@pytest.mark.parametrize("scope", ["Partition", "Object"])
@pytest.mark.parametrize("starts_at", [0, 4, 17, 21, 30])
def test_each_path_keeps_what_kafka_still_holds_of_it(place: Place, scope: str, starts_at: int) -> None:
    """Objects of several paths, some of which were closed already where the scope allows it."""
    given: dict[str, Any] = {
        "flush_size": 4 if scope == "Object" else 100,
        "scope": scope,
        "paths": True,
        "spec": CONTINUE,
    }
    before = FunctionLog(records=22, paths=3, holes=frozenset(range(13, 20, 3)))
    place.run(before, DONE, **given)
    closed = contents(place)
    lose_unpublished(place)
    held = replace(before, records=60, starts_at=starts_at, holes=before.holes | {20, 31})
    run(place, held, **given)
    after = contents(place)
    assert {name: after[name] for name in closed} == closed
    offsets = sorted(offset for name in after for offset in after[name])
    visible = {offset for name in closed for offset in closed[name]}
    there = {offset for offset in range(starts_at, 60) if offset not in held.holes}
    assert offsets == sorted(visible | there)
    assert all(name.endswith(f"{found[0]:010d}.json") for name, found in after.items())
    verdict = proved(place, held, **given)
    assert verdict.records + verdict.gaps == 60
    assert place.litter() == []


def test_the_tail_of_a_log_that_is_lost_is_given_up_as_its_beginning_is(place: Place) -> None:
    place.run(FunctionLog(records=15), DONE, **OPEN)
    lose_unpublished(place)
    assert run(place, FunctionLog(records=12), **OPEN) == 3
    assert contents(place) == {key(0): list(range(12))}


def test_a_log_that_is_short_for_a_moment_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.run(FunctionLog(records=15), DONE, **OPEN)
    lose_unpublished(place)
    ends = iter([15, 15, 12, 12, 12])
    monkeypatch.setattr(FunctionLog, "end", lambda log, _: next(ends, log.records))
    assert run(place, FunctionLog(records=15), **OPEN) == 0
    assert contents(place) == {key(0): list(range(15))}


def test_retention_that_takes_more_while_an_object_is_rebuilt_is_noticed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.run(FunctionLog(records=15), DONE, **OPEN)
    lose_unpublished(place)
    starts = iter([5, 5])
    log = FunctionLog(records=25, starts_at=10)
    held = FileGroup.beginning_offsets

    def late(self: FileGroup, partitions: Any) -> Any:
        return dict.fromkeys(held(self, partitions), next(starts, log.starts_at))

    monkeypatch.setattr(FileGroup, "beginning_offsets", late)
    assert run(place, log, **OPEN) == 10
    assert contents(place) == {key(10): list(range(10, 25))}


# -- named objects --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("starts_at", [4, 14])
def test_a_named_object_keeps_the_records_that_kafka_still_holds(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, starts_at: int
) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    end_before_publishing(place, monkeypatch, FunctionLog(records=25), **given)
    lose_unpublished(place)
    held = FunctionLog(records=30, starts_at=starts_at)
    assert run(place, held, **given) == starts_at
    cut = [list(range(start, end)) for start, end in ((0, 10), (10, 20), (20, 30))]
    kept = [left for each in cut if (left := [offset for offset in each if offset >= starts_at])]
    assert contents(place) == {key(left[0]): left for left in kept}
    assert place.group() == {"log-0": 30}
    assert any(key(0) in line and "log-0" in line for line in reports(caplog))
    verdict = proved(place, held, **given)
    assert (verdict.lost, verdict.records + verdict.gaps) == (starts_at, 30)
    assert place.litter() == []


def test_a_named_object_without_any_record_left_becomes_no_object(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    end_before_publishing(place, monkeypatch, FunctionLog(records=20), **given)
    lose_unpublished(place)
    held = FunctionLog(records=20, starts_at=20)
    assert run(place, held, **given) == 20
    assert contents(place) == {}
    assert place.group() == {"log-0": 20}
    assert proved(place, held, **given).lost == 20
    assert run(place, held, **given) == 0


def test_a_named_object_that_lost_a_record_in_its_middle_keeps_its_key(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    end_before_publishing(place, monkeypatch, FunctionLog(records=20), **given)
    lose_unpublished(place)
    held = FunctionLog(records=20, holes=frozenset({3, 11}))
    assert run(place, held, **given) == 2
    assert contents(place) == {
        key(0): [offset for offset in range(10) if offset != 3],
        key(10): [offset for offset in range(10, 20) if offset != 11],
    }
    assert proved(place, held, **given).lost == 2


def test_what_is_rebuilt_may_be_lost_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    log = FunctionLog(records=20)
    end_before_publishing(place, monkeypatch, log, **given)
    for starts_at in (3, 6):
        lose_unpublished(place)
        end_after_rebuilding(place, monkeypatch, replace(log, starts_at=starts_at), **given)
    lose_unpublished(place)
    held = replace(log, starts_at=8)
    place.run(held, ALL, **given)
    assert contents(place) == {key(8): [8, 9], key(10): list(range(10, 20))}
    assert proved(place, held, **given).lost == 8


def test_a_loss_is_known_when_the_records_of_the_ledger_are_gone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the published list from the next snapshot on."""
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    end_before_publishing(place, monkeypatch, FunctionLog(records=25), **given)
    lose_unpublished(place)
    held = FunctionLog(records=90, starts_at=7)
    place.run(held, DONE, **given, max_records=5, world={"snapshot_every": 2})
    assert 2 not in place.records()
    verdict = proved(place, held, **given)
    assert (verdict.lost, verdict.records) == (7, 83)


# -- with Fail, and beside other commands ---------------------------------------------------------------------------


def test_with_fail_nothing_is_given_up_and_continue_is_recommended(place: Place) -> None:
    place.run(FunctionLog(records=15), DONE, flush_size=100)
    lose_unpublished(place)
    for held in (FunctionLog(records=25, starts_at=10), FunctionLog(records=25, holes=frozenset({3}))):
        with pytest.raises(DataLoss, match="onDataLoss: Continue"):
            place.run(held, ALL, flush_size=100)
    place.run(FunctionLog(records=25), ALL, flush_size=100)
    assert contents(place) == {key(0): list(range(25))}


def test_a_reset_of_the_offsets_after_a_loss_leaves_a_ledger_that_is_right(place: Place) -> None:
    place.run(FunctionLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(place)
    held = FunctionLog(records=25, starts_at=10, value_bytes=LARGE)
    place.run(held, DONE, **OPEN)
    place.reset(held, "Earliest", on_existing="NewPrefix", **OPEN)
    place.run(held, ALL, **OPEN)
    assert proved(place, held, **OPEN).records == 15


def test_open_objects_that_are_discarded_after_a_loss_are_copied_again(place: Place) -> None:
    place.run(FunctionLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(place)
    held = FunctionLog(records=25, starts_at=10, value_bytes=LARGE)
    place.run(held, DONE, **OPEN)
    place.discard(**OPEN)
    place.run(held, ALL, **OPEN)
    assert contents(place) == {key(10): list(range(10, 25))}
    assert proved(place, held, **OPEN).lost == 10
