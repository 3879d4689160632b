"""`s3sink reset-offsets`: a new generation starts at the requested offsets; each is verified separately."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from devtools.processes import wait_until
from sink_job.api.errors import (
    ConfigurationError,
    ExistingObjects,
    InvalidSpec,
    LedgerFenced,
    SinkError,
    TopicRecreated,
)
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.generations import generation_metadata
from sink_job.verify.results import PartitionResult
from tests.support.sink_fixture import SinkFixture, TickingClock
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
LOG = SyntheticLog(records=25)
NEW = "topics/generation=2/log/partition=0/log+0+0000000000.json"


@pytest.fixture
def written(sink_fixture: SinkFixture) -> SinkFixture:
    """A sink with 25 records in three objects and no open object."""
    sink_fixture.run(LOG, ALL, flush_size=10)
    return sink_fixture


def offsets(sink_fixture: SinkFixture, below: str = "topics/log/") -> list[int]:
    """The offsets in the visible objects of a directory."""
    return [offset for key in sink_fixture.keys() if key.startswith(below) for offset in sink_fixture.offsets(key)]  # noqa: SIM118


def object_at(first: int) -> str:
    return f"topics/log/partition=0/log+0+{first:010d}.json"


def expect_no_findings(results: list[PartitionResult]) -> None:
    assert [finding for each in results for finding in each.findings] == []


# -- start offsets ---------------------------------------------------------------------------------------------------


def test_latest_skips_records_that_are_not_copied_and_reports_their_number(written: SinkFixture) -> None:
    longer = replace(LOG, records=40)
    report = written.reset(longer, "Latest")
    assert (report.generation, report.skipped, report.copied_again) == (2, 15, 0)
    written.run(replace(LOG, records=50), ALL, flush_size=10)
    assert offsets(written) == [*range(25), *range(40, 50)]
    expect_no_findings(written.verify(replace(LOG, records=50)))


def test_the_groups_offset_is_the_new_start(written: SinkFixture) -> None:
    written.reset(replace(LOG, records=40), "Latest")
    assert written.group() == {"log-0": 40}


def test_a_timestamp_starts_at_the_first_record_not_before_it(written: SinkFixture) -> None:
    longer = replace(LOG, records=40)
    report = written.reset(
        longer, "Timestamp", timestamp=CLOCK_MS, clock=lambda: CLOCK_MS + 10**9, on_existing="NewPrefix"
    )
    assert [each.start for each in report.partitions] == [0]
    report = written.reset(
        longer, "Timestamp", timestamp=LOG.timestamp(30) - 1, clock=lambda: CLOCK_MS + 10**9, on_existing="NewPrefix"
    )
    assert [each.start for each in report.partitions] == [30]


def test_partitions_that_are_not_listed_keep_their_position(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=25, partitions=2)
    sink_fixture.run(log, ALL, flush_size=10)
    report = sink_fixture.reset(replace(log, records=60), "Offsets", at={1: 50})
    assert {each.partition: (each.previous, each.start) for each in report.partitions} == {0: (25, 25), 1: (25, 50)}


def test_open_objects_are_discarded_and_count_as_skipped(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LOG, DONE, flush_size=10)
    report = sink_fixture.reset(LOG, "Latest")
    assert (report.skipped, sink_fixture.orphans()) == (5, [])
    sink_fixture.run(replace(LOG, records=30), ALL, flush_size=10)
    assert offsets(sink_fixture) == [*range(20), *range(25, 30)]
    expect_no_findings(sink_fixture.verify(replace(LOG, records=30)))


def test_a_recreated_topic_can_be_copied_after_a_reset(written: SinkFixture) -> None:
    recreated = SyntheticLog(records=12, topic_id="another")
    with pytest.raises(TopicRecreated):
        written.run(recreated, DONE, flush_size=10)
    written.reset(recreated, "Earliest", on_existing="NewPrefix")
    written.run(recreated, ALL, flush_size=10)
    assert offsets(written, "topics/generation=2/") == list(range(12))
    expect_no_findings(written.verify(recreated))


# -- existing objects ------------------------------------------------------------------------------------------------


def test_with_fail_conflicting_objects_are_reported_and_nothing_is_changed(written: SinkFixture) -> None:
    before = [listed.key for listed in written.s3.list("")]
    with pytest.raises(ExistingObjects, match=r"3 objects hold .*log\+0\+0000000000.json.*log-0 at 25.*NewPrefix"):
        written.reset(LOG, "Earliest")
    assert [listed.key for listed in written.s3.list("")] == before
    assert written.group() == {"log-0": 25}


def test_with_fail_an_object_that_spans_the_start_conflicts(written: SinkFixture) -> None:
    with pytest.raises(ExistingObjects, match=r"1 object holds .*0000000020.json"):
        written.reset(LOG, "Offsets", at={0: 22})


def test_with_fail_an_unlisted_object_conflicts(written: SinkFixture) -> None:
    written.put("topics/log/partition=0/log+0+0000000030.json", b"{}\n")
    with pytest.raises(ExistingObjects, match="0000000030"):
        written.reset(replace(LOG, records=40), "Offsets", at={0: 28})


def test_with_fail_an_unlisted_object_that_may_span_the_start_conflicts(written: SinkFixture) -> None:
    """The key contains the first offset. The last offset is unknown unless another object follows."""
    written.put(object_at(25), b"{}\n")
    with pytest.raises(ExistingObjects, match=r"1 objects that begin below .*0000000025"):
        written.reset(replace(LOG, records=40), "Offsets", at={0: 28})
    assert written.reset(replace(LOG, records=40), "Offsets", at={0: 28}, on_existing="NewPrefix").generation == 2


def test_with_fail_objects_older_than_the_sink_are_ignored(sink_fixture: SinkFixture) -> None:
    sink_fixture.set_group({"log-0": 10})
    sink_fixture.put(object_at(0), b"{}\n")
    sink_fixture.run(LOG, ALL, flush_size=10)
    assert sink_fixture.reset(LOG, "Latest").generation == 2
    expect_no_findings(sink_fixture.verify(LOG))


def test_with_fail_a_start_inside_a_moved_object_is_rejected(written: SinkFixture) -> None:
    written.s3.delete([object_at(20)])
    with pytest.raises(
        ConfigurationError, match=r"offsets 20 to 24 .* does not exist: with a start at 22.*Start at 20"
    ):
        written.reset(LOG, "Offsets", at={0: 22})
    assert written.reset(LOG, "Offsets", at={0: 20}).generation == 2


def test_with_fail_a_closed_object_becomes_visible_and_then_conflicts(sink_fixture: SinkFixture) -> None:
    with pytest.raises(_Crash):
        _run_to_the_first_completion(sink_fixture)
    with pytest.raises(ExistingObjects, match=r"log\+0\+0000000000.json"):
        sink_fixture.reset(LOG, "Offsets", at={0: 5})
    assert object_at(0) in sink_fixture.keys()  # noqa: SIM118


def test_with_fail_moved_objects_can_be_copied_again(written: SinkFixture) -> None:
    written.s3.delete(written.keys())
    assert written.reset(LOG, "Earliest").copied_again == 25
    written.run(LOG, ALL, flush_size=5)
    assert offsets(written) == list(range(25))
    expect_no_findings(written.verify(LOG))


def test_with_a_new_prefix_all_records_are_copied_and_the_old_objects_stay(written: SinkFixture) -> None:
    before = written.contents()
    report = written.reset(LOG, "Earliest", on_existing="NewPrefix")
    assert (report.topics_dir, report.copied_again) == ("topics/generation=2", 25)
    written.run(LOG, ALL, flush_size=15)
    assert {key: body for key, body in written.contents().items() if key in before} == before
    assert offsets(written, "topics/generation=2/") == list(range(25))
    assert written.keys()[0] == NEW
    expect_no_findings(written.verify(LOG))
    assert {(each.generation, each.objects) for each in written.verify(LOG)} == {(1, 3), (2, 2)}


def test_a_second_new_prefix_is_the_next_one(written: SinkFixture) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    written.run(LOG, ALL, flush_size=10)
    assert written.reset(LOG, "Earliest", on_existing="NewPrefix").topics_dir == "topics/generation=3"
    written.run(LOG, ALL, flush_size=10)
    assert offsets(written, "topics/generation=3/") == list(range(25))
    expect_no_findings(written.verify(LOG))


def test_a_new_prefix_that_is_not_empty_is_rejected(written: SinkFixture) -> None:
    written.put("topics/generation=2/log/foreign", b"")
    with pytest.raises(ExistingObjects, match="foreign already exists there"):
        written.reset(LOG, "Earliest", on_existing="NewPrefix")
    assert written.group() == {"log-0": 25}


def test_a_sink_with_changed_settings_keeps_the_new_prefix(written: SinkFixture) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    written.run(LOG, DONE, flush_size=10)
    written.run(LOG, ALL, flush_size=10, compression="Gzip")
    assert offsets(written, "topics/generation=2/") == list(range(25))
    expect_no_findings(written.verify(LOG, compression="Gzip"))


# -- one writer, one execution ---------------------------------------------------------------------------------------


def test_a_running_driver_is_fenced(sink_fixture: SinkFixture) -> None:
    driver = sink_fixture.start(
        LOG, StopCondition(), flush_size=10, clock=TickingClock(), context={"head_check_interval_ms": 1}
    )
    wait_until(lambda: sink_fixture.group() == {"log-0": 20}, "the driver's commit", seconds=60)
    sink_fixture.reset(LOG, "Latest")
    assert driver.wait() == LedgerFenced.exit_code
    assert sink_fixture.group() == {"log-0": 25}
    assert sink_fixture.orphans() == []


def test_a_request_is_carried_out_once(written: SinkFixture) -> None:
    first = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    written.run(LOG, ALL, flush_size=10)
    again = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    assert (again.generation, again.record, again.repeated) == (first.generation, first.record, True)
    assert again.partitions == first.partitions
    assert written.group() == {"log-0": 25}


def test_a_request_followed_by_others_is_not_carried_out_again(written: SinkFixture) -> None:
    first = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="b")
    written.run(LOG, ALL, flush_size=10)
    before = written.records()
    again = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    assert (again.repeated, again.record, again.topics_dir) == (True, first.record, "topics/generation=2")
    assert again.partitions == first.partitions
    assert (written.records(), written.group()) == (before, {"log-0": 25})


@pytest.mark.parametrize("other", [{"to": "Latest"}, {"to": "Earliest", "on_existing": "Fail"}])
def test_a_different_request_with_a_used_nonce_is_rejected(written: SinkFixture, other: dict[str, Any]) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="b")
    before = written.records()
    with pytest.raises(ConfigurationError, match=r"nonce a .* to Earliest .* generation 2 .*a nonce of its own"):
        written.reset(LOG, nonce="a", **{"on_existing": "NewPrefix", **other})
    assert written.records() == before


def test_a_late_commit_of_a_previous_driver_does_not_count_as_published(written: SinkFixture) -> None:
    """The driver sleeps between its check of the head and its commit, during the reset."""
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    with pytest.raises(_Crash):
        _run_to_the_first_completion(written)
    FileConsumerGroup(LOG, written.folder / "group.json").alter_group_offsets(
        "group", {TopicPartition("log", 0): 25}, metadata=generation_metadata(1)
    )
    written.abort_uploads_of("topics/generation=2/")
    written.run(LOG, ALL, flush_size=10)
    assert offsets(written, "topics/generation=2/") == list(range(25))


class _Crash(Exception):
    """Represents a crash of the process at this point."""


def _run_to_the_first_completion(sink_fixture: SinkFixture) -> None:
    from sink_job.ledger import publisher as publishing

    def end(*_: Any) -> None:
        raise _Crash

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publishing, "publish", end)
        sink_fixture.run(LOG, DONE, flush_size=10)


# -- rejected requests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"to": "Offsets", "at": {3: 5}}, InvalidSpec, "3 does not exist; log has partitions 0 to 0"),
        ({"to": "Offsets", "at": {0: 26}}, InvalidSpec, "26 is not between 0 and 25"),
        (
            {"to": "Timestamp", "timestamp": CLOCK_MS + 1},
            InvalidSpec,
            "is in the future; to start after the last record, use to: Latest",
        ),
    ],
    ids=["a partition that does not exist", "an offset behind the log end", "a time to come"],
)
def test_an_invalid_request_is_rejected_before_anything_is_changed(
    written: SinkFixture, options: dict[str, Any], error: type[SinkError], message: str
) -> None:
    before = [listed.key for listed in written.s3.list("")]
    with pytest.raises(error, match=message):
        written.reset(LOG, **options)
    assert [listed.key for listed in written.s3.list("")] == before


def test_without_a_ledger_there_is_nothing_to_reset(sink_fixture: SinkFixture) -> None:
    with pytest.raises(ConfigurationError, match="has not run, and has no offsets to reset"):
        sink_fixture.reset(LOG, "Earliest")


def test_an_offset_that_kafka_no_longer_holds_is_rejected(written: SinkFixture) -> None:
    with pytest.raises(InvalidSpec, match="4 is not between 10 and 25"):
        written.reset(replace(LOG, starts_at=10), "Offsets", at={0: 4})


# -- verify with several generations ---------------------------------------------------------------------------------


def findings(results: list[PartitionResult]) -> list[tuple[int, str, int]]:
    """Generation, finding type and first offset of each finding."""
    return [(each.generation, finding.type, finding.offset) for each in results for finding in each.findings]


def test_an_offset_of_the_previous_generation_is_not_a_finding(written: SinkFixture) -> None:
    """The command was killed between its record and its commit, or a driver that slept during it commits late."""
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    FileConsumerGroup(LOG, written.folder / "group.json").alter_group_offsets(
        "group", {TopicPartition("log", 0): 25}, metadata=generation_metadata(1)
    )
    expect_no_findings(written.verify(LOG))


def test_objects_that_a_generation_has_not_copied_again_are_missing(written: SinkFixture) -> None:
    written.s3.delete(written.keys())
    written.reset(LOG, "Earliest")
    written.run(replace(LOG, records=10), ALL, flush_size=10)
    written.reset(LOG, "Latest")
    assert findings(written.verify(LOG)) == [(1, "ObjectMissing", 10), (1, "ObjectMissing", 20)]


def test_objects_are_missing_if_their_replacing_directory_was_abandoned(written: SinkFixture) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    written.s3.delete([object_at(10)])
    expect_no_findings(written.verify(LOG))
    written.reset(LOG, "Latest")
    assert findings(written.verify(LOG)) == [(1, "ObjectMissing", 10)]


def test_objects_copied_again_by_two_later_generations_may_be_absent(written: SinkFixture) -> None:
    written.s3.delete(written.keys())
    written.reset(LOG, "Earliest")
    written.run(replace(LOG, records=15), ALL, flush_size=15)
    written.reset(LOG, "Offsets", at={0: 15})
    written.run(LOG, ALL, flush_size=10)
    assert offsets(written) == list(range(25))
    expect_no_findings(written.verify(LOG))


def test_a_previous_object_restored_beside_its_copies_is_a_duplicate(written: SinkFixture) -> None:
    before = written.contents()
    written.s3.delete([object_at(10), object_at(20)])
    written.reset(LOG, "Offsets", at={0: 10})
    written.run(LOG, ALL, flush_size=15)
    expect_no_findings(written.verify(LOG))
    written.put(object_at(20), before[object_at(20)])
    assert findings(written.verify(LOG)) == [(1, "DuplicateOffsets", 20)]


def test_an_unlisted_object_between_two_generations_is_a_possible_duplicate(
    written: SinkFixture,
) -> None:
    longer = replace(LOG, records=40)
    written.reset(longer, "Offsets", at={0: 28})
    written.run(longer, ALL, flush_size=10)
    expect_no_findings(written.verify(longer))
    written.put(object_at(25), b"{}\n")
    assert findings(written.verify(longer)) == [(2, "UntrackedObject", 25)]
