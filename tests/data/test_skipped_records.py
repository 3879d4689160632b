"""Skipped records: in no object and no dead letter, also after a rebuild, a start without the entry, and a discard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy
from devtools.s3 import S3Server
from sink_job.api.errors import DataError
from sink_job.coordinator.context import StopCondition
from tests.data.test_crash_points import EFFECTS, Undisturbed, expect_same_after_kills, through
from tests.support.crash_points import crash_before_publishing
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import deep

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)


class BadLog(SyntheticLog):
    """A log of which every fifth record is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        value = super().value(partition, offset)
        return value[1:] if offset % 5 == 4 else value


def skipping(*offsets: int, **more: Any) -> dict[str, Any]:
    """Settings with a list of offsets of partition 0."""
    listed = [{"topic": "log", "partition": 0, "offset": offset} for offset in offsets]
    return {"errors": {"skip": listed, **more}}


def offsets_of(sink_fixture: SinkFixture, directory: str = "topics/") -> list[int]:
    found = sink_fixture.keys()
    keys = [key for key in found if key.startswith(directory)]
    return sorted(offset for key in keys for offset in sink_fixture.offsets(key))


def expect(sink_fixture: SinkFixture, log: SyntheticLog, skipped: list[int], **given: Any) -> None:
    """The objects have all records but the skipped ones, `verify --deep` finds nothing and counts them."""
    assert offsets_of(sink_fixture) == [o for o in range(log.records) if o not in {*skipped, *log.gaps}]
    (verdict,) = deep(sink_fixture, log, **given)
    assert verdict.findings == ()
    assert (verdict.skipped, verdict.gaps) == (len(skipped), len(skipped) + len(log.gaps))
    assert sink_fixture.orphans() == []


def test_a_sink_that_has_stopped_at_a_record_passes_over_it_at_the_next_start(sink_fixture: SinkFixture) -> None:
    log = BadLog(records=9)
    with pytest.raises(DataError) as stopped:
        sink_fixture.run(log, ALL, flush_size=10)
    assert stopped.value.offset == 4
    sink_fixture.run(log, ALL, flush_size=10, **skipping(4))
    expect(sink_fixture, log, [4])


@pytest.mark.parametrize("max_records", [1, 4, 1000])
@pytest.mark.parametrize("scope", ["Partition", "Object"])
def test_objects_and_gaps_add_up_over_rounds_and_restarts(
    sink_fixture: SinkFixture, scope: str, max_records: int
) -> None:
    """Each start has another list; records of the lists are valid and invalid."""
    log = BadLog(records=40, paths=3, gaps=frozenset({6, 9, 19, 29, 34, 39}))
    given: dict[str, Any] = {"paths": True, "scope": scope, "max_records": max_records, "flush_size": 7}
    for end, listed in ((3, ()), (16, (4, 5, 14)), (26, (24, 25)), (40, (26, 27))):
        sink_fixture.run(BadLog(records=end, paths=3, gaps=log.gaps), DONE, **given, **skipping(*listed))
    sink_fixture.run(log, ALL, **given)
    expect(sink_fixture, log, [4, 5, 14, 24, 25, 26, 27], **given)


def test_a_change_of_the_list_closes_no_object(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=100)
    sink_fixture.run(SyntheticLog(records=9), DONE, flush_size=100, **skipping(7))
    assert sink_fixture.keys() == []
    sink_fixture.run(SyntheticLog(records=9), ALL, flush_size=100)
    assert len(sink_fixture.keys()) == 1
    expect(sink_fixture, SyntheticLog(records=9), [7])


def test_an_offset_that_was_read_before_stays_in_its_object(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=9)
    sink_fixture.run(log, DONE, flush_size=100)
    driver = sink_fixture.driver(log, ALL, flush_size=100, **skipping(3, 20))
    driver.run()
    expect(sink_fixture, log, [])
    report = driver.progress.report().skips
    assert report is not None
    assert (report.waiting, report.without_effect) == (1, 1)


GIVEN: dict[str, Any] = {"flush_size": 6, "max_records": 4}


@pytest.fixture
def undisturbed(sink_fixture: SinkFixture) -> dict[str, bytes]:
    """The objects of a run without faults."""
    other = sink_fixture.sibling()
    other.run(SyntheticLog(records=14), ALL, **GIVEN, **skipping(2, 7, 8))
    return other.contents()


def test_a_rebuild_leaves_out_what_was_skipped_without_the_entry(
    sink_fixture: SinkFixture, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SyntheticLog(records=14)
    crash_before_publishing(sink_fixture, monkeypatch, log, **GIVEN, **skipping(2, 7, 8))
    sink_fixture.abort_uploads_of("")
    sink_fixture.run(log, ALL, **GIVEN, **skipping(7, 8))
    assert sink_fixture.contents() == undisturbed


def test_lost_remainders_are_rebuilt_without_what_was_skipped(
    sink_fixture: SinkFixture, undisturbed: dict[str, bytes]
) -> None:
    for end, listed in ((4, (2,)), (8, (7,)), (9, (8,)), (14, ())):
        sink_fixture.run(SyntheticLog(records=end), ALL if end == 14 else DONE, **GIVEN, **skipping(*listed))
        sink_fixture.delete_staging()
    assert sink_fixture.contents() == undisturbed
    expect(sink_fixture, SyntheticLog(records=14), [2, 7, 8], **GIVEN)


def test_a_skipped_record_that_a_discard_brings_back_is_skipped_again(sink_fixture: SinkFixture) -> None:
    log = BadLog(records=9)
    sink_fixture.run(log, DONE, flush_size=100, **skipping(4))
    sink_fixture.discard()
    sink_fixture.run(log, ALL, flush_size=100)
    expect(sink_fixture, log, [4])


def test_an_offset_reset_reads_what_was_skipped(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=9)
    sink_fixture.run(log, ALL, flush_size=100, **skipping(4))
    sink_fixture.reset(log, "Earliest", on_existing="NewPrefix")
    sink_fixture.run(log, ALL, flush_size=100)
    assert offsets_of(sink_fixture, "topics/generation=2/") == [*range(9)]
    verdicts = {each.generation: (each.findings, each.skipped) for each in sink_fixture.verify(log)}
    assert verdicts == {1: ((), 1), 2: ((), 0)}


def test_a_skipped_record_is_no_dead_letter_also_after_a_rebuild(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = BadLog(records=25)
    tolerant = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}
    given = {"flush_size": 100, "max_records": 7}
    sink_fixture.run(log, DONE, **given, **skipping(9, 10, **tolerant))
    sink_fixture.delete_staging()
    sink_fixture.run(log, ALL, **given, **skipping(**tolerant))
    assert offsets_of(sink_fixture, "rejected/") == [4, 14, 19, 24]
    (verdict,) = deep(sink_fixture, log, **given, **skipping(**tolerant))
    assert (verdict.findings, verdict.skipped, verdict.dead_letters) == ((), 2, 4)


def test_an_offset_without_a_record_is_passed_and_then_reported(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=9, gaps=frozenset({4}))
    driver = sink_fixture.driver(log, ALL, flush_size=100, **skipping(4))
    driver.run()
    expect(sink_fixture, log, [])
    report = driver.progress.report().skips
    assert report is not None
    assert [(each.offset, "it has no record" in each.reason) for each in report.records_without_effect] == [(4, True)]


KILLED = SyntheticLog(records=9, value_bytes=1_500_000)
SETTINGS: dict[str, Any] = {"flush_size": 4, "max_records": 4, "part_size": "5Mi", **skipping(1, 5, 6)}


@pytest.fixture(scope="module")
def never_killed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    with FaultProxy(s3.endpoint) as proxy:
        sink_fixture = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
        through(sink_fixture, proxy).run(KILLED, ALL, **SETTINGS)
        counts = {effect: proxy.count(matches) for effect, matches in EFFECTS.items()}
    return Undisturbed(sink_fixture.contents(), sink_fixture.group(), counts)


@pytest.mark.parametrize("effect", ["a part", "a staged remainder", "a record", "a completion"])
def test_a_kill_leaves_the_same_objects_beside_skipped_records(
    s3: S3Server, never_killed: Undisturbed, tmp_path: Path, effect: str
) -> None:
    expect_same_after_kills(s3, never_killed, tmp_path, KILLED, SETTINGS, effect, "after")
