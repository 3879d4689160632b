"""`s3sink verify`: correct objects pass, and what is no finding."""

from __future__ import annotations

import time

import pytest

from devtools.processes import wait_until
from sink_job.ledger.state import LedgerState
from sink_job.ledger.store import AuditEntry, Ledger
from sink_job.verify.results import FindingType
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog
from tests.support.verify_sink import (
    CAUGHT_UP,
    LEFT_OPEN,
    deep,
    evidence,
    findings,
    shallow,
    take_snapshot,
)

pytestmark = pytest.mark.data


def test_the_output_of_a_sink_passes(written: SinkFixture) -> None:
    results = shallow(written)
    assert findings(results) == []
    assert [(v.start, v.committed, v.end, v.lag, v.objects, v.records, v.gaps) for v in results] == [
        (0, 100, 100, 0, 10, 100, 0)
    ] * 2
    assert sum(v.bytes for v in results) == sum(map(len, written.contents().values()))


def test_open_objects_are_not_verified_and_are_no_finding(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=25)
    sink_fixture.run(log, LEFT_OPEN, flush_size=10)
    (result,) = shallow(sink_fixture, log)
    assert result.findings == ()
    assert (result.committed, result.next, result.pending_records, result.lag) == (20, 25, 5, 5)
    assert sink_fixture.orphans()


def test_the_audit_list_spans_snapshots_and_later_records(sink_fixture: SinkFixture) -> None:
    for records in (30, 60, 90):
        sink_fixture.run(SyntheticLog(records=records), CAUGHT_UP, flush_size=10)
        take_snapshot(sink_fixture)
    log = SyntheticLog(records=100)
    sink_fixture.run(log, CAUGHT_UP, flush_size=10)
    (result,) = deep(sink_fixture, log)
    assert (result.findings, result.objects, result.records) == ((), 10, 100)


def test_offsets_without_a_record_are_gaps(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(gaps=frozenset({0, 13, 14, 99}), paths=3)
    sink_fixture.run(log, CAUGHT_UP, flush_size=10, paths=True)
    (result,) = deep(sink_fixture, log, paths=True)
    assert (result.findings, result.records, result.gaps, result.committed) == ((), 96, 4, 100)


def test_a_lost_commit_is_reported_and_passes(written: SinkFixture) -> None:
    written.set_group({"log-0": 40})
    first, second = shallow(written)
    assert (first.findings, first.committed) == ((), 100)
    assert any("the consumer group's offset is 40 but should be" in note for note in first.notes)
    assert any("the consumer group has no committed offset" in note for note in second.notes)


def test_other_files_beside_the_objects_are_foreign(written: SinkFixture) -> None:
    written.put("topics/log/README.txt", b"?")
    written.put("topics/log/partition=0/log+0+0000000010.csv", b"?")
    found = evidence(written, SyntheticLog(partitions=2), flush_size=10)
    assert found.foreign == 2
    assert findings(found.results()) == []


SECOND_KEY = "topics/log/partition=0/log+0+0000000010.json"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("partition=0/log+0+0000000010.json.gz", id="compressed"),
        pytest.param("partition=0/log+0+10.json", id="less padding"),
        pytest.param("partition=0/log+0+00000000000000000000000010.json", id="more padding"),
        pytest.param("partition=0/log+00+0000000010.json", id="a padded partition"),
        pytest.param("partition=0/log+0+0000000010-copy.json", id="a word behind the offset"),
        pytest.param("backup/log+0+0000000010.json", id="another directory"),
        pytest.param("log+0+0000000010.json", id="the topic's own directory"),
    ],
)
def test_an_object_with_a_key_of_the_sink_that_is_not_listed_is_untracked(written: SinkFixture, name: str) -> None:
    written.put(f"topics/log/{name}", b"other bytes")
    (found,) = [finding for v in shallow(written) for finding in v.findings]
    assert (found.type, found.offset, found.key) == (FindingType.UNTRACKED_OBJECT, 10, f"topics/log/{name}")


@pytest.mark.parametrize("partition", [-1, 2, 4711, 99_999_999_999])
def test_an_object_of_a_missing_partition_is_untracked(written: SinkFixture, partition: int) -> None:
    written.put(f"topics/log/partition={partition}/log+{partition}+0000000010.json", b"?")
    assert findings(shallow(written)) == [(f"log-{partition}", FindingType.UNTRACKED_OBJECT, 10)]
    assert findings(deep(written)) == [(f"log-{partition}", FindingType.UNTRACKED_OBJECT, 10)]


@pytest.mark.parametrize("name", ["anything", "copy of log+0+0000000010.json", "partition=0/log+0+0000000010.json.bak"])
def test_a_copy_is_recognized_by_its_content_under_any_name(written: SinkFixture, name: str) -> None:
    written.put(f"topics/log/{name}", written.s3.get(SECOND_KEY))
    (found,) = [finding for v in shallow(written) for finding in v.findings]
    assert (found.type, found.offset, found.key) == (FindingType.UNTRACKED_OBJECT, 10, f"topics/log/{name}")
    assert found.message.startswith(f"a copy of {SECOND_KEY}")


@pytest.mark.parametrize("name", ["_old/log+0+10.json", ".log+0+10.json.swp", "_temporary/0/part-0.json"])
def test_names_that_readers_ignore_are_foreign(written: SinkFixture, name: str) -> None:
    written.put(f"topics/log/{name}", written.s3.get(SECOND_KEY))
    found = evidence(written, SyntheticLog(partitions=2), flush_size=10)
    assert (found.foreign, findings(found.results())) == (1, [])


def test_objects_of_another_sink_of_the_topic_with_another_extension_are_a_note(written: SinkFixture) -> None:
    log = SyntheticLog(partitions=2)
    for file in written.folder.glob("group.*"):  # the other sink has its own group
        file.unlink()
    written.run(log, CAUGHT_UP, flush_size=10, compression="Gzip", name="second")
    found = evidence(written, log, flush_size=10)
    assert findings(found.results()) == []
    assert found.foreign == 0
    assert "20 objects have an extension that another sink has claimed for the same topic" in found.notes


def test_objects_before_the_sinks_start_are_a_note_in_any_format(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog()
    sink_fixture.set_group({"log-0": 50})
    for name in ("log+0+0000000040.json", "log+0+30.json", "log+0+0000000020.json.gz"):
        sink_fixture.put(f"topics/log/partition=0/{name}", b"of a connector")
    sink_fixture.run(log, CAUGHT_UP, flush_size=10)
    (result,) = shallow(sink_fixture, log)
    assert result.findings == ()
    assert "3 objects begin before the sink's start offset 50: it did not write them" in result.notes


def test_an_object_of_an_unknown_partition_that_is_older_than_the_sink_is_a_note(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog()
    sink_fixture.put("topics/log/partition=7/log+7+0000000010.json", b"of a connector")
    started = int(time.time())
    wait_until(lambda: int(time.time()) > started, "the store's next second", seconds=5)
    sink_fixture.run(log, CAUGHT_UP, flush_size=10)
    found = evidence(sink_fixture, log, flush_size=10)
    assert findings(found.results()) == []
    assert "1 objects older than the ledger are of partitions that it does not contain" in found.notes


def test_objects_of_previous_settings_are_recognized(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=50), CAUGHT_UP, flush_size=10)
    log = SyntheticLog(records=100)
    given = {"compression": "Gzip", "flush_size": 15}
    sink_fixture.run(log, CAUGHT_UP, **given)
    (result,) = deep(sink_fixture, log, **given)
    assert (result.findings, result.records) == ((), 100)
    sink_fixture.put("topics/log/partition=0/log+0+0000000042.json", b"?")
    (result,) = shallow(sink_fixture, log, **given)
    assert findings([result]) == [("log-0", FindingType.UNTRACKED_OBJECT, 42)]


def test_a_sink_that_runs_during_verify_passes(written: SinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects published between the reads of the ledger and the bucket are not untracked."""
    log = SyntheticLog(partitions=2, records=150)
    listed = Ledger.published
    runs = iter([lambda: written.run(log, CAUGHT_UP, flush_size=10)])

    def published(ledger: Ledger, state: LedgerState) -> list[AuditEntry]:
        lines = listed(ledger, state)
        next(runs, lambda: None)()
        return lines

    monkeypatch.setattr(Ledger, "published", published)
    assert findings(shallow(written, log)) == []


def test_a_recreated_topic_is_not_compared(written: SinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = FileConsumerGroup.topics
    monkeypatch.setattr(
        FileConsumerGroup,
        "topics",
        lambda *args, **named: {name: info._replace(id="another") for name, info in topics(*args, **named).items()},
    )
    found = evidence(written, SyntheticLog(partitions=2), flush_size=10)
    assert found.notes == ("topic log was deleted and created again: the objects are those of the deleted topic",)
    assert [(v.findings, v.end, v.objects) for v in found.results()] == [((), None, 10)] * 2
