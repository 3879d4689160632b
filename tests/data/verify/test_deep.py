"""`s3sink verify --deep`: objects are compared with the records in Kafka."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
import pytest

from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.store import AuditEntry
from sink_job.verify.results import FindingType
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import (
    CAUGHT_UP,
    Tamper,
    deep,
    findings,
    key_of,
    rewrite_published,
    shallow,
    take_snapshot,
)

pytestmark = pytest.mark.data


@pytest.mark.parametrize("flush_size", [2, 3])
def test_alternating_paths_pass_with_scope_object(sink_fixture: SinkFixture, flush_size: int) -> None:
    """The object of one path is closed while another path's object is open."""
    given: dict[str, Any] = {"flush_size": flush_size, "paths": True, "scope": "Object"}
    log = SyntheticLog(records=8, paths=2)
    sink_fixture.run(log, CAUGHT_UP, **given)
    assert findings(shallow(sink_fixture, log, **given)) == []
    assert [each.records for each in shallow(sink_fixture, log, **given)] == [8]


@pytest.mark.parametrize("compression", ["None", "Gzip", "Zstd"])
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


@pytest.mark.parametrize("compression", ["Gzip", "Zstd"])
def test_damaged_compressed_content_is_reported(sink_fixture: SinkFixture, tamper: Tamper, compression: str) -> None:
    log = SyntheticLog()
    sink_fixture.run(log, CAUGHT_UP, flush_size=10, compression=compression)
    tamper(sink_fixture, key_of(sink_fixture, 0, 40), lambda body: body[:20] + bytes([body[20] ^ 255]) + body[21:])
    (tp, what, offset) = findings(deep(sink_fixture, log, compression=compression))[0]
    assert (tp, what) == ("log-0", FindingType.RECORD_MISMATCH)
    assert 40 <= offset < 50


def test_records_that_kafka_no_longer_holds_are_counted_and_are_no_finding(written: SinkFixture) -> None:
    log = SyntheticLog(partitions=2, starts_at=35)
    results = deep(written, log)
    assert findings(results) == []
    assert [(v.compared.objects, v.compared.kafka_gone_objects) for v in results if v.compared] == [(6, 4)] * 2


def test_compacted_records_are_counted_and_are_no_finding(written: SinkFixture) -> None:
    results = deep(written, SyntheticLog(partitions=2, gaps=frozenset({33, 34, 71})))
    assert findings(results) == []
    assert [(v.compared.objects, v.compared.kafka_gone_objects) for v in results if v.compared] == [(8, 2)] * 2


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
