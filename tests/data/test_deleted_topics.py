"""A topic is removed from the manifest and deleted in Kafka while it has an unpublished object with lost bytes.

The object cannot be rebuilt; the other topics are not affected.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from sink_job.api.errors import DataLoss
from sink_job.api.parser import load_sink
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import PartitionResult
from tests.support.crash_points import crash_before_publishing
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.spark_fixture import PUBLISH_ALL, UNTIL_CAUGHT_UP, SparkFixture
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL_AND_CLOSE = StopCondition(until_caught_up=True, publish_open=True)
BOTH = SyntheticLog(records=15, other_topics={"gone": "gone-id"})
ONE = SyntheticLog(records=25)
KEY = "topics/gone/partition=0/gone+0+0000000000.json"
OTHER_KEYS = [f"topics/log/partition=0/log+0+{first:010d}.json" for first in (0, 10)]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundLoop, "truncation_check_ms", 1)


def reading(*topics: str, on_data_loss: str = "Fail", **given: Any) -> dict[str, Any]:
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": list(topics), "groupId": "group"}
    return {"flush_size": 10, "spec": {"kafka": kafka, "onDataLoss": on_data_loss}, **given}


def lose_unpublished(sink_fixture: SinkFixture) -> None:
    sink_fixture.delete_staging()
    for upload in list(sink_fixture.s3.list_uploads("")):
        sink_fixture.s3.abort(upload.key, upload.upload_id)


def results(sink_fixture: SinkFixture, log: SyntheticLog) -> dict[str, PartitionResult]:
    sink = load_sink(manifest(sink_fixture.bucket, sink_fixture.endpoint, **reading("log")))
    found = collect_evidence(
        sink, sink_fixture.s3, FileConsumerGroup(log, sink_fixture.folder / "group.json")
    ).results()
    return {str(result.topic_partition): result for result in found}


@pytest.mark.parametrize("flush_size", [10, 100], ids=["partly closed", "all open"])
def test_with_continue_its_open_objects_are_discarded_and_other_topics_continue(
    sink_fixture: SinkFixture, caplog: pytest.LogCaptureFixture, flush_size: int
) -> None:
    sink_fixture.run(BOTH, DONE, **reading("log", "gone", flush_size=flush_size))
    visible = sink_fixture.contents()
    lose_unpublished(sink_fixture)
    driver = sink_fixture.driver(ONE, ALL_AND_CLOSE, **reading("log", on_data_loss="Continue", flush_size=flush_size))
    driver.run()
    lost = 15 - 10 * (flush_size == 10)
    assert driver.progress.lost_offsets == lost
    assert sorted(
        offset for key in sink_fixture.contents() if "/log/" in key for offset in sink_fixture.offsets(key)
    ) == list(range(25))
    assert {
        key: sink_fixture.contents()[key] for key in sink_fixture.contents() if "/gone/" in key or key in visible
    } == visible
    first = 15 - lost
    (report,) = [r.message for r in caplog.records if r.levelno == logging.WARNING and "no longer holds" in r.message]
    assert all(word in report for word in ("gone-0", f"gone+0+{first:010d}.json", f"offsets {first} to 14"))
    found = results(sink_fixture, ONE)
    assert [(v.findings, v.lost) for v in found.values()] == [((), lost), ((), 0)]
    assert sink_fixture.orphans_after(ALL_AND_CLOSE, ONE, reading("log")) == []


def test_a_loss_is_reported_once(sink_fixture: SinkFixture, caplog: pytest.LogCaptureFixture) -> None:
    sink_fixture.run(BOTH, DONE, **reading("log", "gone"))
    lose_unpublished(sink_fixture)
    sink_fixture.run(ONE, DONE, **reading("log", on_data_loss="Continue"))
    caplog.clear()
    driver = sink_fixture.driver(ONE, DONE, **reading("log"))
    driver.run()
    assert driver.progress.lost_offsets == 0
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING and "lost" in r.message] == []


def test_with_fail_the_error_names_the_loss_and_the_action(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(sink_fixture)
    with pytest.raises(DataLoss) as caught:
        sink_fixture.run(ONE, DONE, **reading("log"))
    message = str(caught.value)
    assert "topic gone was deleted in Kafka" in message
    assert all(word in message for word in ("gone-0", KEY, "offsets 0 to 14", "onDataLoss: Continue"))


def test_other_topics_also_continue_after_discard_open(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(sink_fixture)
    sink_fixture.discard(**reading("log", flush_size=100))
    sink_fixture.run(ONE, DONE, **reading("log"))
    assert list(sink_fixture.contents()) == OTHER_KEYS


@pytest.mark.parametrize("on_data_loss", ["Fail", "Continue"])
def test_a_closed_object_of_a_deleted_topic_is_lost_like_an_open_one(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, on_data_loss: str
) -> None:
    crash_before_publishing(sink_fixture, monkeypatch, BOTH, **reading("log", "gone"))
    lose_unpublished(sink_fixture)
    given = reading("log", on_data_loss=on_data_loss)
    if on_data_loss == "Fail":
        with pytest.raises(DataLoss, match="deleted in Kafka") as caught:
            sink_fixture.run(ONE, DONE, **given)
        assert all(word in str(caught.value) for word in ("gone-0", KEY, "offsets 0 to 9", "onDataLoss: Continue"))
    else:
        driver = sink_fixture.driver(ONE, DONE, **given)
        driver.run()
        assert list(sink_fixture.contents()) == OTHER_KEYS
        assert driver.progress.lost_offsets == 15
        assert [v.findings for v in results(sink_fixture, ONE).values()] == [(), ()]


def test_nothing_is_rebuilt_from_a_recreated_topic_of_the_same_name(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(sink_fixture)
    again = replace(ONE, other_topics={"gone": "another-id"})
    with pytest.raises(DataLoss, match="topic gone was deleted and re-created"):
        sink_fixture.run(again, DONE, **reading("log"))
    sink_fixture.run(again, DONE, **reading("log", on_data_loss="Continue"))
    assert [key for key in sink_fixture.contents() if "/gone/" in key] == []


def test_a_topic_removed_from_the_manifest_is_read_once_more(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(sink_fixture)
    sink_fixture.run(replace(BOTH, records=25), DONE, **reading("log", on_data_loss="Continue"))
    assert sink_fixture.offsets(KEY) == list(range(15))


def test_a_topic_that_is_unknown_for_a_moment_is_not_discarded(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(sink_fixture)
    known, unknown = FileConsumerGroup.topics, iter(range(4))

    def late(self: FileConsumerGroup, names: Any = None, **more: Any) -> Any:
        if "gone" in (names or ()) and next(unknown, None) is not None:
            return known(FileConsumerGroup(ONE, self.path), names, **more)
        return known(self, names, **more)

    monkeypatch.setattr(FileConsumerGroup, "topics", late)
    sink_fixture.run(replace(BOTH, records=25), DONE, **reading("log", on_data_loss="Continue"))
    assert sink_fixture.offsets(KEY) == list(range(15))


@pytest.mark.spark
def test_on_a_real_broker_the_other_topic_continues(spark_fixture: SparkFixture, topic: str) -> None:
    kept, gone = f"{topic}-a", f"{topic}-b"
    for name in (kept, gone):
        spark_fixture.topics.create(name)
        spark_fixture.topics.produce_values(name, [b"1"] * 15)
    spark_fixture.run(spark_fixture.sink([kept, gone]), UNTIL_CAUGHT_UP)
    for listed in spark_fixture.s3.client().list_objects_v2(Bucket=spark_fixture.bucket)["Contents"]:
        if "/staging/" in listed["Key"]:
            spark_fixture.s3.client().delete_object(Bucket=spark_fixture.bucket, Key=listed["Key"])
    spark_fixture.topics.delete(gone)
    with pytest.raises(DataLoss, match="onDataLoss: Continue"):
        spark_fixture.run(spark_fixture.sink([kept]), UNTIL_CAUGHT_UP)
    report = spark_fixture.run(spark_fixture.sink([kept], onDataLoss="Continue"), PUBLISH_ALL)
    assert report.totals.lost == 5
    assert sum(len(lines) for key, lines in spark_fixture.values().items() if kept in key) == 15
    assert sum(len(lines) for key, lines in spark_fixture.values().items() if gone in key) == 10
