"""Promises of docs/exactly-once.md whose tests change the bucket or the consumer group directly."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from devtools.faults.s3_proxy import FaultProxy, S3ErrorReply
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
from tests.support.crash_points import crash_before_publishing
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
SECOND = "topics/log/partition=0/log+0+0000000010.json"
ROOT = "topics/_s3sink/default.log/"


def records(sink_fixture: SinkFixture) -> list[Record]:
    keys = [listed.key for listed in sink_fixture.s3.list(f"{ROOT}ledger/")]
    return [msgspec.json.decode(gzip.decompress(sink_fixture.s3.get(key)), type=Record) for key in keys]


# -- P1, P2 ----------------------------------------------------------------------------------------------------------


def test_no_object_is_visible_before_a_record_lists_it(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=15), flush_size=10)
    assert sink_fixture.keys() == []
    assert [o.key for record in records(sink_fixture) for o in record.closed] == [FIRST]


def test_a_record_lists_every_visible_object(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=45), ALL, flush_size=10)
    assert sorted(o.key for record in records(sink_fixture) for o in record.closed) == sink_fixture.keys()


# -- P4 --------------------------------------------------------------------------------------------------------------


def test_a_driver_that_loses_its_record_number_is_fenced_and_leaves_nothing(sink_fixture: SinkFixture) -> None:
    old = sink_fixture.driver(SyntheticLog(records=15), DONE, flush_size=10).start()
    old.recover()
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    visible = sink_fixture.contents()
    with pytest.raises(LedgerFenced, match="another driver has written record"):
        old.run_once()
    assert sink_fixture.contents() == visible
    assert sink_fixture.group() == {"log-0": 20}
    assert [upload.key for upload in sink_fixture.s3.list_uploads("")] == []


def test_claims_are_kept_when_records_are_dropped(sink_fixture: SinkFixture) -> None:
    for end in range(10, 70, 10):
        sink_fixture.run(SyntheticLog(records=end), DONE, flush_size=10, context={"snapshot_every": 3})
    kinds = [record.kind for record in records(sink_fixture)]
    assert kinds.count("claim") == 6
    assert kinds.count("round") < 6


def test_a_state_read_from_snapshots_is_the_one_read_from_all_records(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=95, paths=3)
    often = sink_fixture.sibling()
    often.run(log, DONE, flush_size=10, paths=True, max_records=7, context={"snapshot_every": 4})
    sink_fixture.run(log, DONE, flush_size=10, paths=True, max_records=7)
    kept = [Ledger(each.s3, ROOT, "reader").load().partitions["log-0"] for each in (often, sink_fixture)]
    assert [(p.next, p.rotation.open_records, [(o.path, o.first, o.offsets) for o in p.open]) for p in kept[:1]] == [
        (p.next, p.rotation.open_records, [(o.path, o.first, o.offsets) for o in p.open]) for p in kept[1:]
    ]


# -- P5 --------------------------------------------------------------------------------------------------------------


def test_an_offset_changed_by_another_program_is_committed_again(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.set_group({"log-0": 3})
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    assert sink_fixture.group() == {"log-0": 20}
    assert sink_fixture.keys() == [FIRST, SECOND]


def test_existing_objects_without_a_ledger_stop_the_sink_before_it_copies_them(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.s3.delete([listed.key for listed in sink_fixture.s3.list(ROOT) if "owner" not in listed.key])
    sink_fixture.set_group({"log-0": 10})
    with pytest.raises(LedgerLost, match=r"0000000010\.json"):
        sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)


def test_existing_objects_below_the_groups_offset_do_not_stop_a_new_sink(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.s3.delete([listed.key for listed in sink_fixture.s3.list(ROOT) if "owner" not in listed.key])
    sink_fixture.run(SyntheticLog(records=35), DONE, flush_size=10)
    assert sink_fixture.offsets("topics/log/partition=0/log+0+0000000020.json") == list(range(20, 30))


# -- P9 --------------------------------------------------------------------------------------------------------------


def test_an_object_with_a_replaced_part_is_rebuilt(sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    untouched = sink_fixture.sibling()
    untouched.run(SyntheticLog(records=15), DONE, flush_size=10)
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=15), flush_size=10)
    [upload] = sink_fixture.s3.list_uploads(FIRST)
    sink_fixture.s3.upload_part(FIRST, upload.upload_id, 1, b"not what was recorded")
    sink_fixture.run(SyntheticLog(records=15), DONE, flush_size=10)
    assert sink_fixture.contents() == untouched.contents()
    assert list(sink_fixture.s3.list_uploads("")) == []


def test_a_persistent_409_leads_to_a_rebuild(s3: S3Server, sink_fixture: SinkFixture) -> None:
    with FaultProxy(s3.endpoint) as proxy:
        proxy.when(
            kind("CompleteMultipartUpload", key="log+0"), S3ErrorReply(409, "ConditionalRequestConflict"), times=7
        )
        through = replace(sink_fixture, settings=replace(sink_fixture.settings, endpoint=proxy.endpoint))
        through.run(SyntheticLog(records=10), DONE, flush_size=10)
    assert sink_fixture.offsets(FIRST) == list(range(10))


def test_a_published_object_that_was_moved_away_is_not_rebuilt(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=10), DONE, flush_size=10)
    sink_fixture.s3.delete([FIRST])
    sink_fixture.run(SyntheticLog(records=20), DONE, flush_size=10)
    assert sink_fixture.keys() == [SECOND]


# -- P10 -------------------------------------------------------------------------------------------------------------


def test_foreign_uploads_are_not_aborted(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    foreign = [
        "topics/other/partition=0/other+0+0000000020.json",
        "topics/log/partition=7/log+7+0000000020.json",
        "topics/log/partition=0/log+0+0000009999.json",
        "topics/log/notes.txt",
    ]
    for key in foreign:
        sink_fixture.s3.create_upload(key)
    started = int(time.time())
    wait_until(lambda: int(time.time()) > started, "the store's next second", seconds=5)
    sink_fixture.run(SyntheticLog(records=30), DONE, flush_size=10)
    assert sorted(upload.key for upload in sink_fixture.s3.list_uploads("")) == sorted(foreign)


def test_the_upload_of_a_crashed_round_is_aborted(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.s3.create_upload("topics/log/partition=0/log+0+0000000020.json")
    started = int(time.time())
    wait_until(lambda: int(time.time()) > started, "the store's next second", seconds=5)
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    assert [upload.key for upload in sink_fixture.s3.list_uploads("")] == []


def test_a_missing_lifecycle_rule_is_reported_at_the_start(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(S3Client, "lifecycle_rules", lambda _: [])
    monkeypatch.setattr(S3Client, "keeps_versions", lambda _: False)
    sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10)
    assert "AbortIncompleteMultipartUpload" in caplog.text


# -- P11 -------------------------------------------------------------------------------------------------------------


def test_a_second_sink_of_the_same_directory_and_topic_is_rejected(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10)
    with pytest.raises(OwnershipConflict, match="topic log as"):
        sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10, spec={"sinkId": "another"})


def test_a_rejected_sink_continues_with_take_over(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10)
    sink_fixture.set_group({"log-0": 5})
    takes_over = replace(DONE, take_over=True)
    sink_fixture.run(SyntheticLog(records=15), takes_over, flush_size=10, spec={"sinkId": "another"})
    assert sink_fixture.keys() == ["topics/log/partition=0/log+0+0000000005.json"]


def test_a_recreated_topic_stops_the_sink(sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10)
    monkeypatch.setattr(FileConsumerGroup, "topics", lambda *_, **__: {"log": TopicInfo("another-id", 1)})
    with pytest.raises(TopicRecreated, match="topic log was deleted and created again"):
        sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10)


def test_records_of_a_topic_that_was_recreated_during_the_round_are_not_recorded(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(SyntheticLog(records=10), DONE, flush_size=10)
    read = InlineEngine.run

    def run(self: InlineEngine, **round_: Any) -> dict[TopicPartition, bytes]:
        results = read(self, **round_)
        monkeypatch.setattr(FileConsumerGroup, "topics", lambda *_, **__: {"log": TopicInfo("another-id", 1)})
        return results

    monkeypatch.setattr(InlineEngine, "run", run)
    with pytest.raises(TopicRecreated, match="topic log was deleted and created again"):
        sink_fixture.run(SyntheticLog(records=20), DONE, flush_size=10)
    monkeypatch.undo()
    sink_fixture.run(SyntheticLog(records=10), DONE, flush_size=10)
    assert sink_fixture.keys() == ["topics/log/partition=0/log+0+0000000000.json"]
