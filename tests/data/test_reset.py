"""`s3sink reset-offsets`: a new generation starts where it was asked to, and each generation is proved for itself."""

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
from tests.support.sink_fixture import Place, Ticking
from tests.support.synthetic_log import CLOCK_MS, FileGroup, FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
LOG = FunctionLog(records=25)
NEW = "topics/generation=2/log/partition=0/log+0+0000000000.json"


@pytest.fixture
def written(place: Place) -> Place:
    """25 records in three objects, nothing open."""
    place.run(LOG, ALL, flush_size=10)
    return place


def offsets(place: Place, below: str = "topics/log/") -> list[int]:
    """The offsets in the visible objects of a directory."""
    return [offset for key in place.keys() if key.startswith(below) for offset in place.offsets(key)]  # noqa: SIM118


def object_at(first: int) -> str:
    return f"topics/log/partition=0/log+0+{first:010d}.json"


def expect_right(verdicts: list[PartitionResult]) -> None:
    assert [finding for each in verdicts for finding in each.findings] == []


# -- where it starts -------------------------------------------------------------------------------------------------


def test_latest_leaves_out_what_is_not_copied_yet_and_says_how_much(written: Place) -> None:
    longer = replace(LOG, records=40)
    report = written.reset(longer, "Latest")
    assert (report.generation, report.skipped, report.copied_again) == (2, 15, 0)
    written.run(replace(LOG, records=50), ALL, flush_size=10)
    assert offsets(written) == [*range(25), *range(40, 50)]
    expect_right(written.verify(replace(LOG, records=50)))


def test_the_groups_offset_is_where_it_starts(written: Place) -> None:
    written.reset(replace(LOG, records=40), "Latest")
    assert written.group() == {"log-0": 40}


def test_at_a_time_it_starts_with_the_first_record_of_that_time(written: Place) -> None:
    longer = replace(LOG, records=40)
    report = written.reset(
        longer, "Timestamp", timestamp=CLOCK_MS, clock=lambda: CLOCK_MS + 10**9, on_existing="NewPrefix"
    )
    assert [each.start for each in report.partitions] == [0]
    report = written.reset(
        longer, "Timestamp", timestamp=LOG.timestamp(30) - 1, clock=lambda: CLOCK_MS + 10**9, on_existing="NewPrefix"
    )
    assert [each.start for each in report.partitions] == [30]


def test_partitions_that_are_not_named_go_on_where_they_are(place: Place) -> None:
    log = FunctionLog(records=25, partitions=2)
    place.run(log, ALL, flush_size=10)
    report = place.reset(replace(log, records=60), "Offsets", at={1: 50})
    assert {each.partition: (each.previous, each.start) for each in report.partitions} == {0: (25, 25), 1: (25, 50)}


def test_what_is_open_is_given_up_and_counts_as_not_copied(place: Place) -> None:
    place.run(LOG, DONE, flush_size=10)
    report = place.reset(LOG, "Latest")
    assert (report.skipped, place.litter()) == (5, [])
    place.run(replace(LOG, records=30), ALL, flush_size=10)
    assert offsets(place) == [*range(20), *range(25, 30)]
    expect_right(place.verify(replace(LOG, records=30)))


def test_a_topic_that_was_made_anew_can_be_copied_after_a_reset(written: Place) -> None:
    anew = FunctionLog(records=12, topic_id="another")
    with pytest.raises(TopicRecreated):
        written.run(anew, DONE, flush_size=10)
    written.reset(anew, "Earliest", on_existing="NewPrefix")
    written.run(anew, ALL, flush_size=10)
    assert offsets(written, "topics/generation=2/") == list(range(12))
    expect_right(written.verify(anew))


# -- what exists -----------------------------------------------------------------------------------------------------


def test_with_fail_objects_in_the_way_are_named_and_nothing_is_changed(written: Place) -> None:
    before = [listed.key for listed in written.s3.list("")]
    with pytest.raises(ExistingObjects, match=r"3 objects hold .*log\+0\+0000000000.json.*log-0 at 25.*NewPrefix"):
        written.reset(LOG, "Earliest")
    assert [listed.key for listed in written.s3.list("")] == before
    assert written.group() == {"log-0": 25}


def test_with_fail_an_object_that_begins_before_the_start_and_ends_behind_it_is_in_the_way(written: Place) -> None:
    with pytest.raises(ExistingObjects, match=r"1 object holds .*0000000020.json"):
        written.reset(LOG, "Offsets", at={0: 22})


def test_with_fail_an_object_that_no_list_names_is_in_the_way(written: Place) -> None:
    written.put("topics/log/partition=0/log+0+0000000030.json", b"{}\n")
    with pytest.raises(ExistingObjects, match="0000000030"):
        written.reset(replace(LOG, records=40), "Offsets", at={0: 28})


def test_with_fail_an_object_that_no_list_names_and_may_reach_over_the_start_is_in_the_way(written: Place) -> None:
    """Its key says where it begins, and nothing says where it ends, if no other one follows."""
    written.put(object_at(25), b"{}\n")
    with pytest.raises(ExistingObjects, match=r"1 objects that begin below .*0000000025"):
        written.reset(replace(LOG, records=40), "Offsets", at={0: 28})
    assert written.reset(replace(LOG, records=40), "Offsets", at={0: 28}, on_existing="NewPrefix").generation == 2


def test_with_fail_objects_of_before_the_sink_are_left_alone(place: Place) -> None:
    place.set_group({"log-0": 10})
    place.put(object_at(0), b"{}\n")
    place.run(LOG, ALL, flush_size=10)
    assert place.reset(LOG, "Latest").generation == 2
    expect_right(place.verify(LOG))


def test_with_fail_a_start_inside_an_object_that_was_moved_away_is_refused(written: Place) -> None:
    written.s3.delete([object_at(20)])
    with pytest.raises(
        ConfigurationError, match=r"offsets 20 to 24 .* does not exist: with a start at 22.*Start at 20"
    ):
        written.reset(LOG, "Offsets", at={0: 22})
    assert written.reset(LOG, "Offsets", at={0: 20}).generation == 2


def test_with_fail_a_named_object_becomes_visible_and_is_in_the_way_then(place: Place) -> None:
    with pytest.raises(_Ended):
        _run_to_the_first_completion(place)
    with pytest.raises(ExistingObjects, match=r"log\+0\+0000000000.json"):
        place.reset(LOG, "Offsets", at={0: 5})
    assert object_at(0) in place.keys()  # noqa: SIM118


def test_with_fail_what_was_moved_away_can_be_copied_again(written: Place) -> None:
    written.s3.delete(written.keys())
    assert written.reset(LOG, "Earliest").copied_again == 25
    written.run(LOG, ALL, flush_size=5)
    assert offsets(written) == list(range(25))
    expect_right(written.verify(LOG))


def test_with_a_new_prefix_all_is_copied_there_and_the_old_objects_stay(written: Place) -> None:
    before = written.bodies()
    report = written.reset(LOG, "Earliest", on_existing="NewPrefix")
    assert (report.topics_dir, report.copied_again) == ("topics/generation=2", 25)
    written.run(LOG, ALL, flush_size=15)
    assert {key: body for key, body in written.bodies().items() if key in before} == before
    assert offsets(written, "topics/generation=2/") == list(range(25))
    assert written.keys()[0] == NEW
    expect_right(written.verify(LOG))
    assert {(each.generation, each.objects) for each in written.verify(LOG)} == {(1, 3), (2, 2)}


def test_a_second_new_prefix_is_the_next_one(written: Place) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    written.run(LOG, ALL, flush_size=10)
    assert written.reset(LOG, "Earliest", on_existing="NewPrefix").topics_dir == "topics/generation=3"
    written.run(LOG, ALL, flush_size=10)
    assert offsets(written, "topics/generation=3/") == list(range(25))
    expect_right(written.verify(LOG))


def test_a_new_prefix_where_something_stands_is_refused(written: Place) -> None:
    written.put("topics/generation=2/log/somebody's", b"")
    with pytest.raises(ExistingObjects, match="somebody's already exists there"):
        written.reset(LOG, "Earliest", on_existing="NewPrefix")
    assert written.group() == {"log-0": 25}


def test_after_a_new_prefix_a_sink_with_other_settings_keeps_to_it(written: Place) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    written.run(LOG, DONE, flush_size=10)
    written.run(LOG, ALL, flush_size=10, compression="Gzip")
    assert offsets(written, "topics/generation=2/") == list(range(25))
    expect_right(written.verify(LOG, compression="Gzip"))


# -- one writer, once ------------------------------------------------------------------------------------------------


def test_a_driver_that_lives_is_fenced(place: Place) -> None:
    driver = place.start(LOG, StopCondition(), flush_size=10, clock=Ticking(), world={"look_every": 1})
    wait_until(lambda: place.group() == {"log-0": 20}, "the driver's commit", seconds=60)
    place.reset(LOG, "Latest")
    assert driver.wait() == LedgerFenced.exit_code
    assert place.group() == {"log-0": 25}
    assert place.litter() == []


def test_a_request_is_carried_out_once(written: Place) -> None:
    first = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    written.run(LOG, ALL, flush_size=10)
    again = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    assert (again.generation, again.record, again.repeated) == (first.generation, first.record, True)
    assert again.partitions == first.partitions
    assert written.group() == {"log-0": 25}


def test_a_request_that_others_came_after_is_not_carried_out_again(written: Place) -> None:
    first = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="b")
    written.run(LOG, ALL, flush_size=10)
    before = written.records()
    again = written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    assert (again.repeated, again.record, again.topics_dir) == (True, first.record, "topics/generation=2")
    assert again.partitions == first.partitions
    assert (written.records(), written.group()) == (before, {"log-0": 25})


@pytest.mark.parametrize("other", [{"to": "Latest"}, {"to": "Earliest", "on_existing": "Fail"}])
def test_another_request_with_the_nonce_of_one_that_was_carried_out_is_refused(
    written: Place, other: dict[str, Any]
) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="a")
    written.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="b")
    before = written.records()
    with pytest.raises(ConfigurationError, match=r"nonce a .* to Earliest .* generation 2 .*a nonce of its own"):
        written.reset(LOG, nonce="a", **{"on_existing": "NewPrefix", **other})
    assert written.records() == before


def test_an_offset_that_a_driver_of_before_commits_late_does_not_pass_for_a_published_object(written: Place) -> None:
    """It went to sleep between its look at the ledger and its commit, and slept through the reset."""
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    with pytest.raises(_Ended):
        _run_to_the_first_completion(written)
    FileGroup(LOG, written.folder / "group.json").alter_group_offsets(
        "group", {TopicPartition("log", 0): 25}, metadata=generation_metadata(1)
    )
    written.abort_uploads_of("topics/generation=2/")
    written.run(LOG, ALL, flush_size=10)
    assert offsets(written, "topics/generation=2/") == list(range(25))


class _Ended(Exception):
    """Stands for the end of the process at this point."""


def _run_to_the_first_completion(place: Place) -> None:
    from sink_job.ledger import publisher as publishing

    def end(*_: Any) -> None:
        raise _Ended

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publishing, "publish", end)
        place.run(LOG, DONE, flush_size=10)


# -- what cannot be done ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "kind", "said"),
    [
        ({"to": "Offsets", "at": {3: 5}}, InvalidSpec, "3 does not exist; log has partitions 0 to 0"),
        ({"to": "Offsets", "at": {0: 26}}, InvalidSpec, "26 is not between 0 and 25"),
        (
            {"to": "Timestamp", "timestamp": CLOCK_MS + 1},
            InvalidSpec,
            "is in the future; to start after the last record, use to: Latest",
        ),
    ],
    ids=["a partition that does not exist", "an offset behind the log's end", "a time to come"],
)
def test_what_makes_no_sense_is_refused_before_anything_is_changed(
    written: Place, asked: dict[str, Any], kind: type[SinkError], said: str
) -> None:
    before = [listed.key for listed in written.s3.list("")]
    with pytest.raises(kind, match=said):
        written.reset(LOG, **asked)
    assert [listed.key for listed in written.s3.list("")] == before


def test_without_a_ledger_there_is_nothing_to_reset(place: Place) -> None:
    with pytest.raises(ConfigurationError, match="has not run, and has no offsets to reset"):
        place.reset(LOG, "Earliest")


def test_an_offset_that_kafka_no_longer_holds_is_refused(written: Place) -> None:
    with pytest.raises(InvalidSpec, match="4 is not between 10 and 25"):
        written.reset(replace(LOG, starts_at=10), "Offsets", at={0: 4})


# -- what verify says of several generations ------------------------------------------------------------------------


def told(verdicts: list[PartitionResult]) -> list[tuple[int, str, int]]:
    """Generation, what is wrong, and from which offset on."""
    return [(each.generation, finding.type, finding.offset) for each in verdicts for finding in each.findings]


def test_an_offset_of_the_generation_before_is_not_held_against_the_new_one(written: Place) -> None:
    """The command was killed between its record and its commit, or a driver that slept through it commits late."""
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    FileGroup(LOG, written.folder / "group.json").alter_group_offsets(
        "group", {TopicPartition("log", 0): 25}, metadata=generation_metadata(1)
    )
    expect_right(written.verify(LOG))


def test_objects_that_a_generation_was_to_copy_again_and_did_not_are_missing(written: Place) -> None:
    written.s3.delete(written.keys())
    written.reset(LOG, "Earliest")
    written.run(replace(LOG, records=10), ALL, flush_size=10)
    written.reset(LOG, "Latest")
    assert told(written.verify(LOG)) == [(1, "ObjectMissing", 10), (1, "ObjectMissing", 20)]


def test_objects_that_a_new_directory_was_to_replace_are_missing_once_it_was_left(written: Place) -> None:
    written.reset(LOG, "Earliest", on_existing="NewPrefix")
    written.s3.delete([object_at(10)])
    expect_right(written.verify(LOG))
    written.reset(LOG, "Latest")
    assert told(written.verify(LOG)) == [(1, "ObjectMissing", 10)]


def test_what_two_later_generations_copied_again_between_them_need_not_be_there(written: Place) -> None:
    written.s3.delete(written.keys())
    written.reset(LOG, "Earliest")
    written.run(replace(LOG, records=15), ALL, flush_size=15)
    written.reset(LOG, "Offsets", at={0: 15})
    written.run(LOG, ALL, flush_size=10)
    assert offsets(written) == list(range(25))
    expect_right(written.verify(LOG))


def test_an_object_of_before_that_is_put_back_beside_its_copies_doubles_records(written: Place) -> None:
    before = written.bodies()
    written.s3.delete([object_at(10), object_at(20)])
    written.reset(LOG, "Offsets", at={0: 10})
    written.run(LOG, ALL, flush_size=15)
    expect_right(written.verify(LOG))
    written.put(object_at(20), before[object_at(20)])
    assert told(written.verify(LOG)) == [(1, "DuplicateOffsets", 20)]


def test_an_object_that_no_list_names_and_that_begins_between_two_generations_may_double_records(
    written: Place,
) -> None:
    longer = replace(LOG, records=40)
    written.reset(longer, "Offsets", at={0: 28})
    written.run(longer, ALL, flush_size=10)
    expect_right(written.verify(longer))
    written.put(object_at(25), b"{}\n")
    assert told(written.verify(longer)) == [(2, "UntrackedObject", 25)]
