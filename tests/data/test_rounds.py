"""The rounds over a log that is a function, on a real S3 server: what they write, and what they survive."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devtools.s3 import S3Server
from sink_job.api.errors import DataError, DataLoss, ObjectConflict
from sink_job.coordinator.context import StopCondition
from sink_job.ledger import publisher as publishing
from sink_job.ledger.publisher import PublishOutcome
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
PUBLISH = StopCondition(publish_open=True)


def test_records_become_one_object_per_flush_and_the_rest_stays_open(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    assert place.keys() == [
        "topics/log/partition=0/log+0+0000000000.json",
        "topics/log/partition=0/log+0+0000000010.json",
    ]
    assert place.group() == {"log-0": 20}


def test_what_was_left_open_goes_on_where_it_was(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.run(FunctionLog(records=32), DONE, flush_size=10)
    assert place.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 30))
    assert place.group() == {"log-0": 30}


def test_publish_open_closes_what_is_open_at_the_end(place: Place) -> None:
    place.run(FunctionLog(records=25), ALL, flush_size=10)
    assert place.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 25))
    assert place.group() == {"log-0": 25}


def test_publish_open_alone_publishes_what_is_open_and_reads_no_further(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.run(FunctionLog(records=100), PUBLISH, flush_size=10)
    assert place.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 25))
    assert len(place.keys()) == 3
    assert place.group() == {"log-0": 25}


def test_publish_open_alone_of_a_sink_that_never_ran_writes_nothing(place: Place) -> None:
    place.run(FunctionLog(records=25), PUBLISH, flush_size=10)
    assert (place.keys(), place.litter(), place.group()) == ([], [], {})


def test_publish_open_alone_twice_is_as_once(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.run(FunctionLog(records=100), PUBLISH, flush_size=10)
    before = place.bodies()
    place.run(FunctionLog(records=100), PUBLISH, flush_size=10)
    assert place.bodies() == before


def test_a_sink_without_a_ledger_starts_at_the_offsets_of_its_group(place: Place) -> None:
    place.set_group({"log-0": 180})
    place.run(FunctionLog(records=275), DONE, flush_size=90)
    assert place.keys() == ["topics/log/partition=0/log+0+0000000180.json"]
    assert place.group() == {"log-0": 270}


def test_intents_stay_for_a_day_whatever_the_hosts_clock_says(place: Place) -> None:
    """The tests' clock is years behind the store's. An intent leads to uploads that a clean-up had to leave alone."""
    for records in (5, 15, 25):
        place.run(FunctionLog(records=records), DONE, flush_size=10)
    assert len([each.key for each in place.s3.list("") if "/intent/" in each.key]) == 3


def test_nothing_is_left_behind_when_all_is_published(place: Place) -> None:
    place.run(FunctionLog(records=25), ALL, flush_size=10)
    assert place.litter() == []


PARTS = {"flush_size": 10, "part_size": "5Mi"}
LARGE = FunctionLog(records=25, value_bytes=1_000_000)


def test_an_object_of_several_parts_is_written_part_by_part_over_the_rounds(place: Place) -> None:
    place.run(LARGE, ALL, max_records=3, **PARTS)
    assert place.offsets("topics/log/partition=0/log+0+0000000000.json") == list(range(10))
    assert place.litter() == []


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from([7, 20, 60, 200]), min_size=1, max_size=4),
    st.sampled_from([{}, {"compression": "Gzip"}, {"paths": True}, {"paths": True, "scope": "Object"}]),
)
def test_objects_do_not_depend_on_the_size_of_rounds_or_on_restarts(
    s3: S3Server, tmp_path_factory: pytest.TempPathFactory, rounds: list[int], given: dict[str, object]
) -> None:
    log = FunctionLog(records=130, paths=4, holes=frozenset({3, 44, 45, 46}))
    once = Place.new(s3.endpoint, tmp_path_factory.mktemp("once"))
    once.run(log, ALL, flush_size=37, **given)
    often = Place.new(s3.endpoint, tmp_path_factory.mktemp("often"))
    ends = [len(rounds) and log.records * (n + 1) // len(rounds) for n in range(len(rounds))]
    for end, max_records in zip(ends, rounds, strict=True):
        goal = ALL if end == log.records else DONE
        often.run(replace(log, records=end), goal, flush_size=37, max_records=max_records, **given)
    assert often.bodies() == once.bodies()


def test_a_bad_record_stops_the_sink_before_it_and_publishes_what_is_closed(place: Place) -> None:
    log = BadLog(records=30)
    with pytest.raises(DataError, match="log-0 offset 17") as error:
        place.run(log, DONE, flush_size=5)
    assert error.value.offset == 17
    assert place.group() == {"log-0": 15}


def test_a_tolerated_bad_record_is_dropped_and_does_not_count(place: Place) -> None:
    place.run(BadLog(records=30), ALL, flush_size=10, errors={"tolerance": "All"})
    assert place.offsets("topics/log/partition=0/log+0+0000000010.json") == [10, 11, 12, 13, 14, 15, 16, 18, 19, 20]


class BadLog(FunctionLog):
    """A log whose record 17 is no JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return b"{" if offset == 17 else super().value(partition, offset)


FIRST = "topics/log/partition=0/log+0+0000000000.json"


class BreakError(Exception):
    """Stands for the end of the process at this point."""


complete = publishing.publish


def never_completed(key: str) -> Callable[..., PublishOutcome]:
    """`publish`, but the process ends before `key` is completed; its neighbours are."""

    def publish(s3: S3Client, o: ClosedObject, was_tried: bool) -> PublishOutcome:
        if o.key == key:
            raise BreakError
        return complete(s3, o, was_tried)

    return publish


@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_an_object_whose_upload_was_aborted_by_hand_is_rebuilt_alone_with_the_same_bytes(
    place: Place, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    key = FIRST + (".gz" if compression == "Gzip" else "")
    untouched = place.sibling()
    untouched.run(FunctionLog(records=40), DONE, flush_size=10, compression=compression)
    with monkeypatch.context() as patched:
        patched.setattr("sink_job.ledger.publisher.publish", never_completed(key))
        with pytest.raises(BreakError):
            place.run(FunctionLog(records=40), DONE, flush_size=10, compression=compression)
    assert place.keys() == untouched.keys()[1:]
    place.abort_uploads_of(key)
    before = place.etags()
    place.run(FunctionLog(records=40), DONE, flush_size=10, compression=compression)
    assert place.bodies() == untouched.bodies()
    assert {k: etag for k, etag in place.etags().items() if k != key} == before
    assert place.litter() == []


@pytest.mark.parametrize("scope", ["Partition", "Object"])
def test_open_objects_whose_leftovers_are_gone_are_rebuilt(place: Place, scope: str) -> None:
    given: dict[str, Any] = {"flush_size": 30, "paths": True, "scope": scope}
    untouched = place.sibling()
    untouched.run(FunctionLog(records=70, paths=3), ALL, **given)
    place.run(FunctionLog(records=40, paths=3), DONE, **given)
    place.delete_staging()
    place.run(FunctionLog(records=70, paths=3), ALL, **given)
    assert place.bodies() == untouched.bodies()


def staging_of(place: Place) -> list[str]:
    return [key for key in place.litter() if "/staging/" in key]


def test_the_partitions_of_a_task_share_a_staging_object(place: Place) -> None:
    driver = place.driver(FunctionLog(partitions=3, records=5), DONE, flush_size=10)
    driver.run()
    assert len(staging_of(place)) == 1
    assert driver.progress.requests == {"PutObject": 1}


def test_a_staging_object_is_kept_while_any_partition_names_it(place: Place) -> None:
    place.run(FunctionLog(partitions=3, records=5), DONE, flush_size=10)
    shared = staging_of(place)
    place.run(Ahead(partitions=3, records=12), DONE, flush_size=10)
    assert set(shared) < set(staging_of(place))
    place.run(FunctionLog(partitions=3, records=12), DONE, flush_size=10)
    assert not set(shared) & set(staging_of(place))
    assert [len(body.splitlines()) for body in place.bodies().values()] == [10, 10, 10]


class Ahead(FunctionLog):
    """A log of which the others' later records are not there yet, only those of partition 0."""

    def end(self, partition: int) -> int:
        return self.records if partition == 0 else 5


def test_of_a_shared_staging_object_that_is_damaged_each_partition_loses_only_its_own(place: Place) -> None:
    untouched = place.sibling()
    untouched.run(FunctionLog(partitions=3, records=12), ALL, flush_size=10)
    place.run(FunctionLog(partitions=3, records=5), DONE, flush_size=10)
    (shared,) = staging_of(place)
    body = place.body(shared)
    at = body.index(b'"partition": 1')
    place.put(shared, body[:at] + body[at:].replace(b'"offset": 3', b'"offset": 4', 1))
    rebuilt = place.driver(FunctionLog(partitions=3, records=12), ALL, flush_size=10)
    rebuilt.run()
    assert rebuilt.progress.report().totals.rebuilt == 1
    assert place.bodies() == untouched.bodies()


def test_all_partitions_of_a_staging_object_that_is_gone_are_rebuilt(place: Place) -> None:
    untouched = place.sibling()
    untouched.run(FunctionLog(partitions=3, records=12), ALL, flush_size=10)
    place.run(FunctionLog(partitions=3, records=5), DONE, flush_size=10)
    place.delete_staging()
    rebuilt = place.driver(FunctionLog(partitions=3, records=12), ALL, flush_size=10)
    rebuilt.run()
    assert rebuilt.progress.report().totals.rebuilt == 3
    assert place.bodies() == untouched.bodies()
    assert place.litter() == []


def test_the_chains_of_many_partitions_are_gathered_with_a_read_for_each_staging_object(place: Place) -> None:
    log = FunctionLog(partitions=20, records=18)
    given = {"flush_size": 100, "max_records": 1}
    driver = place.driver(log, DONE, **given)
    driver.run()
    assert driver.progress.requests["GetObject"] == 17
    assert len(staging_of(place)) == 1
    place.run(log, ALL, **given)
    assert place.offsets(FIRST) == list(range(18))


def test_open_objects_whose_uploads_are_gone_are_rebuilt(place: Place) -> None:
    untouched = place.sibling()
    untouched.run(LARGE, ALL, **PARTS)
    place.run(replace(LARGE, records=8), DONE, **PARTS)
    place.abort_uploads_of(FIRST)
    place.run(LARGE, ALL, **PARTS)
    assert place.bodies() == untouched.bodies()
    assert place.litter() == []


def test_what_is_lost_and_no_longer_in_kafka_is_told_as_data_loss(place: Place) -> None:
    place.run(FunctionLog(records=8), DONE, flush_size=10)
    place.delete_staging()
    with pytest.raises(DataLoss, match="log-0"):
        place.run(FunctionLog(records=20, starts_at=5), DONE, flush_size=10)


def test_other_content_at_a_key_of_ours_stops_the_sink_and_is_not_overwritten(place: Place) -> None:
    key = "topics/log/partition=0/log+0+0000000000.json"
    place.set_group({"log-0": 0})
    place.run(FunctionLog(records=5), DONE, flush_size=10)
    place.put(key, b"somebody else's")
    with pytest.raises(ObjectConflict, match=re.escape(key)):
        place.run(FunctionLog(records=15), DONE, flush_size=10)
    assert place.body(key) == b"somebody else's"


def test_offsets_that_kafka_has_dropped_stop_the_sink(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    with pytest.raises(DataLoss, match="log-0: 25 to 39"):
        place.run(FunctionLog(records=60, starts_at=40), DONE, flush_size=10)


def test_with_continue_a_sink_goes_on_behind_what_kafka_has_dropped(place: Place) -> None:
    place.run(FunctionLog(records=20), DONE, flush_size=10)
    place.run(FunctionLog(records=60, starts_at=40), ALL, flush_size=10, spec={"onDataLoss": "Continue"})
    assert place.group() == {"log-0": 60}
    assert place.offsets("topics/log/partition=0/log+0+0000000040.json") == list(range(40, 50))


def test_changed_settings_first_finish_what_the_old_ones_began(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.run(FunctionLog(records=40), DONE, flush_size=15)
    assert place.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 25))
    assert place.offsets("topics/log/partition=0/log+0+0000000025.json") == list(range(25, 40))


def test_every_round_asks_what_memory_there_is_by_now(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A container may be given more while a driver runs: its next round's tasks use it."""
    log, asked = FunctionLog(records=60), list[int]()

    def grown() -> tuple[int, int] | None:
        asked.append(1)
        return (1 << 20, 4) if len(asked) > 1 else None

    place = Place.new(s3.endpoint, tmp_path_factory.mktemp("grown"))
    place.run(log, ALL, flush_size=10, max_records=20, world={"grown": grown})
    assert len(asked) >= 3
    assert sum(len(body.splitlines()) for body in place.bodies().values()) == 60
