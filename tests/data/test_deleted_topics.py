"""A topic that was removed from the manifest and deleted in Kafka, while an object of it is not published yet and its
upload or staged remainder is lost: the object cannot be rebuilt, and the other topics are not to blame."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from sink_job.api.errors import DataLoss
from sink_job.api.spec import load_sink
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import PartitionResult
from tests.support.crash_points import end_before_publishing
from tests.support.sink_fixture import Place, manifest
from tests.support.spark_fixture import ALL, SOON, Site
from tests.support.synthetic_log import FileGroup, FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL_AND_CLOSE = StopCondition(until_caught_up=True, publish_open=True)
BOTH = FunctionLog(records=15, beside={"gone": "gone-id"})
ONE = FunctionLog(records=25)
KEY = "topics/gone/partition=0/gone+0+0000000000.json"
OTHER_KEYS = [f"topics/log/partition=0/log+0+{first:010d}.json" for first in (0, 10)]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundLoop, "truncation_check_ms", 1)


def reading(*topics: str, on_data_loss: str = "Fail", **given: Any) -> dict[str, Any]:
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": list(topics), "groupId": "group"}
    return {"flush_size": 10, "spec": {"kafka": kafka, "onDataLoss": on_data_loss}, **given}


def lose_unpublished(place: Place) -> None:
    place.delete_staging()
    for upload in list(place.s3.list_uploads("")):
        place.s3.abort(upload.key, upload.upload_id)


def verdicts(place: Place, log: FunctionLog) -> dict[str, PartitionResult]:
    sink = load_sink(manifest(place.bucket, place.endpoint, **reading("log")))
    found = collect_evidence(sink, place.s3, FileGroup(log, place.folder / "group.json")).results()
    return {str(verdict.topic_partition): verdict for verdict in found}


@pytest.mark.parametrize("flush_size", [10, 100], ids=["partly closed", "all open"])
def test_with_continue_its_open_objects_are_given_up_and_the_other_topics_continue(
    place: Place, caplog: pytest.LogCaptureFixture, flush_size: int
) -> None:
    place.run(BOTH, DONE, **reading("log", "gone", flush_size=flush_size))
    visible = place.bodies()
    lose_unpublished(place)
    driver = place.driver(ONE, ALL_AND_CLOSE, **reading("log", on_data_loss="Continue", flush_size=flush_size))
    driver.run()
    lost = 15 - 10 * (flush_size == 10)
    assert driver.progress.lost_offsets == lost
    assert sorted(offset for key in place.bodies() if "/log/" in key for offset in place.offsets(key)) == list(
        range(25)
    )
    assert {key: place.bodies()[key] for key in place.bodies() if "/gone/" in key or key in visible} == visible
    first = 15 - lost
    (report,) = [r.message for r in caplog.records if r.levelno == logging.WARNING and "lost" in r.message]
    assert all(word in report for word in ("gone-0", f"gone+0+{first:010d}.json", f"offsets {first} to 14"))
    found = verdicts(place, ONE)
    assert [(v.findings, v.lost) for v in found.values()] == [((), lost), ((), 0)]
    assert place.litter_after(ALL_AND_CLOSE, ONE, reading("log")) == []


def test_a_loss_is_reported_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.run(BOTH, DONE, **reading("log", "gone"))
    lose_unpublished(place)
    place.run(ONE, DONE, **reading("log", on_data_loss="Continue"))
    caplog.clear()
    driver = place.driver(ONE, DONE, **reading("log"))
    driver.run()
    assert driver.progress.lost_offsets == 0
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING and "lost" in r.message] == []


def test_with_fail_the_error_says_what_is_lost_and_what_helps(place: Place) -> None:
    place.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(place)
    with pytest.raises(DataLoss) as caught:
        place.run(ONE, DONE, **reading("log"))
    message = str(caught.value)
    assert "topic gone was deleted in Kafka" in message
    assert all(word in message for word in ("gone-0", KEY, "offsets 0 to 14", "onDataLoss: Continue"))


def test_discarding_what_is_open_lets_the_other_topics_continue_too(place: Place) -> None:
    place.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(place)
    place.discard(**reading("log", flush_size=100))
    place.run(ONE, DONE, **reading("log"))
    assert list(place.bodies()) == OTHER_KEYS


@pytest.mark.parametrize("on_data_loss", ["Fail", "Continue"])
def test_a_named_object_of_it_is_lost_like_an_open_one(
    place: Place, monkeypatch: pytest.MonkeyPatch, on_data_loss: str
) -> None:
    end_before_publishing(place, monkeypatch, BOTH, **reading("log", "gone"))
    lose_unpublished(place)
    given = reading("log", on_data_loss=on_data_loss)
    if on_data_loss == "Fail":
        with pytest.raises(DataLoss, match="deleted in Kafka") as caught:
            place.run(ONE, DONE, **given)
        assert all(word in str(caught.value) for word in ("gone-0", KEY, "offsets 0 to 9", "onDataLoss: Continue"))
    else:
        driver = place.driver(ONE, DONE, **given)
        driver.run()
        assert list(place.bodies()) == OTHER_KEYS
        assert driver.progress.lost_offsets == 15
        assert [v.findings for v in verdicts(place, ONE).values()] == [(), ()]


def test_nothing_is_rebuilt_from_a_topic_of_the_same_name_that_was_created_later(place: Place) -> None:
    place.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(place)
    again = replace(ONE, beside={"gone": "another-id"})
    with pytest.raises(DataLoss, match="topic gone was deleted and created again"):
        place.run(again, DONE, **reading("log"))
    place.run(again, DONE, **reading("log", on_data_loss="Continue"))
    assert [key for key in place.bodies() if "/gone/" in key] == []


def test_a_topic_that_is_only_removed_from_the_manifest_is_read_once_more(place: Place) -> None:
    place.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(place)
    place.run(replace(BOTH, records=25), DONE, **reading("log", on_data_loss="Continue"))
    assert place.offsets(KEY) == list(range(15))


def test_a_topic_that_brokers_do_not_know_for_a_moment_is_not_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.run(BOTH, DONE, **reading("log", "gone", flush_size=100))
    lose_unpublished(place)
    known, unknown = FileGroup.topics, iter(range(4))

    def late(self: FileGroup, names: Any = None, **more: Any) -> Any:
        if "gone" in (names or ()) and next(unknown, None) is not None:
            return known(FileGroup(ONE, self.path), names, **more)
        return known(self, names, **more)

    monkeypatch.setattr(FileGroup, "topics", late)
    place.run(replace(BOTH, records=25), DONE, **reading("log", on_data_loss="Continue"))
    assert place.offsets(KEY) == list(range(15))


@pytest.mark.spark
def test_on_a_real_broker_the_other_topic_continues(site: Site, topic: str) -> None:
    kept, gone = f"{topic}-a", f"{topic}-b"
    for name in (kept, gone):
        site.topics.create(name)
        site.topics.produce_values(name, [b"1"] * 15)
    site.run(site.sink([kept, gone]), SOON)
    for listed in site.s3.client().list_objects_v2(Bucket=site.bucket)["Contents"]:
        if "/staging/" in listed["Key"]:
            site.s3.client().delete_object(Bucket=site.bucket, Key=listed["Key"])
    site.topics.delete(gone)
    with pytest.raises(DataLoss, match="onDataLoss: Continue"):
        site.run(site.sink([kept]), SOON)
    report = site.run(site.sink([kept], onDataLoss="Continue"), ALL)
    assert report.totals.lost == 5
    assert sum(len(lines) for key, lines in site.values().items() if kept in key) == 15
    assert sum(len(lines) for key, lines in site.values().items() if gone in key) == 10
