"""Losses that coincide with a change of settings, a log, a topic or the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
from sink_job.formats.compression import Zstd, zstd
from tests.support.running import running_driver
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog
from tests.support.verify_sink import deep, findings

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
SECOND = "topics/log/partition=0/log+0+0000000015.json"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundLoop, "truncation_check_ms", 1)


# -- settings change after a loss ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [("None", "Gzip"), ("Gzip", "None")])
def test_objects_with_a_lost_remainder_are_finished_under_their_previous_settings(
    sink_fixture: SinkFixture, before: str, after: str
) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=100, compression=before)
    sink_fixture.delete_staging()
    sink_fixture.run(SyntheticLog(records=25), ALL, flush_size=100, compression=after)
    tail = {"None": "", "Gzip": ".gz"}
    assert {key: sink_fixture.offsets(key) for key in sink_fixture.contents()} == {
        FIRST + tail[before]: list(range(15)),
        SECOND + tail[after]: list(range(15, 25)),
    }
    assert sink_fixture.orphans() == []


def test_objects_with_a_lost_upload_are_finished_under_their_previous_settings(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15, value_bytes=1_000_000), DONE, flush_size=100)
    for upload in list(sink_fixture.s3.list_uploads("")):
        sink_fixture.s3.abort(upload.key, upload.upload_id)
    sink_fixture.run(SyntheticLog(records=25, value_bytes=1_000_000), ALL, flush_size=100, compression="Gzip")
    assert sink_fixture.offsets(FIRST) == list(range(15))
    assert sink_fixture.offsets(f"{SECOND}.gz") == list(range(15, 25))
    assert sink_fixture.orphans() == []


# -- another version of the library that compresses --------------------------------------------------------------------

RESTARTED: dict[str, Any] = {"flush_size": 100, "compression": "Zstd", "max_records": 5}


@pytest.fixture
def next_library(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Replaces the library by a version that writes other bytes."""

    def upgrade() -> None:
        monkeypatch.setattr(Zstd, "library", "zstd 99.0.0")
        monkeypatch.setattr(Zstd, "compress", lambda _, rows: zstd.compress(rows, level=1))

    return upgrade


def test_a_driver_with_the_same_library_continues_an_open_object(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **RESTARTED)
    sink_fixture.run(SyntheticLog(records=25), ALL, **RESTARTED)
    assert sink_fixture.offsets(f"{FIRST}.zst") == list(range(25))


def test_a_driver_with_another_library_first_finishes_open_objects(
    sink_fixture: SinkFixture, next_library: Callable[[], None]
) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, **RESTARTED)
    next_library()
    sink_fixture.run(SyntheticLog(records=25), ALL, **RESTARTED)
    assert sink_fixture.offsets(f"{FIRST}.zst") == list(range(15))
    assert sink_fixture.offsets(f"{SECOND}.zst") == list(range(15, 25))


def test_lost_objects_of_another_library_are_rebuilt_with_the_same_records(
    sink_fixture: SinkFixture, next_library: Callable[[], None]
) -> None:
    given: dict[str, Any] = {"flush_size": 100, "compression": "Zstd"}
    log = SyntheticLog(records=25, value_bytes=200_000)
    sink_fixture.run(replace(log, records=15), DONE, **given)
    sink_fixture.delete_staging()
    next_library()
    sink_fixture.run(log, ALL, **given)
    assert sink_fixture.offsets(f"{FIRST}.zst") == list(range(15))
    assert sink_fixture.offsets(f"{SECOND}.zst") == list(range(15, 25))
    assert findings(deep(sink_fixture, log, **given)) == []
    assert sink_fixture.orphans() == []


def test_publish_open_publishes_objects_with_a_lost_remainder(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=100)
    sink_fixture.delete_staging()
    sink_fixture.run(SyntheticLog(records=15), ALL, flush_size=100)
    assert sink_fixture.offsets(FIRST) == list(range(15))


@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_the_upload_of_a_crashed_round_is_aborted_after_a_settings_change(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    log = SyntheticLog(records=15, value_bytes=1_000_000)

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Committer, "record", crash)
        with pytest.raises(KeyboardInterrupt):
            sink_fixture.run(log, DONE, flush_size=100)
    [left] = [upload.initiated_ms for upload in sink_fixture.s3.list_uploads("") if "_s3sink" not in upload.key]
    wait_until(lambda: time.time() * 1000 > left + 1_000, "another second of the server's clock", seconds=5)
    sink_fixture.run(log, ALL, flush_size=100, compression=compression)
    assert sink_fixture.orphans() == []


# -- a truncated log -------------------------------------------------------------------------------------------------


def test_a_truncated_log_stops_the_sink(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=15), ALL, flush_size=100)
    with pytest.raises(DataLoss, match="log-0: the log was truncated: it ends at 10, but was read up to 14"):
        sink_fixture.run(SyntheticLog(records=10), ALL, flush_size=100)


def test_a_log_end_that_is_low_for_a_moment_does_not_stop_the_sink(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(SyntheticLog(records=15), ALL, flush_size=100)
    ends = iter([10, 10, 12])
    monkeypatch.setattr(SyntheticLog, "end", lambda log, _: next(ends, log.records))
    sink_fixture.run(SyntheticLog(records=20), StopCondition(until_caught_up=True, publish_open=True), flush_size=100)
    assert sink_fixture.offsets(FIRST) == list(range(15))


def test_with_on_data_loss_continue_a_truncated_log_is_read_from_the_last_position(
    sink_fixture: SinkFixture, caplog: pytest.LogCaptureFixture
) -> None:
    spec = {"onDataLoss": "Continue"}
    sink_fixture.run(SyntheticLog(records=15), ALL, flush_size=100, spec=spec)
    sink_fixture.run(SyntheticLog(records=10), ALL, flush_size=100, spec=spec)
    sink_fixture.run(SyntheticLog(records=20), ALL, flush_size=100, spec=spec)
    assert sink_fixture.offsets(SECOND) == list(range(15, 20))
    assert [record.levelname for record in caplog.records if "the log was truncated" in record.message] == ["WARNING"]


# -- a topic of a pattern that is deleted during a round -------------------------------------------------------------


class TwoTopics(FileConsumerGroup):
    """A Kafka with two topics, `log` and `other`."""

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


def test_records_read_before_the_deletion_of_a_pattern_topic_are_published(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = InlineEngine.run

    def run(self: InlineEngine, **given: Any) -> Mapping[TopicPartition, bytes]:
        results = read(self, **given)
        monkeypatch.setattr(TwoTopics, "there", frozenset({"log"}))
        return results

    monkeypatch.setattr(InlineEngine, "run", run)
    spec = {"kafka": {"bootstrapServers": "127.0.0.1:9", "topicsPattern": "log|other", "groupId": "group"}}
    driver = sink_fixture.driver(SyntheticLog(records=15), StopCondition(), flush_size=100, spec=spec)
    kafka = TwoTopics(SyntheticLog(records=15), sink_fixture.folder / "group.json")
    driver = Coordinator(driver.sink, replace(driver.context, admin=kafka), driver.stop_condition, driver.progress)
    published = "topics/other/partition=0/other+0+0000000000.json"
    with running_driver(driver):
        wait_until(lambda: published in sink_fixture.contents(), "what was read of the topic that is gone", seconds=20)


# -- the clock -------------------------------------------------------------------------------------------------------


def test_reading_continues_after_a_clock_is_set_back(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, end = [time.time_ns() // 1_000_000 + 3_600_000], [15]
    monkeypatch.setattr(SyntheticLog, "end", lambda *_: end[0])
    rounds = {"rounds": {"minBytes": "1Mi", "maxDelay": "100ms"}}
    driver = sink_fixture.driver(SyntheticLog(), StopCondition(), flush_size=20, spec=rounds, clock=lambda: now[0])
    with running_driver(driver):
        wait_until(lambda: driver.progress.report().totals.records == 15, "the first records", seconds=20)
        now[0] -= 3_600_000
        end[0] = 20

        def closed() -> bool:
            now[0] += 50
            return FIRST in sink_fixture.contents()

        wait_until(closed, "the records after the step", seconds=20)
