"""`s3sink verify`: what a sink wrote is proved right, and each kind of damage is told with its first wrong offset."""

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
from tests.support.sink_fixture import Place, manifest
from tests.support.synthetic_log import FileGroup, FunctionEngine, FunctionLog

pytestmark = pytest.mark.data

CAUGHT_UP = StopCondition(until_caught_up=True, publish_open=True)
LEFT_OPEN = StopCondition(until_caught_up=True)
ROOT = "topics/_s3sink/default.log/"
FIRST = TopicPartition("log", 0)


@pytest.fixture
def written(place: Place) -> Place:
    """Two partitions of 100 records in objects of 10, all published: the last ones are not acknowledged yet."""
    place.run(FunctionLog(partitions=2), CAUGHT_UP, flush_size=10, max_records=25)
    return place


def evidence(place: Place, log: FunctionLog, **given: Any) -> Evidence:
    sink = load_sink(manifest(place.bucket, place.endpoint, **given))
    return collect_evidence(sink, place.s3, FileGroup(log, place.folder / "group.json"))


def shallow(place: Place, log: FunctionLog | None = None, **given: Any) -> list[PartitionResult]:
    log = log or FunctionLog(partitions=2)
    return evidence(place, log, **{"flush_size": 10, **given}).results()


def deep(place: Place, log: FunctionLog | None = None, **given: Any) -> list[PartitionResult]:
    log = log or FunctionLog(partitions=2)
    given = {"flush_size": 10, **given}
    sink = load_sink(manifest(place.bucket, place.endpoint, **given))
    found = evidence(place, log, **given)
    world = CompareContext(
        s3=place.settings, admin=FileGroup(log, place.folder / "group.json"), engine=FunctionEngine(log)
    )
    return compare(found, found.results(), world, sink.spec.errors)


def wrong(verdicts: list[PartitionResult]) -> list[tuple[str, str, int]]:
    return [(str(v.topic_partition), finding.type, finding.offset) for v in verdicts for finding in v.findings]


def key_of(place: Place, partition: int, first: int) -> str:
    (key,) = (key for key in place.bodies() if f"+{partition}+{first:010d}." in key)
    return key


def take_snapshot(place: Place) -> LedgerState:
    ledger = Ledger(place.s3, ROOT, "test")
    return ledger.snapshot(ledger.load())


def rewrite_published(place: Place, change: Callable[[AuditEntry], AuditEntry | None]) -> None:
    """Changes lines of the published list (None: drops them), as a careless hand would."""
    for listed in list(place.s3.list(f"{ROOT}published/")):
        lines = [
            msgspec.json.decode(line, type=AuditEntry)
            for line in gzip.decompress(place.s3.get(listed.key)).splitlines()
        ]
        kept = [changed for line in lines if (changed := change(line)) is not None]
        place.s3.put(listed.key, gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in kept)))


Tamper = Callable[[Place, str, Callable[[bytes], bytes]], None]


@pytest.fixture
def tamper(s3: S3Server) -> Tamper:
    """Changes an object's bytes behind the store's back: its ETag and checksum stay what they were."""

    def change_file(place: Place, key: str, change: Callable[[bytes], bytes]) -> None:
        (path,) = s3.directory.rglob(f"{place.bucket}/{key}")
        path.write_bytes(change(path.read_bytes()))

    return change_file


# -- right ------------------------------------------------------------------------------------------------------------


def test_what_a_sink_wrote_is_right(written: Place) -> None:
    verdicts = shallow(written)
    assert wrong(verdicts) == []
    assert [(v.start, v.committed, v.end, v.lag, v.objects, v.records, v.gaps) for v in verdicts] == [
        (0, 100, 100, 0, 10, 100, 0)
    ] * 2
    assert sum(v.bytes for v in verdicts) == sum(map(len, written.bodies().values()))


def test_what_is_open_is_not_proved_and_not_wrong(place: Place) -> None:
    log = FunctionLog(records=25)
    place.run(log, LEFT_OPEN, flush_size=10)
    (verdict,) = shallow(place, log)
    assert verdict.findings == ()
    assert (verdict.committed, verdict.next, verdict.pending_records, verdict.lag) == (20, 25, 5, 5)
    assert place.litter()


def test_the_snapshots_and_the_records_since_are_one_list(place: Place) -> None:
    for records in (30, 60, 90):
        place.run(FunctionLog(records=records), CAUGHT_UP, flush_size=10)
        take_snapshot(place)
    log = FunctionLog(records=100)
    place.run(log, CAUGHT_UP, flush_size=10)
    (verdict,) = deep(place, log)
    assert (verdict.findings, verdict.objects, verdict.records) == ((), 10, 100)


def test_offsets_that_hold_nothing_are_holes(place: Place) -> None:
    log = FunctionLog(holes=frozenset({0, 13, 14, 99}), paths=3)
    place.run(log, CAUGHT_UP, flush_size=10, paths=True)
    (verdict,) = deep(place, log, paths=True)
    assert (verdict.findings, verdict.records, verdict.gaps, verdict.committed) == ((), 96, 4, 100)


def test_a_lost_commit_is_told_and_right(written: Place) -> None:
    written.set_group({"log-0": 40})
    first, second = shallow(written)
    assert (first.findings, first.committed) == ((), 100)
    assert any("the consumer group's offset is 40 but should be" in note for note in first.notes)
    assert any("the consumer group has no committed offset" in note for note in second.notes)


def test_other_files_beside_the_objects_are_foreign(written: Place) -> None:
    written.put("topics/log/README.txt", b"?")
    written.put("topics/log/partition=0/log+0+0000000010.csv", b"?")
    found = evidence(written, FunctionLog(partitions=2), flush_size=10)
    assert found.foreign == 2
    assert wrong(found.results()) == []


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
def test_an_object_that_readers_take_for_one_of_ours_is_unknown(written: Place, name: str) -> None:
    written.put(f"topics/log/{name}", b"other bytes")
    (found,) = [finding for v in shallow(written) for finding in v.findings]
    assert (found.type, found.offset, found.key) == (FindingType.UNTRACKED_OBJECT, 10, f"topics/log/{name}")


@pytest.mark.parametrize("partition", [-1, 2, 4711, 99_999_999_999])
def test_an_object_of_a_partition_that_the_topic_does_not_have_is_unknown(written: Place, partition: int) -> None:
    written.put(f"topics/log/partition={partition}/log+{partition}+0000000010.json", b"?")
    assert wrong(shallow(written)) == [(f"log-{partition}", FindingType.UNTRACKED_OBJECT, 10)]
    assert wrong(deep(written)) == [(f"log-{partition}", FindingType.UNTRACKED_OBJECT, 10)]


@pytest.mark.parametrize("name", ["anything", "copy of log+0+0000000010.json", "partition=0/log+0+0000000010.json.bak"])
def test_a_copy_is_known_by_its_content_whatever_its_name(written: Place, name: str) -> None:
    written.put(f"topics/log/{name}", written.s3.get(SECOND_KEY))
    (found,) = [finding for v in shallow(written) for finding in v.findings]
    assert (found.type, found.offset, found.key) == (FindingType.UNTRACKED_OBJECT, 10, f"topics/log/{name}")
    assert found.message.startswith(f"a copy of {SECOND_KEY}")


@pytest.mark.parametrize("name", ["_old/log+0+10.json", ".log+0+10.json.swp", "_temporary/0/part-0.json"])
def test_names_that_readers_pass_over_are_foreign(written: Place, name: str) -> None:
    written.put(f"topics/log/{name}", written.s3.get(SECOND_KEY))
    found = evidence(written, FunctionLog(partitions=2), flush_size=10)
    assert (found.foreign, wrong(found.results())) == (1, [])


def test_objects_of_another_sink_of_the_topic_with_another_extension_are_a_note(written: Place) -> None:
    log = FunctionLog(partitions=2)
    for file in written.folder.glob("group.*"):  # the other sink has a group of its own
        file.unlink()
    written.run(log, CAUGHT_UP, flush_size=10, compression="Gzip", name="second")
    found = evidence(written, log, flush_size=10)
    assert wrong(found.results()) == []
    assert found.foreign == 0
    assert "20 objects have an extension that another sink has claimed for the same topic" in found.notes


def test_objects_in_front_of_the_sinks_start_are_a_note_in_whatever_form(place: Place) -> None:
    log = FunctionLog()
    place.set_group({"log-0": 50})
    for name in ("log+0+0000000040.json", "log+0+30.json", "log+0+0000000020.json.gz"):
        place.put(f"topics/log/partition=0/{name}", b"of a connector")
    place.run(log, CAUGHT_UP, flush_size=10)
    (verdict,) = shallow(place, log)
    assert verdict.findings == ()
    assert "3 objects begin before the sink's start offset 50: it did not write them" in verdict.notes


def test_an_object_of_an_unknown_partition_that_is_older_than_the_sink_is_a_note(place: Place) -> None:
    log = FunctionLog()
    place.put("topics/log/partition=7/log+7+0000000010.json", b"of a connector")
    begun = int(time.time())
    wait_until(lambda: int(time.time()) > begun, "the store's next second", seconds=5)
    place.run(log, CAUGHT_UP, flush_size=10)
    found = evidence(place, log, flush_size=10)
    assert wrong(found.results()) == []
    assert "1 objects older than the ledger are of partitions that it does not contain" in found.notes


def test_objects_of_former_settings_are_known(place: Place) -> None:
    place.run(FunctionLog(records=50), CAUGHT_UP, flush_size=10)
    log = FunctionLog(records=100)
    given = {"compression": "Gzip", "flush_size": 15}
    place.run(log, CAUGHT_UP, **given)
    (verdict,) = deep(place, log, **given)
    assert (verdict.findings, verdict.records) == ((), 100)
    place.put("topics/log/partition=0/log+0+0000000042.json", b"?")
    (verdict,) = shallow(place, log, **given)
    assert wrong([verdict]) == [("log-0", FindingType.UNTRACKED_OBJECT, 42)]


def test_a_sink_that_goes_on_meanwhile_is_right(written: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it publishes between the reading of the ledger and of the bucket is not unknown."""
    log = FunctionLog(partitions=2, records=150)
    listed = Ledger.published
    runs = iter([lambda: written.run(log, CAUGHT_UP, flush_size=10)])

    def published(ledger: Ledger, state: LedgerState) -> list[AuditEntry]:
        lines = listed(ledger, state)
        next(runs, lambda: None)()
        return lines

    monkeypatch.setattr(Ledger, "published", published)
    assert wrong(shallow(written, log)) == []


def test_a_topic_that_was_made_anew_is_not_asked(written: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = FileGroup.topics
    monkeypatch.setattr(
        FileGroup,
        "topics",
        lambda *args, **named: {name: info._replace(id="another") for name, info in topics(*args, **named).items()},
    )
    found = evidence(written, FunctionLog(partitions=2), flush_size=10)
    assert found.notes == ("topic log was deleted and created again: the objects are those of the deleted topic",)
    assert [(v.findings, v.end, v.objects) for v in found.results()] == [((), None, 10)] * 2


# -- wrong ------------------------------------------------------------------------------------------------------------


def test_an_object_that_is_gone_is_told(written: Place) -> None:
    written.s3.delete([key_of(written, 1, 30)])
    assert wrong(shallow(written)) == [("log-1", FindingType.OBJECT_MISSING, 30)]


def test_other_bytes_of_the_same_size_are_told(written: Place) -> None:
    key = key_of(written, 0, 50)
    written.put(key, written.body(key).replace(b"50", b"51"))
    assert wrong(shallow(written)) == [("log-0", FindingType.OBJECT_MISMATCH, 50)]


def test_bytes_of_another_size_are_told(written: Place) -> None:
    written.put(key_of(written, 0, 50), b"{}\n")
    assert wrong(shallow(written)) == [("log-0", FindingType.OBJECT_MISMATCH, 50)]


def test_a_copy_with_the_same_bytes_is_right(written: Place) -> None:
    """Its ETag is another one: the checksum of the whole object proves it."""
    key = key_of(written, 0, 50)
    written.put(key, written.body(key))
    assert wrong(shallow(written)) == []


def test_an_object_that_overlaps_others_is_told(written: Place) -> None:
    written.put("topics/log/partition=0/log+0+0000000055.json", written.body(key_of(written, 0, 50)))
    assert wrong(shallow(written)) == [("log-0", FindingType.UNTRACKED_OBJECT, 55)]


def test_an_object_line_that_is_gone_is_told(written: Place) -> None:
    take_snapshot(written)
    key = key_of(written, 0, 20)
    rewrite_published(written, lambda line: None if line.object and line.object.key == key else line)
    assert wrong(shallow(written)) == [
        ("log-0", FindingType.OFFSETS_MISSING, 20),
        ("log-0", FindingType.UNTRACKED_OBJECT, 20),
    ]


def test_a_rotation_line_that_is_gone_is_told(written: Place) -> None:
    take_snapshot(written)
    rewrite_published(
        written,
        lambda line: None if line.rotation and line.rotation.partition == 0 and line.rotation.start == 0 else line,
    )
    assert wrong(shallow(written)) == [("log-0", FindingType.OFFSETS_MISSING, 0)]


def test_a_published_file_that_is_gone_is_told(written: Place) -> None:
    take_snapshot(written)
    written.s3.delete([listed.key for listed in written.s3.list(f"{ROOT}published/")])
    with pytest.raises(ConfigurationError, match="published log"):
        shallow(written)


def test_a_group_that_is_ahead_is_told(written: Place) -> None:
    written.set_group({"log-0": 101, "log-1": 100})
    assert wrong(shallow(written)) == [("log-0", FindingType.COMMITTED_OFFSET_AHEAD, 100)]


def test_a_log_that_ends_too_early_is_told(written: Place) -> None:
    assert wrong(shallow(written, FunctionLog(partitions=2, records=70))) == [
        ("log-0", FindingType.LOG_TRUNCATED, 70),
        ("log-1", FindingType.LOG_TRUNCATED, 70),
    ]


def test_a_sink_without_a_ledger_is_not_proved(place: Place) -> None:
    with pytest.raises(ConfigurationError, match="there is no ledger"):
        shallow(place)


# -- deep -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flush_size", [2, 3])
def test_paths_that_take_turns_are_right_with_each_object_closed_by_itself(place: Place, flush_size: int) -> None:
    """Where the object of one path is closed, that of another is open, though its records are uploaded later."""
    given: dict[str, Any] = {"flush_size": flush_size, "paths": True, "scope": "Object"}
    log = FunctionLog(records=8, paths=2)
    place.run(log, CAUGHT_UP, **given)
    assert wrong(shallow(place, log, **given)) == []
    assert [each.records for each in shallow(place, log, **given)] == [8]


@pytest.mark.parametrize("compression", ["None", "Gzip"])
@pytest.mark.parametrize("scope", ["Partition", "Object"])
def test_what_a_sink_wrote_is_what_kafka_holds(place: Place, compression: str, scope: str) -> None:
    log = FunctionLog(partitions=2, paths=3)
    given = {"compression": compression, "scope": scope, "paths": True}
    place.run(log, CAUGHT_UP, flush_size=10, max_records=17, **given)
    verdicts = deep(place, log, **given)
    assert wrong(verdicts) == []
    assert [v.compared.records for v in verdicts if v.compared] == [100, 100]
    assert all(v.compared and v.compared.objects == v.objects for v in verdicts)


def test_paths_of_the_clock_are_compared_under_the_clocks_they_saw(place: Place) -> None:
    """Rounds of 10 records, an hour apart, in one object each hour that holds less than flushSize."""
    hours = iter(range(1_700_000_000_000, 2_000_000_000_000, 3_600_000))
    log = FunctionLog(records=45)
    spec = {"partitioner": {"type": "Hourly", "timezone": "UTC"}}
    given = {"flush_size": 100, "max_records": 10, "spec": spec}
    place.run(log, CAUGHT_UP, clock=lambda: next(hours), **given)
    assert len(place.keys()) > 3
    (verdict,) = deep(place, log, **given)
    assert verdict.findings == ()
    assert verdict.compared is not None
    assert verdict.compared.records == 45


@pytest.mark.parametrize("compression", ["None", "Gzip"])
def test_bytes_that_changed_behind_the_stores_back_are_told_by_their_record(
    place: Place, tamper: Tamper, compression: str
) -> None:
    log = FunctionLog()
    place.run(log, CAUGHT_UP, flush_size=10, compression=compression)
    key = key_of(place, 0, 40)

    def changed(body: bytes) -> bytes:
        if compression == "None":
            return body.replace(b'"offset": 46', b'"offset": 64')
        return gzip.compress(gzip.decompress(body).replace(b'"offset": 46', b'"offset": 64'))

    tamper(place, key, changed)
    if compression == "None":
        assert wrong(shallow(place, log)) == []
    found = wrong(deep(place, log, compression=compression))
    assert ("log-0", FindingType.RECORD_MISMATCH, 46) in found


def test_an_object_that_was_cut_short_behind_the_stores_back_is_told(written: Place, tamper: Tamper) -> None:
    tamper(written, key_of(written, 0, 40), lambda body: b"".join(body.splitlines(keepends=True)[:7]))
    assert ("log-0", FindingType.RECORD_MISMATCH, 47) in wrong(deep(written))


def test_damaged_gzip_is_told(place: Place, tamper: Tamper) -> None:
    log = FunctionLog()
    place.run(log, CAUGHT_UP, flush_size=10, compression="Gzip")
    tamper(place, key_of(place, 0, 40), lambda body: body[:20] + bytes([body[20] ^ 255]) + body[21:])
    (tp, what, offset) = wrong(deep(place, log, compression="Gzip"))[0]
    assert (tp, what) == ("log-0", FindingType.RECORD_MISMATCH)
    assert 40 <= offset < 50


def test_what_kafka_no_longer_holds_is_counted_and_not_wrong(written: Place) -> None:
    log = FunctionLog(partitions=2, starts_at=35)
    verdicts = deep(written, log)
    assert wrong(verdicts) == []
    assert [(v.compared.objects, v.compared.expired_objects) for v in verdicts if v.compared] == [(6, 4)] * 2


def test_records_that_compaction_took_are_counted_and_not_wrong(written: Place) -> None:
    verdicts = deep(written, FunctionLog(partitions=2, holes=frozenset({33, 34, 71})))
    assert wrong(verdicts) == []
    assert [(v.compared.objects, v.compared.expired_objects) for v in verdicts if v.compared] == [(8, 2)] * 2


def test_a_record_that_the_lists_call_a_hole_is_told(written: Place) -> None:
    """The lists add up all the same: only Kafka knows that there is a record."""
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
    assert wrong(shallow(written)) == []
    found = wrong(deep(written))
    assert ("log-0", FindingType.OFFSETS_MISSING, 59) in found
    assert all(where == "log-0" for where, _, _ in found)


def test_refused_records_are_in_no_object_and_not_wrong(place: Place) -> None:
    log = BadLog(records=50)
    given = {"errors": {"tolerance": "All"}}
    place.run(log, CAUGHT_UP, flush_size=10, **given)
    (verdict,) = deep(place, log, **given)
    assert verdict.findings == ()
    assert verdict.compared is not None
    assert (verdict.records, verdict.gaps, verdict.compared.skipped_records) == (45, 5, 5)


class BadLog(FunctionLog):
    """Every tenth value is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return b"{" if offset % 10 == 3 else super().value(partition, offset)
