"""The promises of docs/exactly-once.md that need a hand in the bucket or in the consumer group to show."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from devtools.faults.s3_proxy import Answer, FaultProxy
from devtools.faults.s3_requests import kind
from devtools.processes import wait_until
from devtools.s3 import S3Server
from sink_job.api.errors import LedgerFenced, LedgerLost, OwnershipConflict, TopicRecreated
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.engine.kafka_admin import TopicInfo
from sink_job.ledger.state import Record
from sink_job.ledger.store import Ledger
from sink_job.s3 import S3Client
from tests.support.crash_points import end_before_publishing
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FileGroup, FunctionEngine, FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
SECOND = "topics/log/partition=0/log+0+0000000010.json"
ROOT = "topics/_s3sink/default.log/"


def records(place: Place) -> list[Record]:
    keys = [listed.key for listed in place.s3.list(f"{ROOT}ledger/")]
    return [msgspec.json.decode(gzip.decompress(place.s3.get(key)), type=Record) for key in keys]


# -- P1, P2 ------------------------------------------------------------------------------------------------------------


def test_nothing_is_visible_before_a_record_names_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    end_before_publishing(place, monkeypatch, FunctionLog(records=15), flush_size=10)
    assert place.keys() == []
    assert [o.key for record in records(place) for o in record.closed] == [FIRST]


def test_every_visible_object_is_named_by_a_record(place: Place) -> None:
    place.run(FunctionLog(records=45), ALL, flush_size=10)
    assert sorted(o.key for record in records(place) for o in record.closed) == place.keys()


# -- P4 ----------------------------------------------------------------------------------------------------------------


def test_a_driver_whose_number_another_took_is_fenced_and_leaves_nothing(place: Place) -> None:
    old = place.driver(FunctionLog(records=15), DONE, flush_size=10).start()
    old.recover()
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    visible = place.bodies()
    with pytest.raises(LedgerFenced, match="another driver has written record"):
        old.run_once()
    assert place.bodies() == visible
    assert place.group() == {"log-0": 20}
    assert [upload.key for upload in place.s3.list_uploads("")] == []


def test_claims_are_kept_when_records_are_dropped(place: Place) -> None:
    for end in range(10, 70, 10):
        place.run(FunctionLog(records=end), DONE, flush_size=10, world={"snapshot_every": 3})
    kinds = [record.kind for record in records(place)]
    assert kinds.count("claim") == 6
    assert kinds.count("round") < 6


def test_a_state_read_from_snapshots_is_the_one_read_from_all_records(place: Place) -> None:
    log = FunctionLog(records=95, paths=3)
    often = place.sibling()
    often.run(log, DONE, flush_size=10, paths=True, max_records=7, world={"snapshot_every": 4})
    place.run(log, DONE, flush_size=10, paths=True, max_records=7)
    kept = [Ledger(each.s3, ROOT, "reader").load().partitions["log-0"] for each in (often, place)]
    assert [(p.next, p.open_records, [(o.path, o.first, o.offsets) for o in p.open]) for p in kept[:1]] == [
        (p.next, p.open_records, [(o.path, o.first, o.offsets) for o in p.open]) for p in kept[1:]
    ]


# -- P5 ----------------------------------------------------------------------------------------------------------------


def test_an_offset_that_somebody_moved_is_committed_again(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.set_group({"log-0": 3})
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    assert place.group() == {"log-0": 20}
    assert place.keys() == [FIRST, SECOND]


def test_objects_without_a_ledger_stop_the_sink_before_it_doubles_them(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.s3.delete([listed.key for listed in place.s3.list(ROOT) if "owner" not in listed.key])
    place.set_group({"log-0": 10})
    with pytest.raises(LedgerLost, match=r"0000000010\.json"):
        place.run(FunctionLog(records=25), DONE, flush_size=10)


def test_without_a_ledger_objects_below_the_groups_offset_are_no_obstacle(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.s3.delete([listed.key for listed in place.s3.list(ROOT) if "owner" not in listed.key])
    place.run(FunctionLog(records=35), DONE, flush_size=10)
    assert place.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 30))


# -- P9 ----------------------------------------------------------------------------------------------------------------


def test_an_upload_whose_part_somebody_replaced_is_rebuilt(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    untouched = place.sibling()
    untouched.run(FunctionLog(records=15), DONE, flush_size=10)
    end_before_publishing(place, monkeypatch, FunctionLog(records=15), flush_size=10)
    [upload] = place.s3.list_uploads(FIRST)
    place.s3.upload_part(FIRST, upload.upload_id, 1, b"not what was recorded")
    place.run(FunctionLog(records=15), DONE, flush_size=10)
    assert place.bodies() == untouched.bodies()
    assert list(place.s3.list_uploads("")) == []


def test_a_conflict_that_persists_leads_to_a_rebuild(s3: S3Server, place: Place) -> None:
    with FaultProxy(s3.endpoint) as proxy:
        proxy.when(kind("CompleteMultipartUpload", key="log+0"), Answer(409, "ConditionalRequestConflict"), times=7)
        through = replace(place, settings=replace(place.settings, endpoint=proxy.endpoint))
        through.run(FunctionLog(records=10), DONE, flush_size=10)
    assert place.offsets(FIRST) == list(range(10))


def test_an_object_that_was_published_and_moved_away_is_not_made_again(place: Place) -> None:
    place.run(FunctionLog(records=10), DONE, flush_size=10)
    place.s3.delete([FIRST])
    place.run(FunctionLog(records=20), DONE, flush_size=10)
    assert place.keys() == [SECOND]


# -- P10 ---------------------------------------------------------------------------------------------------------------


def test_uploads_of_others_are_left_alone(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    foreign = [
        "topics/other/partition=0/other+0+0000000020.json",
        "topics/log/partition=7/log+7+0000000020.json",
        "topics/log/partition=0/log+0+0000009999.json",
        "topics/log/notes.txt",
    ]
    for key in foreign:
        place.s3.create_upload(key)
    begun = int(time.time())
    wait_until(lambda: int(time.time()) > begun, "the store's next second", seconds=5)
    place.run(FunctionLog(records=30), DONE, flush_size=10)
    assert sorted(upload.key for upload in place.s3.list_uploads("")) == sorted(foreign)


def test_an_upload_that_a_crashed_round_began_is_cleared_away(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.s3.create_upload("topics/log/partition=0/log+0+0000000020.json")
    begun = int(time.time())
    wait_until(lambda: int(time.time()) > begun, "the store's next second", seconds=5)
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    assert [upload.key for upload in place.s3.list_uploads("")] == []


def test_a_missing_lifecycle_rule_is_told_at_the_start(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(S3Client, "lifecycle_rules", lambda _: [])
    monkeypatch.setattr(S3Client, "keeps_versions", lambda _: False)
    place.run(FunctionLog(records=5), DONE, flush_size=10)
    assert "AbortIncompleteMultipartUpload" in caplog.text


# -- P11 ---------------------------------------------------------------------------------------------------------------


def test_a_second_sink_of_the_same_place_and_topic_is_refused(place: Place) -> None:
    place.run(FunctionLog(records=5), DONE, flush_size=10)
    with pytest.raises(OwnershipConflict, match="topic log as"):
        place.run(FunctionLog(records=5), DONE, flush_size=10, spec={"sinkId": "another"})


def test_a_refused_sink_goes_on_when_it_is_told_to_take_over(place: Place) -> None:
    place.run(FunctionLog(records=5), DONE, flush_size=10)
    place.set_group({"log-0": 5})
    takes_over = replace(DONE, take_over=True)
    place.run(FunctionLog(records=15), takes_over, flush_size=10, spec={"sinkId": "another"})
    assert place.keys() == ["topics/log/partition=0/log+0+0000000005.json"]


def test_a_topic_that_was_created_again_stops_the_sink(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.run(FunctionLog(records=5), DONE, flush_size=10)
    monkeypatch.setattr(FileGroup, "topics", lambda *_, **__: {"log": TopicInfo("another-id", 1)})
    with pytest.raises(TopicRecreated, match="topic log was deleted and created again"):
        place.run(FunctionLog(records=5), DONE, flush_size=10)


def test_what_was_read_from_a_topic_that_was_created_again_meanwhile_is_not_recorded(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.run(FunctionLog(records=10), DONE, flush_size=10)
    read = FunctionEngine.run

    def run(self: FunctionEngine, **round_: Any) -> dict[TopicPartition, bytes]:
        results = read(self, **round_)
        monkeypatch.setattr(FileGroup, "topics", lambda *_, **__: {"log": TopicInfo("another-id", 1)})
        return results

    monkeypatch.setattr(FunctionEngine, "run", run)
    with pytest.raises(TopicRecreated, match="topic log was deleted and created again"):
        place.run(FunctionLog(records=20), DONE, flush_size=10)
    monkeypatch.undo()
    place.run(FunctionLog(records=10), DONE, flush_size=10)
    assert place.keys() == ["topics/log/partition=0/log+0+0000000000.json"]
