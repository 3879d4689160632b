"""Rounds over a synthetic log with a real S3 server: their objects, and their behaviour after faults."""

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
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
PUBLISH = StopCondition(publish_open=True)


def test_records_become_one_object_per_flush_and_the_rest_stays_open(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    assert sink_fixture.keys() == [
        "topics/log/partition=0/log+0+0000000000.json",
        "topics/log/partition=0/log+0+0000000010.json",
    ]
    assert sink_fixture.group() == {"log-0": 20}


def test_the_next_run_continues_an_open_object(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.run(SyntheticLog(records=32), DONE, flush_size=10)
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 30))
    assert sink_fixture.group() == {"log-0": 30}


def test_publish_open_closes_open_objects_at_the_end(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), ALL, flush_size=10)
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 25))
    assert sink_fixture.group() == {"log-0": 25}


def test_publish_open_alone_publishes_open_objects_and_reads_nothing(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.run(SyntheticLog(records=100), PUBLISH, flush_size=10)
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 25))
    assert len(sink_fixture.keys()) == 3
    assert sink_fixture.group() == {"log-0": 25}


def test_publish_open_alone_of_a_sink_that_never_ran_writes_nothing(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), PUBLISH, flush_size=10)
    assert (sink_fixture.keys(), sink_fixture.orphans(), sink_fixture.group()) == ([], [], {})


def test_a_repeated_publish_open_changes_nothing(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.run(SyntheticLog(records=100), PUBLISH, flush_size=10)
    before = sink_fixture.contents()
    sink_fixture.run(SyntheticLog(records=100), PUBLISH, flush_size=10)
    assert sink_fixture.contents() == before


def test_a_sink_without_a_ledger_starts_at_the_offsets_of_its_group(sink_fixture: SinkFixture) -> None:
    sink_fixture.set_group({"log-0": 180})
    sink_fixture.run(SyntheticLog(records=275), DONE, flush_size=90)
    assert sink_fixture.keys() == ["topics/log/partition=0/log+0+0000000180.json"]
    assert sink_fixture.group() == {"log-0": 270}


def test_intents_stay_for_a_day_whatever_the_hosts_clock_says(sink_fixture: SinkFixture) -> None:
    """The tests' clock is years behind the store's. An intent covers uploads that a clean-up could not remove."""
    for records in (5, 15, 25):
        sink_fixture.run(SyntheticLog(records=records), DONE, flush_size=10)
    assert len([each.key for each in sink_fixture.s3.list("") if "/intent/" in each.key]) == 3


def test_no_orphans_remain_after_everything_is_published(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), ALL, flush_size=10)
    assert sink_fixture.orphans() == []


PARTS = {"flush_size": 10, "part_size": "5Mi"}
LARGE = SyntheticLog(records=25, value_bytes=1_000_000)


def test_an_object_of_several_parts_is_written_part_by_part_over_the_rounds(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LARGE, ALL, max_records=3, **PARTS)
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000000.json") == list(range(10))
    assert sink_fixture.orphans() == []


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from([7, 20, 60, 200]), min_size=1, max_size=4),
    st.sampled_from(
        [{}, {"compression": "Gzip"}, {"compression": "Zstd"}, {"paths": True}, {"paths": True, "scope": "Object"}]
    ),
)
def test_objects_do_not_depend_on_the_size_of_rounds_or_on_restarts(
    s3: S3Server, tmp_path_factory: pytest.TempPathFactory, rounds: list[int], given: dict[str, object]
) -> None:
    log = SyntheticLog(records=130, paths=4, gaps=frozenset({3, 44, 45, 46}))
    once = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("once"))
    once.run(log, ALL, flush_size=37, **given)
    often = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("often"))
    ends = [len(rounds) and log.records * (n + 1) // len(rounds) for n in range(len(rounds))]
    for end, max_records in zip(ends, rounds, strict=True):
        goal = ALL if end == log.records else DONE
        often.run(replace(log, records=end), goal, flush_size=37, max_records=max_records, **given)
    assert often.contents() == once.contents()


def test_a_rejected_record_stops_the_sink_and_closed_objects_are_published(sink_fixture: SinkFixture) -> None:
    log = BadLog(records=30)
    with pytest.raises(DataError, match="log-0 offset 17") as error:
        sink_fixture.run(log, DONE, flush_size=5)
    assert error.value.offset == 17
    assert sink_fixture.group() == {"log-0": 15}


def test_a_tolerated_rejected_record_is_skipped_and_does_not_count(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(BadLog(records=30), ALL, flush_size=10, errors={"tolerance": "All"})
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000010.json") == [
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        18,
        19,
        20,
    ]


class BadLog(SyntheticLog):
    """A log whose record 17 is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return b"{" if offset == 17 else super().value(partition, offset)


FIRST = "topics/log/partition=0/log+0+0000000000.json"


class SimulatedCrash(Exception):
    """Represents a crash of the process at this point."""


complete = publishing.publish


def never_completed(key: str) -> Callable[..., PublishOutcome]:
    """`publish` that ends the process instead of completing `key`."""

    def publish(s3: S3Client, o: ClosedObject, was_tried: bool) -> PublishOutcome:
        if o.key == key:
            raise SimulatedCrash
        return complete(s3, o, was_tried)

    return publish


@pytest.mark.parametrize("compression", ["None", "Gzip", "Zstd"])
def test_only_the_object_with_an_aborted_upload_is_rebuilt_with_the_same_bytes(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    key = FIRST + {"None": "", "Gzip": ".gz", "Zstd": ".zst"}[compression]
    untouched = sink_fixture.sibling()
    untouched.run(SyntheticLog(records=40), DONE, flush_size=10, compression=compression)
    with monkeypatch.context() as patched:
        patched.setattr("sink_job.ledger.publisher.publish", never_completed(key))
        with pytest.raises(SimulatedCrash):
            sink_fixture.run(SyntheticLog(records=40), DONE, flush_size=10, compression=compression)
    assert sink_fixture.keys() == untouched.keys()[1:]
    sink_fixture.abort_uploads_of(key)
    before = sink_fixture.etags()
    sink_fixture.run(SyntheticLog(records=40), DONE, flush_size=10, compression=compression)
    assert sink_fixture.contents() == untouched.contents()
    assert {k: etag for k, etag in sink_fixture.etags().items() if k != key} == before
    assert sink_fixture.orphans() == []


@pytest.mark.parametrize("scope", ["Partition", "Object"])
def test_open_objects_with_a_lost_remainder_are_rebuilt(sink_fixture: SinkFixture, scope: str) -> None:
    given: dict[str, Any] = {"flush_size": 30, "paths": True, "scope": scope}
    untouched = sink_fixture.sibling()
    untouched.run(SyntheticLog(records=70, paths=3), ALL, **given)
    sink_fixture.run(SyntheticLog(records=40, paths=3), DONE, **given)
    sink_fixture.delete_staging()
    sink_fixture.run(SyntheticLog(records=70, paths=3), ALL, **given)
    assert sink_fixture.contents() == untouched.contents()


def staging_of(sink_fixture: SinkFixture) -> list[str]:
    return [key for key in sink_fixture.orphans() if "/staging/" in key]


def test_the_partitions_of_a_task_share_a_staging_object(sink_fixture: SinkFixture) -> None:
    driver = sink_fixture.driver(SyntheticLog(partitions=3, records=5), DONE, flush_size=10)
    driver.run()
    assert len(staging_of(sink_fixture)) == 1
    assert driver.progress.requests == {"PutObject": 1}


def test_a_staging_object_is_kept_while_any_partition_refers_to_it(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(partitions=3, records=5), DONE, flush_size=10)
    shared = staging_of(sink_fixture)
    sink_fixture.run(Ahead(partitions=3, records=12), DONE, flush_size=10)
    assert set(shared) < set(staging_of(sink_fixture))
    sink_fixture.run(SyntheticLog(partitions=3, records=12), DONE, flush_size=10)
    assert not set(shared) & set(staging_of(sink_fixture))
    assert [len(body.splitlines()) for body in sink_fixture.contents().values()] == [10, 10, 10]


class Ahead(SyntheticLog):
    """A log whose later records exist in partition 0 only."""

    def end(self, partition: int) -> int:
        return self.records if partition == 0 else 5


def test_a_damaged_shared_staging_object_affects_only_the_damaged_partition(sink_fixture: SinkFixture) -> None:
    untouched = sink_fixture.sibling()
    untouched.run(SyntheticLog(partitions=3, records=12), ALL, flush_size=10)
    sink_fixture.run(SyntheticLog(partitions=3, records=5), DONE, flush_size=10)
    (shared,) = staging_of(sink_fixture)
    body = sink_fixture.content(shared)
    at = body.index(b'"partition": 1')
    sink_fixture.put(shared, body[:at] + body[at:].replace(b'"offset": 3', b'"offset": 4', 1))
    rebuilt = sink_fixture.driver(SyntheticLog(partitions=3, records=12), ALL, flush_size=10)
    rebuilt.run()
    assert rebuilt.progress.report().totals.rebuilt == 1
    assert sink_fixture.contents() == untouched.contents()


def test_all_partitions_of_a_lost_staging_object_are_rebuilt(sink_fixture: SinkFixture) -> None:
    untouched = sink_fixture.sibling()
    untouched.run(SyntheticLog(partitions=3, records=12), ALL, flush_size=10)
    sink_fixture.run(SyntheticLog(partitions=3, records=5), DONE, flush_size=10)
    sink_fixture.delete_staging()
    rebuilt = sink_fixture.driver(SyntheticLog(partitions=3, records=12), ALL, flush_size=10)
    rebuilt.run()
    assert rebuilt.progress.report().totals.rebuilt == 3
    assert sink_fixture.contents() == untouched.contents()
    assert sink_fixture.orphans() == []


def test_chains_of_many_partitions_are_merged_with_one_read_per_staging_object(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(partitions=20, records=18)
    given = {"flush_size": 100, "max_records": 1}
    driver = sink_fixture.driver(log, DONE, **given)
    driver.run()
    assert driver.progress.requests["GetObject"] == 17
    assert len(staging_of(sink_fixture)) == 1
    sink_fixture.run(log, ALL, **given)
    assert sink_fixture.offsets(FIRST) == list(range(18))


def test_open_objects_with_a_lost_upload_are_rebuilt(sink_fixture: SinkFixture) -> None:
    untouched = sink_fixture.sibling()
    untouched.run(LARGE, ALL, **PARTS)
    sink_fixture.run(replace(LARGE, records=8), DONE, **PARTS)
    sink_fixture.abort_uploads_of(FIRST)
    sink_fixture.run(LARGE, ALL, **PARTS)
    assert sink_fixture.contents() == untouched.contents()
    assert sink_fixture.orphans() == []


def test_lost_bytes_that_kafka_no_longer_holds_are_reported_as_data_loss(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=8), DONE, flush_size=10)
    sink_fixture.delete_staging()
    with pytest.raises(DataLoss, match="log-0"):
        sink_fixture.run(SyntheticLog(records=20, starts_at=5), DONE, flush_size=10)


def test_foreign_content_at_a_key_of_the_sink_stops_it_and_is_not_overwritten(sink_fixture: SinkFixture) -> None:
    key = "topics/log/partition=0/log+0+0000000000.json"
    sink_fixture.set_group({"log-0": 0})
    sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10)
    sink_fixture.put(key, b"foreign")
    with pytest.raises(ObjectConflict, match=re.escape(key)):
        sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=10)
    assert sink_fixture.content(key) == b"foreign"


def test_offsets_that_kafka_has_dropped_stop_the_sink(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    with pytest.raises(DataLoss, match="log-0: 25 to 39"):
        sink_fixture.run(SyntheticLog(records=60, starts_at=40), DONE, flush_size=10)


def test_with_continue_a_sink_resumes_after_dropped_offsets(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=20), DONE, flush_size=10)
    sink_fixture.run(SyntheticLog(records=60, starts_at=40), ALL, flush_size=10, spec={"onDataLoss": "Continue"})
    assert sink_fixture.group() == {"log-0": 60}
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000040.json") == list(range(40, 50))


def test_a_driver_with_changed_settings_first_finishes_open_objects(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.run(SyntheticLog(records=40), DONE, flush_size=15)
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 25))
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000025.json") == list(range(25, 40))


def test_every_round_uses_the_current_memory(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A container's memory can grow while a driver runs; the tasks of the next round use it."""
    log, asked = SyntheticLog(records=60), list[int]()

    def grown() -> tuple[int, int] | None:
        asked.append(1)
        return (1 << 20, 4) if len(asked) > 1 else None

    sink_fixture = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("grown"))
    sink_fixture.run(log, ALL, flush_size=10, max_records=20, context={"current_task_memory": grown})
    assert len(asked) >= 3
    assert sum(len(body.splitlines()) for body in sink_fixture.contents().values()) == 60
