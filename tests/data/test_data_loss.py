"""`onDataLoss: Continue` when an object must be rebuilt and Kafka no longer holds all of its records.

The remaining records are written under the key of the first of them. The loss is reported once and counted, and
`verify` takes it into account.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.errors import DataLoss, RebuildRejected
from sink_job.api.parser import load_sink
from sink_job.codecs import formats
from sink_job.converters.base import BatchSource, Converted
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.json.converter import JsonConverter
from sink_job.verify.compare_job import CompareContext, compare
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import PartitionResult
from sink_job.writer import object_rebuilder
from tests.support.crash_points import crash_after_rebuilding, crash_before_publishing
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
CONTINUE: dict[str, Any] = {"onDataLoss": "Continue"}
OPEN: dict[str, Any] = {"flush_size": 100, "spec": CONTINUE}
LARGE = 1_000_000
"""Record size in bytes that causes uploaded parts instead of staged remainders."""


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundLoop, "truncation_check_ms", 1)


def key(first: int, path: str = "partition=0") -> str:
    return f"topics/log/{path}/log+0+{first:010d}.json"


def run(sink_fixture: SinkFixture, log: SyntheticLog, goal: StopCondition = ALL, **given: Any) -> int:
    """Runs the sink; returns how many offsets it reported as lost."""
    driver = sink_fixture.driver(log, goal, **given)
    driver.run()
    return driver.progress.lost_offsets


def contents(sink_fixture: SinkFixture) -> dict[str, list[int]]:
    return {name: sink_fixture.offsets(name) for name in sink_fixture.contents()}


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings about lost records."""
    return [r.message for r in caplog.records if r.levelno == logging.WARNING and "no longer holds" in r.message]


def verified(sink_fixture: SinkFixture, log: SyntheticLog, **given: Any) -> PartitionResult:
    """The result of the sink's topic-partition, which passes with and without --deep."""
    given = {"flush_size": 10, **given}
    sink = load_sink(manifest(sink_fixture.bucket, sink_fixture.endpoint, **given))
    admin = FileConsumerGroup(log, sink_fixture.folder / "group.json")
    found = collect_evidence(sink, sink_fixture.s3, admin)
    context = CompareContext(s3=sink_fixture.settings, admin=admin, engine=InlineEngine(log))
    result, *before = found.results()
    deep, *_ = compare(found, [result], context, sink.spec.errors)
    assert (result.findings, deep.findings, [each.findings for each in before if each.findings]) == ((), (), [])
    return deep


def lose_unpublished(sink_fixture: SinkFixture) -> None:
    """Removes the uploads and staging objects of objects that are not visible."""
    sink_fixture.delete_staging()
    for upload in list(sink_fixture.s3.list_uploads("")):
        sink_fixture.s3.abort(upload.key, upload.upload_id)


# -- open objects ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value_bytes", [100, LARGE], ids=["staged", "uploaded"])
@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_an_open_object_keeps_the_records_that_kafka_still_holds(
    sink_fixture: SinkFixture, caplog: pytest.LogCaptureFixture, value_bytes: int, compression: str
) -> None:
    given = {**OPEN, "compression": compression}
    sink_fixture.run(SyntheticLog(records=15, value_bytes=value_bytes), DONE, **given)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=25, value_bytes=value_bytes, starts_at=10)
    assert run(sink_fixture, held, **given) == 10
    assert contents(sink_fixture) == {key(10) + {"None": "", "Gzip": ".gz"}[compression]: list(range(10, 25))}
    assert sink_fixture.group() == {"log-0": 25}
    assert len(reports(caplog)) == 1
    assert "log-0" in reports(caplog)[0]
    assert "10 of the" in reports(caplog)[0]
    assert key(0) in reports(caplog)[0]
    assert sink_fixture.orphans() == []


def test_verify_reports_lost_records_as_a_note_and_not_as_a_finding(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=25, starts_at=10, value_bytes=LARGE)
    sink_fixture.run(held, DONE, **OPEN)
    result = verified(sink_fixture, held, **OPEN)
    assert (result.lost, result.gaps, result.pending_records) == (10, 10, 15)
    (note,) = (note for note in result.notes if "onDataLoss" in note)
    assert "10 records" in note
    sink_fixture.run(held, ALL, **OPEN)
    result = verified(sink_fixture, held, **OPEN)
    assert (result.lost, result.gaps, result.records) == (10, 10, 15)


def test_a_loss_is_not_reported_again_at_the_next_start(
    sink_fixture: SinkFixture, caplog: pytest.LogCaptureFixture
) -> None:
    sink_fixture.run(SyntheticLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=25, starts_at=10, value_bytes=LARGE)
    assert run(sink_fixture, held, DONE, **OPEN) == 10
    caplog.clear()
    assert run(sink_fixture, held, DONE, **OPEN) == 0
    assert run(sink_fixture, held, ALL, **OPEN) == 0
    assert reports(caplog) == []


def test_a_compacted_record_is_missing_from_its_object_only(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=20, gaps=frozenset({3, 4, 9}))
    assert run(sink_fixture, held, **OPEN) == 3
    kept = [offset for offset in range(20) if offset not in held.gaps]
    assert contents(sink_fixture) == {key(0): kept}
    assert verified(sink_fixture, held, **OPEN).lost == 3


def test_an_open_object_without_remaining_records_is_discarded(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=40, starts_at=30)
    assert run(sink_fixture, held, **OPEN) == 30
    assert contents(sink_fixture) == {key(30): list(range(30, 40))}
    assert sink_fixture.group() == {"log-0": 40}
    result = verified(sink_fixture, held, **OPEN)
    assert (result.lost, result.gaps) == (15, 30)


def test_a_log_that_lost_all_read_records_and_has_no_new_ones_is_handled(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=15, starts_at=15)
    assert run(sink_fixture, held, **OPEN) == 15
    assert contents(sink_fixture) == {}
    assert sink_fixture.group() == {"log-0": 15}
    assert verified(sink_fixture, held, **OPEN).lost == 15


def test_lost_records_do_not_count_for_flush_size(sink_fixture: SinkFixture) -> None:
    given: dict[str, Any] = {"flush_size": 20, "spec": CONTINUE}
    sink_fixture.run(SyntheticLog(records=15), DONE, **given)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=65, starts_at=10)
    sink_fixture.run(held, DONE, **given)
    assert contents(sink_fixture) == {key(10): list(range(10, 30)), key(30): list(range(30, 50))}
    assert verified(sink_fixture, held, **given).pending_records == 15


@pytest.mark.parametrize("scope", ["Partition", "Object"])
@pytest.mark.parametrize("starts_at", [0, 4, 17, 21, 30])
def test_each_path_keeps_the_records_that_kafka_still_holds(
    sink_fixture: SinkFixture, scope: str, starts_at: int
) -> None:
    """Objects of several paths; with scope Object some of them are closed."""
    given: dict[str, Any] = {
        "flush_size": 4 if scope == "Object" else 100,
        "scope": scope,
        "paths": True,
        "spec": CONTINUE,
    }
    before = SyntheticLog(records=22, paths=3, gaps=frozenset(range(13, 20, 3)))
    sink_fixture.run(before, DONE, **given)
    closed = contents(sink_fixture)
    lose_unpublished(sink_fixture)
    held = replace(before, records=60, starts_at=starts_at, gaps=before.gaps | {20, 31})
    run(sink_fixture, held, **given)
    after = contents(sink_fixture)
    assert {name: after[name] for name in closed} == closed
    offsets = sorted(offset for name in after for offset in after[name])
    visible = {offset for name in closed for offset in closed[name]}
    there = {offset for offset in range(starts_at, 60) if offset not in held.gaps}
    assert offsets == sorted(visible | there)
    assert all(name.endswith(f"{found[0]:010d}.json") for name, found in after.items())
    result = verified(sink_fixture, held, **given)
    assert result.records + result.gaps == 60
    assert sink_fixture.orphans() == []


def test_a_truncated_log_end_is_handled_like_an_expired_log_start(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    assert run(sink_fixture, SyntheticLog(records=12), **OPEN) == 3
    assert contents(sink_fixture) == {key(0): list(range(12))}


def test_a_log_end_that_is_low_for_a_moment_loses_nothing(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    ends = iter([15, 15, 12, 12, 12])
    monkeypatch.setattr(SyntheticLog, "end", lambda log, _: next(ends, log.records))
    assert run(sink_fixture, SyntheticLog(records=15), **OPEN) == 0
    assert contents(sink_fixture) == {key(0): list(range(15))}


def test_retention_during_the_rebuild_of_an_object_is_detected(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    starts = iter([5, 5])
    log = SyntheticLog(records=25, starts_at=10)
    held = FileConsumerGroup.beginning_offsets

    def late(self: FileConsumerGroup, partitions: Any) -> Any:
        return dict.fromkeys(held(self, partitions), next(starts, log.starts_at))

    monkeypatch.setattr(FileConsumerGroup, "beginning_offsets", late)
    assert run(sink_fixture, log, **OPEN) == 10
    assert contents(sink_fixture) == {key(10): list(range(10, 25))}


# -- closed objects --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("starts_at", [4, 14])
def test_a_closed_object_keeps_the_records_that_kafka_still_holds(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, starts_at: int
) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=25), **given)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=30, starts_at=starts_at)
    assert run(sink_fixture, held, **given) == starts_at
    cut = [list(range(start, end)) for start, end in ((0, 10), (10, 20), (20, 30))]
    kept = [left for each in cut if (left := [offset for offset in each if offset >= starts_at])]
    assert contents(sink_fixture) == {key(left[0]): left for left in kept}
    assert sink_fixture.group() == {"log-0": 30}
    assert any(key(0) in line and "log-0" in line for line in reports(caplog))
    result = verified(sink_fixture, held, **given)
    assert (result.lost, result.records + result.gaps) == (starts_at, 30)
    assert sink_fixture.orphans() == []


def test_a_closed_object_without_remaining_records_is_not_written(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=20), **given)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=20, starts_at=20)
    assert run(sink_fixture, held, **given) == 20
    assert contents(sink_fixture) == {}
    assert sink_fixture.group() == {"log-0": 20}
    assert verified(sink_fixture, held, **given).lost == 20
    assert run(sink_fixture, held, **given) == 0


def test_a_closed_object_that_lost_a_middle_record_keeps_its_key(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=20), **given)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=20, gaps=frozenset({3, 11}))
    assert run(sink_fixture, held, **given) == 2
    assert contents(sink_fixture) == {
        key(0): [offset for offset in range(10) if offset != 3],
        key(10): [offset for offset in range(10, 20) if offset != 11],
    }
    assert verified(sink_fixture, held, **given).lost == 2


def test_a_rebuilt_object_can_be_lost_again(sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    log = SyntheticLog(records=20)
    crash_before_publishing(sink_fixture, monkeypatch, log, **given)
    for starts_at in (3, 6):
        lose_unpublished(sink_fixture)
        crash_after_rebuilding(sink_fixture, monkeypatch, replace(log, starts_at=starts_at), **given)
    lose_unpublished(sink_fixture)
    held = replace(log, starts_at=8)
    sink_fixture.run(held, ALL, **given)
    assert contents(sink_fixture) == {key(8): [8, 9], key(10): list(range(10, 20))}
    assert verified(sink_fixture, held, **given).lost == 8


def test_a_loss_is_still_listed_after_the_ledgers_records_are_dropped(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next snapshot moves the loss into the published list."""
    given: dict[str, Any] = {"flush_size": 10, "spec": CONTINUE}
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=25), **given)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=90, starts_at=7)
    sink_fixture.run(held, DONE, **given, max_records=5, context={"snapshot_every": 2})
    assert 2 not in sink_fixture.records()
    result = verified(sink_fixture, held, **given)
    assert (result.lost, result.records) == (7, 83)


# -- with Fail, and with other commands ------------------------------------------------------------------------------


def test_with_fail_nothing_is_discarded_and_the_error_recommends_continue(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=100)
    lose_unpublished(sink_fixture)
    for held in (SyntheticLog(records=25, starts_at=10), SyntheticLog(records=25, gaps=frozenset({3}))):
        with pytest.raises(DataLoss, match="onDataLoss: Continue"):
            sink_fixture.run(held, ALL, flush_size=100)
    sink_fixture.run(SyntheticLog(records=25), ALL, flush_size=100)
    assert contents(sink_fixture) == {key(0): list(range(25))}


# -- records that Kafka returns and that are not selected any more ---------------------------------------------------


@pytest.fixture
def stricter(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A later version of a decoder, which rejects what it accepted before."""
    convert = JsonConverter.convert

    def rejecting(self: JsonConverter, values: pa.BinaryArray, source: BatchSource) -> Converted:
        found = convert(self, values, source)
        return replace(found, rejected=[(row, "it is too old") for row in range(len(values))])

    monkeypatch.setattr(JsonConverter, "convert", rejecting)
    return monkeypatch


@pytest.mark.parametrize("spec", [{}, CONTINUE], ids=["Fail", "Continue"])
def test_records_that_kafka_returns_and_that_are_not_selected_are_no_loss(
    sink_fixture: SinkFixture, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    log = SyntheticLog(records=15)
    sink_fixture.run(log, DONE, flush_size=100, spec=spec)
    lose_unpublished(sink_fixture)
    later = request.getfixturevalue("stricter")
    with pytest.raises(RebuildRejected, match=r"returns 15 records at its offsets.* selects 0 of the 15") as error:
        sink_fixture.run(log, ALL, flush_size=100, spec=spec)
    assert "onDataLoss does not apply" in str(error.value)
    later.undo()
    sink_fixture.run(SyntheticLog(records=25), ALL, flush_size=100, spec=spec)
    assert contents(sink_fixture) == {key(0): list(range(25))}


def test_the_versions_that_wrote_the_object_are_named(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    log = SyntheticLog(records=15)
    sink_fixture.run(log, DONE, flush_size=100, spec=CONTINUE)
    lose_unpublished(sink_fixture)
    request.getfixturevalue("stricter")
    installed = formats.selecting_libraries
    for module in (formats, object_rebuilder):
        monkeypatch.setattr(module, "selecting_libraries", lambda settings: (*installed(settings), "tzdata 2099.1"))
    with pytest.raises(
        RebuildRejected, match=r"was written with msgspec .*; installed are .*, tzdata 2099\.1\. Run the image"
    ):
        sink_fixture.run(log, ALL, flush_size=100, spec=CONTINUE)


def test_records_that_kafka_no_longer_returns_are_lost_also_with_other_libraries(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=100, spec=CONTINUE)
    lose_unpublished(sink_fixture)
    for module in (formats, object_rebuilder):
        monkeypatch.setattr(module, "selecting_libraries", lambda settings: ("tzdata 2099.1",))
    held = SyntheticLog(records=25, starts_at=20)
    sink_fixture.run(held, ALL, flush_size=100, spec=CONTINUE)
    assert sorted(offset for offsets in contents(sink_fixture).values() for offset in offsets) == list(range(20, 25))


def test_other_libraries_that_select_records_begin_other_objects(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=100)
    monkeypatch.setattr(formats, "selecting_libraries", lambda settings: ("tzdata 2099.1",))
    sink_fixture.run(SyntheticLog(records=25), ALL, flush_size=100)
    assert contents(sink_fixture) == {key(0): list(range(15)), key(15): list(range(15, 25))}


def test_the_ledger_is_correct_after_an_offset_reset_that_follows_a_loss(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=25, starts_at=10, value_bytes=LARGE)
    sink_fixture.run(held, DONE, **OPEN)
    sink_fixture.reset(held, "Earliest", on_existing="NewPrefix", **OPEN)
    sink_fixture.run(held, ALL, **OPEN)
    assert verified(sink_fixture, held, **OPEN).records == 15


def test_open_objects_discarded_after_a_loss_are_copied_again(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15, value_bytes=LARGE), DONE, **OPEN)
    lose_unpublished(sink_fixture)
    held = SyntheticLog(records=25, starts_at=10, value_bytes=LARGE)
    sink_fixture.run(held, DONE, **OPEN)
    sink_fixture.discard(**OPEN)
    sink_fixture.run(held, ALL, **OPEN)
    assert contents(sink_fixture) == {key(10): list(range(10, 25))}
    assert verified(sink_fixture, held, **OPEN).lost == 10
