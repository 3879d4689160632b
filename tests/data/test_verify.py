"""`s3sink verify`: correct objects pass, and each kind of damage is reported with its first offset."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from devtools.processes import wait_until
from devtools.s3 import S3Server
from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import LedgerState
from sink_job.ledger.store import AuditEntry, Ledger
from sink_job.verify.compare_job import CompareContext, compare
from sink_job.verify.evidence import Evidence, collect_evidence
from sink_job.verify.results import FindingType, PartitionResult
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

pytestmark = pytest.mark.data

CAUGHT_UP = StopCondition(until_caught_up=True, publish_open=True)
LEFT_OPEN = StopCondition(until_caught_up=True)
ROOT = "topics/_s3sink/default.log/"
FIRST = TopicPartition("log", 0)


@pytest.fixture
def written(sink_fixture: SinkFixture) -> SinkFixture:
    """Two partitions of 100 records in published objects of 10; the last ones are not acknowledged yet."""
    sink_fixture.run(SyntheticLog(partitions=2), CAUGHT_UP, flush_size=10, max_records=25)
    return sink_fixture


def evidence(sink_fixture: SinkFixture, log: SyntheticLog, **given: Any) -> Evidence:
    sink = load_sink(manifest(sink_fixture.bucket, sink_fixture.endpoint, **given))
    return collect_evidence(sink, sink_fixture.s3, FileConsumerGroup(log, sink_fixture.folder / "group.json"))


def shallow(sink_fixture: SinkFixture, log: SyntheticLog | None = None, **given: Any) -> list[PartitionResult]:
    log = log or SyntheticLog(partitions=2)
    return evidence(sink_fixture, log, **{"flush_size": 10, **given}).results()


def deep(sink_fixture: SinkFixture, log: SyntheticLog | None = None, **given: Any) -> list[PartitionResult]:
    log = log or SyntheticLog(partitions=2)
    given = {"flush_size": 10, **given}
    sink = load_sink(manifest(sink_fixture.bucket, sink_fixture.endpoint, **given))
    found = evidence(sink_fixture, log, **given)
    context = CompareContext(
        s3=sink_fixture.settings,
        admin=FileConsumerGroup(log, sink_fixture.folder / "group.json"),
        engine=InlineEngine(log),
    )
    return compare(found, found.results(), context, sink.spec.errors)


def findings(results: list[PartitionResult]) -> list[tuple[str, str, int]]:
    return [(str(v.topic_partition), finding.type, finding.offset) for v in results for finding in v.findings]


def key_of(sink_fixture: SinkFixture, partition: int, first: int) -> str:
    (key,) = (key for key in sink_fixture.contents() if f"+{partition}+{first:010d}." in key)
    return key


def take_snapshot(sink_fixture: SinkFixture) -> LedgerState:
    ledger = Ledger(sink_fixture.s3, ROOT, "test")
    return ledger.snapshot(ledger.load())


def rewrite_published(sink_fixture: SinkFixture, change: Callable[[AuditEntry], AuditEntry | None]) -> None:
    """Changes lines of the published list; `None` drops a line."""
    for listed in list(sink_fixture.s3.list(f"{ROOT}published/")):
        lines = [
            msgspec.json.decode(line, type=AuditEntry)
            for line in gzip.decompress(sink_fixture.s3.get(listed.key)).splitlines()
        ]
        kept = [changed for line in lines if (changed := change(line)) is not None]
        sink_fixture.s3.put(listed.key, gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in kept)))


Tamper = Callable[[SinkFixture, str, Callable[[bytes], bytes]], None]


@pytest.fixture
def tamper(s3: S3Server) -> Tamper:
    """Changes an object's bytes on the server's disk: its ETag and checksum stay the same."""

    def change_file(sink_fixture: SinkFixture, key: str, change: Callable[[bytes], bytes]) -> None:
        (path,) = s3.directory.rglob(f"{sink_fixture.bucket}/{key}")
        path.write_bytes(change(path.read_bytes()))

    return change_file


# -- passes ----------------------------------------------------------------------------------------------------------


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


# -- findings --------------------------------------------------------------------------------------------------------


def test_a_missing_object_is_reported(written: SinkFixture) -> None:
    written.s3.delete([key_of(written, 1, 30)])
    assert findings(shallow(written)) == [("log-1", FindingType.OBJECT_MISSING, 30)]


def test_different_bytes_of_the_same_size_are_reported(written: SinkFixture) -> None:
    key = key_of(written, 0, 50)
    written.put(key, written.content(key).replace(b"50", b"51"))
    assert findings(shallow(written)) == [("log-0", FindingType.OBJECT_MISMATCH, 50)]


def test_bytes_of_another_size_are_reported(written: SinkFixture) -> None:
    written.put(key_of(written, 0, 50), b"{}\n")
    assert findings(shallow(written)) == [("log-0", FindingType.OBJECT_MISMATCH, 50)]


def test_a_copy_with_the_same_bytes_passes(written: SinkFixture) -> None:
    """The ETag differs; the checksum of the whole object is equal."""
    key = key_of(written, 0, 50)
    written.put(key, written.content(key))
    assert findings(shallow(written)) == []


def test_an_object_that_overlaps_others_is_reported(written: SinkFixture) -> None:
    written.put("topics/log/partition=0/log+0+0000000055.json", written.content(key_of(written, 0, 50)))
    assert findings(shallow(written)) == [("log-0", FindingType.UNTRACKED_OBJECT, 55)]


def test_a_missing_object_line_is_reported(written: SinkFixture) -> None:
    take_snapshot(written)
    key = key_of(written, 0, 20)
    rewrite_published(written, lambda line: None if line.object and line.object.key == key else line)
    assert findings(shallow(written)) == [
        ("log-0", FindingType.OFFSETS_MISSING, 20),
        ("log-0", FindingType.UNTRACKED_OBJECT, 20),
    ]


def test_a_missing_rotation_line_is_reported(written: SinkFixture) -> None:
    take_snapshot(written)
    rewrite_published(
        written,
        lambda line: None if line.rotation and line.rotation.partition == 0 and line.rotation.start == 0 else line,
    )
    assert findings(shallow(written)) == [("log-0", FindingType.OFFSETS_MISSING, 0)]


def test_a_missing_published_file_is_reported(written: SinkFixture) -> None:
    take_snapshot(written)
    written.s3.delete([listed.key for listed in written.s3.list(f"{ROOT}published/")])
    with pytest.raises(ConfigurationError, match="published log"):
        shallow(written)


def test_a_committed_offset_that_is_ahead_is_reported(written: SinkFixture) -> None:
    written.set_group({"log-0": 101, "log-1": 100})
    assert findings(shallow(written)) == [("log-0", FindingType.COMMITTED_OFFSET_AHEAD, 100)]


def test_a_truncated_log_is_reported(written: SinkFixture) -> None:
    assert findings(shallow(written, SyntheticLog(partitions=2, records=70))) == [
        ("log-0", FindingType.LOG_TRUNCATED, 70),
        ("log-1", FindingType.LOG_TRUNCATED, 70),
    ]


def test_a_sink_without_a_ledger_is_not_verified(sink_fixture: SinkFixture) -> None:
    with pytest.raises(ConfigurationError, match="there is no ledger"):
        shallow(sink_fixture)


# -- deep ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flush_size", [2, 3])
def test_alternating_paths_pass_with_scope_object(sink_fixture: SinkFixture, flush_size: int) -> None:
    """The object of one path is closed while another path's object is open."""
    given: dict[str, Any] = {"flush_size": flush_size, "paths": True, "scope": "Object"}
    log = SyntheticLog(records=8, paths=2)
    sink_fixture.run(log, CAUGHT_UP, **given)
    assert findings(shallow(sink_fixture, log, **given)) == []
    assert [each.records for each in shallow(sink_fixture, log, **given)] == [8]


@pytest.mark.parametrize("compression", ["None", "Gzip"])
@pytest.mark.parametrize("scope", ["Partition", "Object"])
def test_objects_equal_the_records_in_kafka(sink_fixture: SinkFixture, compression: str, scope: str) -> None:
    log = SyntheticLog(partitions=2, paths=3)
    given = {"compression": compression, "scope": scope, "paths": True}
    sink_fixture.run(log, CAUGHT_UP, flush_size=10, max_records=17, **given)
    results = deep(sink_fixture, log, **given)
    assert findings(results) == []
    assert [v.compared.records for v in results if v.compared] == [100, 100]
    assert all(v.compared and v.compared.objects == v.objects for v in results)


def test_wallclock_paths_are_compared_under_their_recorded_clocks(sink_fixture: SinkFixture) -> None:
    """Rounds of 10 records, one hour apart; each hour has an object below flushSize."""
    hours = iter(range(1_700_000_000_000, 2_000_000_000_000, 3_600_000))
    log = SyntheticLog(records=45)
    spec = {"partitioner": {"type": "Hourly", "timezone": "UTC"}}
    given = {"flush_size": 100, "max_records": 10, "spec": spec}
    sink_fixture.run(log, CAUGHT_UP, clock=lambda: next(hours), **given)
    assert len(sink_fixture.keys()) > 3
    (result,) = deep(sink_fixture, log, **given)
    assert result.findings == ()
    assert result.compared is not None
    assert result.compared.records == 45


@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_corrupted_bytes_are_reported_with_their_record(
    sink_fixture: SinkFixture, tamper: Tamper, compression: str
) -> None:
    log = SyntheticLog()
    sink_fixture.run(log, CAUGHT_UP, flush_size=10, compression=compression)
    key = key_of(sink_fixture, 0, 40)

    def changed(body: bytes) -> bytes:
        if compression == "None":
            return body.replace(b'"offset": 46', b'"offset": 64')
        return gzip.compress(gzip.decompress(body).replace(b'"offset": 46', b'"offset": 64'))

    tamper(sink_fixture, key, changed)
    if compression == "None":
        assert findings(shallow(sink_fixture, log)) == []
    found = findings(deep(sink_fixture, log, compression=compression))
    assert ("log-0", FindingType.RECORD_MISMATCH, 46) in found


def test_a_truncated_object_is_reported(written: SinkFixture, tamper: Tamper) -> None:
    tamper(written, key_of(written, 0, 40), lambda body: b"".join(body.splitlines(keepends=True)[:7]))
    assert ("log-0", FindingType.RECORD_MISMATCH, 47) in findings(deep(written))


def test_damaged_gzip_is_reported(sink_fixture: SinkFixture, tamper: Tamper) -> None:
    log = SyntheticLog()
    sink_fixture.run(log, CAUGHT_UP, flush_size=10, compression="Gzip")
    tamper(sink_fixture, key_of(sink_fixture, 0, 40), lambda body: body[:20] + bytes([body[20] ^ 255]) + body[21:])
    (tp, what, offset) = findings(deep(sink_fixture, log, compression="Gzip"))[0]
    assert (tp, what) == ("log-0", FindingType.RECORD_MISMATCH)
    assert 40 <= offset < 50


def test_records_that_kafka_no_longer_holds_are_counted_and_are_no_finding(written: SinkFixture) -> None:
    log = SyntheticLog(partitions=2, starts_at=35)
    results = deep(written, log)
    assert findings(results) == []
    assert [(v.compared.objects, v.compared.expired_objects) for v in results if v.compared] == [(6, 4)] * 2


def test_compacted_records_are_counted_and_are_no_finding(written: SinkFixture) -> None:
    results = deep(written, SyntheticLog(partitions=2, gaps=frozenset({33, 34, 71})))
    assert findings(results) == []
    assert [(v.compared.objects, v.compared.expired_objects) for v in results if v.compared] == [(8, 2)] * 2


def test_a_record_that_the_lists_call_a_gap_is_reported(written: SinkFixture) -> None:
    """The lists add up. Only Kafka shows that the record exists."""
    take_snapshot(written)

    def without(line: AuditEntry) -> AuditEntry:
        o, r = line.object, line.rotation
        if o and o.partition == 0 and o.first == 50:
            fewer = o.offsets - checksum_range(59, 60)
            seen = tuple(msgspec.structs.replace(s, end=59) for s in o.sources)
            return AuditEntry(object=msgspec.structs.replace(o, last=58, offsets=fewer, sources=seen))
        if r and r.partition == 0 and r.start <= 59 < r.end:
            return AuditEntry(rotation=msgspec.structs.replace(r, gaps=r.gaps + checksum_range(59, 60)))
        return line

    rewrite_published(written, without)
    assert findings(shallow(written)) == []
    found = findings(deep(written))
    assert ("log-0", FindingType.OFFSETS_MISSING, 59) in found
    assert all(where == "log-0" for where, _, _ in found)


def test_rejected_records_are_in_no_object_and_are_no_finding(sink_fixture: SinkFixture) -> None:
    log = BadLog(records=50)
    given = {"errors": {"tolerance": "All"}}
    sink_fixture.run(log, CAUGHT_UP, flush_size=10, **given)
    (result,) = deep(sink_fixture, log, **given)
    assert result.findings == ()
    assert result.compared is not None
    assert (result.records, result.gaps, result.compared.skipped_records) == (45, 5, 5)


class BadLog(SyntheticLog):
    """Every tenth value is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return b"{" if offset % 10 == 3 else super().value(partition, offset)
