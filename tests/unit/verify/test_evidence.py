"""The evidence for an audit: which parts of Kafka and of the bucket count, and what notes say of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.api.topic_partition import TopicPartition
from sink_job.api.units.quantities import DAY
from sink_job.verify.evidence import Evidence, collect_evidence
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog

TP = TopicPartition("log", 0)
LOG = SyntheticLog(records=10)
KEYS = ["topics/log/partition=0/log+0+0000000000.json", "topics/log/partition=0/log+0+0000000005.json"]


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


class Elsewhere(FileConsumerGroup):
    def cluster_id(self) -> str:
        return "another"


def evidence(
    sink_fixture: MemorySinkFixture, log: SyntheticLog = LOG, *, admin: type[FileConsumerGroup] = FileConsumerGroup
) -> Evidence:
    s3: Any = sink_fixture.s3
    return collect_evidence(sink_fixture.sink, s3, admin(log, sink_fixture.group))


def test_a_sink_without_a_ledger_has_no_evidence(sink_fixture: MemorySinkFixture) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no ledger below s3://archive/topics/_s3sink/default\.log/"):
        evidence(sink_fixture)


def test_the_evidence_of_a_sink_that_has_caught_up_has_no_finding(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    found = evidence(sink_fixture)
    (result,) = found.results()
    assert (result.findings, result.objects, result.records, result.end, result.group) == ((), 2, 10, 10, 10)
    assert (found.live, found.notes, found.foreign, sorted(found.objects)) == ([TP], (), 0, KEYS)


def test_a_deleted_object_is_missing(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    del sink_fixture.s3.objects[KEYS[1]]
    found = evidence(sink_fixture)
    assert found.bucket.missing == {KEYS[1]}
    assert [finding.offset for result in found.results() for finding in result.findings] == [5]


def test_an_object_with_other_bytes_is_a_mismatch(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    sink_fixture.s3.put(KEYS[0], b"x")
    assert list(evidence(sink_fixture).bucket.mismatched) == [KEYS[0]]


def test_an_object_of_a_partition_that_the_ledger_does_not_contain_is_reported(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    sink_fixture.s3.put("topics/log/partition=7/log+7+0000000003.json", b"x")
    found = evidence(sink_fixture)
    assert [(tp, [o.first for o in objects]) for tp, objects in found.unknown_partitions.items()] == [
        (TopicPartition("log", 7), [3])
    ]


@pytest.mark.parametrize(
    ("log", "note"),
    [
        (SyntheticLog(topic="another"), "topic log does not exist in Kafka any more"),
        (SyntheticLog(topic_id="second"), "topic log was deleted and created again: the objects are those of the"),
    ],
)
def test_the_log_end_of_a_topic_that_no_longer_exists_is_not_read(
    sink_fixture: MemorySinkFixture, log: SyntheticLog, note: str
) -> None:
    sink_fixture.run(LOG)
    found = evidence(sink_fixture, log)
    assert (found.live, found.kafka.ends) == ([], {})
    assert found.notes[0].startswith(note)


def test_the_log_ends_of_another_cluster_are_not_read(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    found = evidence(sink_fixture, admin=Elsewhere)
    assert (found.live, found.kafka.ends) == ([], {})
    assert "bootstrapServers are not those of Kafka cluster function" in found.notes[0]


def test_without_an_offset_reset_each_commit_of_the_group_counts(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    FileConsumerGroup(LOG, sink_fixture.group).alter_group_offsets("group", {TP: 3}, metadata="by another program")
    assert evidence(sink_fixture).kafka.group == {TP: 3}


def test_missing_objects_that_are_older_than_their_expiry_count_as_removed(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(LOG)
    sink_fixture.s3.delete(KEYS[:1])
    spec = sink_fixture.sink.spec
    s3_spec = spec.s3.model_copy(update={"expire_after": 30 * DAY})
    sink_fixture.sink = sink_fixture.sink.model_copy(update={"spec": spec.model_copy(update={"s3": s3_spec})})
    (result,) = evidence(sink_fixture).results()
    assert (len(result.findings), result.removed) == (1, 0)
    later = sink_fixture.s3.server_now_ms() + 31 * DAY
    monkeypatch.setattr(sink_fixture.s3, "server_now_ms", lambda: later)
    (result,) = evidence(sink_fixture).results()
    assert (result.findings, result.removed, result.objects) == ((), 1, 1)


def test_the_later_of_expiry_and_given_time_counts(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    sink_fixture.s3.delete(KEYS[:1])
    s3: Any = sink_fixture.s3
    admin = FileConsumerGroup(LOG, sink_fixture.group)
    found = collect_evidence(sink_fixture.sink, s3, admin, removed_before=1 << 50)
    assert found.bucket.removed == {KEYS[0]}
    assert collect_evidence(sink_fixture.sink, s3, admin, removed_before=1).bucket.removed == frozenset()
