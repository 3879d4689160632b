"""What an attack on the sink found: losses that meet a change of settings, of a log, of a topic or of the clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from devtools.processes import wait_until
from sink_job.api.errors import DataLoss, TopicNotFound
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import Committer
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.engine.kafka_admin import TopicInfo
from tests.support.running import running
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FileGroup, FunctionEngine, FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
SECOND = "topics/log/partition=0/log+0+0000000015.json"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundLoop, "truncation_check_ms", 1)


# -- settings change while something is lost -----------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [("None", "Gzip"), ("Gzip", "None")])
def test_leftovers_that_are_lost_before_a_change_of_settings_are_finished_under_the_old_ones(
    place: Place, before: str, after: str
) -> None:
    place.run(FunctionLog(records=15), DONE, flush_size=100, compression=before)
    place.delete_staging()
    place.run(FunctionLog(records=25), ALL, flush_size=100, compression=after)
    tail = {"None": "", "Gzip": ".gz"}
    assert {key: place.offsets(key) for key in place.bodies()} == {
        FIRST + tail[before]: list(range(15)),
        SECOND + tail[after]: list(range(15, 25)),
    }
    assert place.litter() == []


def test_an_upload_that_is_lost_before_a_change_of_settings_is_finished_under_the_old_ones(place: Place) -> None:
    place.run(FunctionLog(records=15, value_bytes=1_000_000), DONE, flush_size=100)
    for upload in list(place.s3.list_uploads("")):
        place.s3.abort(upload.key, upload.upload_id)
    place.run(FunctionLog(records=25, value_bytes=1_000_000), ALL, flush_size=100, compression="Gzip")
    assert place.offsets(FIRST) == list(range(15))
    assert place.offsets(f"{SECOND}.gz") == list(range(15, 25))
    assert place.litter() == []


def test_what_is_to_be_published_at_the_end_is_published_though_its_leftovers_are_lost(place: Place) -> None:
    place.run(FunctionLog(records=15), DONE, flush_size=100)
    place.delete_staging()
    place.run(FunctionLog(records=15), ALL, flush_size=100)
    assert place.offsets(FIRST) == list(range(15))


@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_the_upload_of_a_crashed_round_goes_also_when_the_settings_change(
    place: Place, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    log = FunctionLog(records=15, value_bytes=1_000_000)

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Committer, "record", crash)
        with pytest.raises(KeyboardInterrupt):
            place.run(log, DONE, flush_size=100)
    [left] = [upload.initiated_ms for upload in place.s3.list_uploads("") if "_s3sink" not in upload.key]
    wait_until(lambda: time.time() * 1000 > left + 1_000, "another second of the server's clock", seconds=5)
    place.run(log, ALL, flush_size=100, compression=compression)
    assert place.litter() == []


# -- a log that loses its tail -------------------------------------------------------------------------------------


def test_a_log_that_ends_before_what_was_read_of_it_stops_the_sink(place: Place) -> None:
    place.run(FunctionLog(records=15), ALL, flush_size=100)
    with pytest.raises(DataLoss, match="log-0: the log ends at 10, though it was read up to 14"):
        place.run(FunctionLog(records=10), ALL, flush_size=100)


def test_a_log_that_is_short_for_a_moment_is_read_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.run(FunctionLog(records=15), ALL, flush_size=100)
    ends = iter([10, 10, 12])
    monkeypatch.setattr(FunctionLog, "end", lambda log, _: next(ends, log.records))
    place.run(FunctionLog(records=20), StopCondition(until_caught_up=True, publish_open=True), flush_size=100)
    assert place.offsets(FIRST) == list(range(15))


def test_with_on_data_loss_continue_a_log_that_lost_its_tail_is_read_on_where_it_was_left(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    spec = {"onDataLoss": "Continue"}
    place.run(FunctionLog(records=15), ALL, flush_size=100, spec=spec)
    place.run(FunctionLog(records=10), ALL, flush_size=100, spec=spec)
    place.run(FunctionLog(records=20), ALL, flush_size=100, spec=spec)
    assert place.offsets(SECOND) == list(range(15, 20))
    assert [record.levelname for record in caplog.records if "has lost its tail" in record.message] == ["WARNING"]


# -- a topic of a pattern that goes in the middle of a round -------------------------------------------------------


class Two(FileGroup):
    """A Kafka of two topics, `log` and `other`."""

    there = frozenset({"log", "other"})

    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, 0) for topic in sorted(self.there)]

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        for tp in partitions:
            if tp.topic not in self.there:
                raise TopicNotFound(f"topic {tp.topic} does not exist")
        return super().end_offsets(partitions, committed=committed)

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        return {topic: TopicInfo(f"id-{topic}", 1) for topic in sorted(self.there)}


def test_a_topic_of_a_pattern_that_is_deleted_while_a_round_reads_it_is_published_as_far_as_it_was_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = FunctionEngine.run

    def run(self: FunctionEngine, **given: Any) -> Mapping[TopicPartition, bytes]:
        results = read(self, **given)
        monkeypatch.setattr(Two, "there", frozenset({"log"}))
        return results

    monkeypatch.setattr(FunctionEngine, "run", run)
    spec = {"kafka": {"bootstrapServers": "127.0.0.1:9", "topicsPattern": "log|other", "groupId": "group"}}
    driver = place.driver(FunctionLog(records=15), StopCondition(), flush_size=100, spec=spec)
    kafka = Two(FunctionLog(records=15), place.folder / "group.json")
    driver = Coordinator(driver.sink, replace(driver.context, admin=kafka), driver.stop_condition, driver.progress)
    published = "topics/other/partition=0/other+0+0000000000.json"
    with running(driver):
        wait_until(lambda: published in place.bodies(), "what was read of the topic that is gone", seconds=20)


# -- the clock -----------------------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_does_not_stop_the_reading(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    now, end = [time.time_ns() // 1_000_000 + 3_600_000], [15]
    monkeypatch.setattr(FunctionLog, "end", lambda *_: end[0])
    rounds = {"rounds": {"minBytes": "1Mi", "maxDelay": "100ms"}}
    driver = place.driver(FunctionLog(), StopCondition(), flush_size=20, spec=rounds, clock=lambda: now[0])
    with running(driver):
        wait_until(lambda: driver.progress.report().totals.records == 15, "the first records", seconds=20)
        now[0] -= 3_600_000
        end[0] = 20

        def closed() -> bool:
            now[0] += 50
            return FIRST in place.bodies()

        wait_until(closed, "the records after the step", seconds=20)
