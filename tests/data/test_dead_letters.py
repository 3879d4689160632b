"""Dead-letter objects: rejected records as JSON lines, each exactly once (`errors.deadLetters.prefix`)."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.errors import ExistingObjects, LedgerLost, OwnershipConflict
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.verify.results import FindingType
from tests.support.crash_points import crash_before_publishing
from tests.support.sink_fixture import SinkFixture, TickingClock
from tests.support.synthetic_log import CLOCK_MS, HEADERS, SyntheticLog
from tests.support.verify_sink import deep

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
ERRORS = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}


class ThirdsLog(SyntheticLog):
    """A log of which every third record is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return b"{%d" % offset if offset % 3 == 2 else super().value(partition, offset)

    def batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[pa.RecordBatch]:
        for batch in super().batches(tp, start, end):
            offsets = batch.column("offset").to_pylist()
            headers = [[{"key": "h", "value": b"v"}] if offset % 2 else None for offset in offsets]
            yield batch.append_column("key", pa.array([b"k%d" % offset for offset in offsets])).append_column(
                "headers", pa.array(headers, HEADERS)
            )


def below(sink_fixture: SinkFixture, directory: str) -> list[str]:
    found = sink_fixture.keys()
    return [key for key in found if key.startswith(f"{directory}/")]


def dead_letters(sink_fixture: SinkFixture) -> dict[str, list[dict[str, Any]]]:
    """The lines of each dead-letter object."""
    return {
        key: [json.loads(line) for line in sink_fixture.content(key).splitlines()]
        for key in below(sink_fixture, "rejected")
    }


def rejected_offsets(sink_fixture: SinkFixture) -> list[int]:
    return [line["offset"] for lines in dead_letters(sink_fixture).values() for line in lines]


def accepted_offsets(sink_fixture: SinkFixture) -> list[int]:
    return [offset for key in below(sink_fixture, "topics") for offset in sink_fixture.offsets(key)]


def test_a_rejected_record_is_a_line_with_the_record_and_the_reason(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=6), ALL, flush_size=10, errors=ERRORS)
    first, second = dead_letters(sink_fixture)["rejected/log/partition=0/log+0+0000000002.json"]
    assert first.pop("message").startswith("the value is not JSON")
    assert first == {
        "key": "azI=",
        "headers": [],
        "timestamp": CLOCK_MS + 120_000,
        "topic": "log",
        "partition": 0,
        "offset": 2,
        "value": "ezI=",
        "reason": "InvalidRecord",
        "rejectedAt": CLOCK_MS,
    }
    assert (second["headers"], b64decode(second["value"])) == ([{"name": "h", "value": "dg=="}], b"{5")


def test_dead_letter_objects_close_with_the_other_objects(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=40), ALL, flush_size=10, errors=ERRORS)
    assert {
        key.rpartition("+")[2]: [line["offset"] for line in lines] for key, lines in dead_letters(sink_fixture).items()
    } == {
        "0000000002.json": [2, 5, 8, 11],
        "0000000014.json": [14, 17, 20, 23, 26],
        "0000000029.json": [29, 32, 35, 38],
    }


@pytest.mark.parametrize("scope", ["Partition", "Object"])
@pytest.mark.parametrize("max_records", [1, 4, 11, 1000])
def test_objects_dead_letters_and_gaps_add_up_over_rounds_and_restarts(
    sink_fixture: SinkFixture, scope: str, max_records: int
) -> None:
    log = ThirdsLog(records=60, paths=3, gaps=frozenset({6, 7, 30}))
    given: dict[str, Any] = {"errors": ERRORS, "paths": True, "scope": scope, "max_records": max_records}
    clock = TickingClock()
    for end in (3, 17, 41):
        sink_fixture.run(replace(log, records=end), DONE, flush_size=7, clock=clock, **given)
    sink_fixture.run(log, ALL, flush_size=7, clock=clock, **given)
    assert sorted(rejected_offsets(sink_fixture)) == [o for o in range(2, 60, 3) if o not in log.gaps]
    assert sorted(accepted_offsets(sink_fixture)) == [o for o in range(60) if o % 3 != 2 and o not in log.gaps]
    (verdict,) = sink_fixture.verify(log, **given)
    assert (verdict.findings, verdict.gaps, verdict.committed) == ((), 3, 60)
    assert sink_fixture.orphans() == []


ROUNDS: dict[str, Any] = {"errors": ERRORS, "flush_size": 10, "max_records": 7}


@pytest.fixture
def undisturbed(sink_fixture: SinkFixture) -> dict[str, bytes]:
    """The objects of a run without faults."""
    other = sink_fixture.sibling()
    other.run(ThirdsLog(records=40), DONE, **ROUNDS)
    return other.contents()


def test_lost_uploads_of_closed_objects_are_rebuilt_with_the_same_bytes(
    sink_fixture: SinkFixture, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_before_publishing(sink_fixture, monkeypatch, ThirdsLog(records=40), **ROUNDS)
    sink_fixture.abort_uploads_of("")
    sink_fixture.run(ThirdsLog(records=40), DONE, **ROUNDS)
    assert sink_fixture.contents() == undisturbed


def test_lost_remainders_of_dead_letters_are_rebuilt_with_the_clocks_of_their_rounds(sink_fixture: SinkFixture) -> None:
    """The rounds have different clocks, which are in the lines."""
    other, clock, again = sink_fixture.sibling(), TickingClock(), TickingClock()
    for end in (6, 11, 40):
        other.run(ThirdsLog(records=end), ALL if end == 40 else DONE, clock=clock, **ROUNDS)
        sink_fixture.run(ThirdsLog(records=end), ALL if end == 40 else DONE, clock=again, **ROUNDS)
        sink_fixture.delete_staging()
    clocks = {line["rejectedAt"] for lines in dead_letters(other).values() for line in lines}
    assert len(clocks) > 3
    for key, lines in dead_letters(other).items():
        assert [strip(line) for line in dead_letters(sink_fixture)[key]] == [strip(line) for line in lines]
    (verdict,) = deep(sink_fixture, ThirdsLog(records=40), **ROUNDS)
    assert verdict.findings == ()


def strip(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "rejectedAt"}


def test_verify_compares_dead_letters_with_kafka_and_counts_them(sink_fixture: SinkFixture) -> None:
    log = ThirdsLog(records=40, gaps=frozenset({4, 5}))
    sink_fixture.run(log, ALL, **ROUNDS)
    (verdict,) = deep(sink_fixture, log, **ROUNDS)
    assert verdict.findings == ()
    assert (verdict.records, verdict.dead_letters, verdict.gaps) == (26, 12, 2)
    assert verdict.compared is not None
    assert verdict.compared.objects == verdict.objects
    assert verdict.dead_letter_objects == len(dead_letters(sink_fixture)) < verdict.objects


def test_verify_finds_a_changed_dead_letter(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=40), ALL, **ROUNDS)
    key, *_ = dead_letters(sink_fixture)
    sink_fixture.put(key, sink_fixture.content(key).replace(b'"offset":5', b'"offset":6'))
    (verdict,) = sink_fixture.verify(ThirdsLog(records=40), **ROUNDS)
    assert [(finding.type, finding.key) for finding in verdict.findings] == [(FindingType.OBJECT_MISMATCH, key)]


def test_verify_finds_a_deleted_and_an_unlisted_dead_letter_object(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=40), ALL, **ROUNDS)
    key, *_ = dead_letters(sink_fixture)
    other = key.replace("0000000002", "0000000003")
    sink_fixture.put(other, sink_fixture.content(key)[:-1])
    sink_fixture.s3.delete([key])
    (verdict,) = sink_fixture.verify(ThirdsLog(records=40), **ROUNDS)
    assert [(finding.type, finding.key) for finding in verdict.findings] == [
        (FindingType.OBJECT_MISSING, key),
        (FindingType.UNTRACKED_OBJECT, other),
    ]


def test_records_that_are_all_rejected_do_not_hold_back_the_committed_offset(sink_fixture: SinkFixture) -> None:
    class Nothing(SyntheticLog):
        def value(self, partition: int, offset: int) -> bytes:
            return b"{"

    sink_fixture.run(Nothing(records=20), DONE, **ROUNDS)
    assert sink_fixture.group() == {"log-0": 20}
    assert rejected_offsets(sink_fixture) == [*range(20)]


def test_a_changed_prefix_closes_the_open_objects_first(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=9), DONE, **ROUNDS)
    assert sink_fixture.keys() == []
    other = {"tolerance": "All", "deadLetters": {"prefix": "elsewhere"}}
    sink_fixture.run(ThirdsLog(records=20), ALL, **{**ROUNDS, "errors": other})
    assert rejected_offsets(sink_fixture) == [2, 5, 8]
    offsets = [offset for key in below(sink_fixture, "elsewhere") for offset in sink_fixture.offsets(key)]
    assert offsets == [11, 14, 17]


def test_without_a_prefix_the_open_dead_letter_object_is_closed_and_later_records_are_dropped(
    sink_fixture: SinkFixture,
) -> None:
    sink_fixture.run(ThirdsLog(records=9), DONE, **ROUNDS)
    given = {**ROUNDS, "errors": {"tolerance": "All"}}
    sink_fixture.run(ThirdsLog(records=20), ALL, **given)
    assert rejected_offsets(sink_fixture) == [2, 5, 8]
    (verdict,) = deep(sink_fixture, ThirdsLog(records=20), **given)
    assert (verdict.findings, verdict.dead_letters, verdict.gaps) == ((), 3, 3)


def test_a_new_generation_has_dead_letters_of_its_own(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=20), ALL, **ROUNDS)
    sink_fixture.reset(ThirdsLog(records=20), "Earliest", on_existing="NewPrefix", **ROUNDS)
    sink_fixture.run(ThirdsLog(records=20), ALL, **ROUNDS)
    assert sorted(dead_letters(sink_fixture)) == sorted(
        f"rejected/{generation}log/partition=0/log+0+00000000{first}.json"
        for generation in ("", "generation=2/")
        for first in ("02", "14")
    )
    assert [finding for each in sink_fixture.verify(ThirdsLog(records=20), **ROUNDS) for finding in each.findings] == []


def test_a_reset_is_rejected_if_a_dead_letter_would_be_written_twice(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=6), ALL, **ROUNDS)
    with pytest.raises(ExistingObjects, match="1 object holds"):
        sink_fixture.reset(ThirdsLog(records=6), "Offsets", at={0: 5}, **ROUNDS)


def test_a_lost_ledger_is_detected_by_a_dead_letter_object(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=6), ALL, **ROUNDS)
    doomed = [
        each.key for each in sink_fixture.s3.list("") if "/ledger/" in each.key or each.key.startswith("topics/log/")
    ]
    sink_fixture.s3.delete(doomed)
    sink_fixture.set_group({"log-0": 1})
    with pytest.raises(LedgerLost, match=r"rejected/log/partition=0/log\+0\+0000000002\.json"):
        sink_fixture.run(ThirdsLog(records=6), ALL, **ROUNDS)


def test_two_sinks_with_one_prefix_for_a_topic_conflict(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(ThirdsLog(records=6), ALL, **ROUNDS)
    spec = {"sinkId": "other", "kafka": {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "other"}}
    s3 = {
        "bucket": sink_fixture.bucket,
        "endpoint": sink_fixture.endpoint,
        "topicsDir": "elsewhere",
        "region": "us-east-1",
    }
    other = replace(sink_fixture, folder=sink_fixture.sibling().folder)
    with pytest.raises(OwnershipConflict, match=f"topic log as .json below s3://{sink_fixture.bucket}/rejected"):
        other.run(ThirdsLog(records=6), ALL, **ROUNDS, name="other", spec={**spec, "s3": s3})


class NullsLog(ThirdsLog):
    """The same with null values at every fourth offset."""

    def batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[pa.RecordBatch]:
        for batch in super().batches(tp, start, end):
            offsets = batch.column("offset").to_pylist()
            values = batch.column("value").to_pylist()
            nulls = [None if offset % 4 == 1 else value for offset, value in zip(offsets, values, strict=True)]
            at = batch.schema.get_field_index("value")
            yield batch.set_column(at, "value", pa.array(nulls, pa.binary()))


IGNORED = {**ERRORS, "onNullValue": "Ignore"}
KEPT = {**IGNORED, "deadLetters": {"prefix": "rejected", "nullValues": True}}


def test_null_values_that_are_ignored_are_dead_letters_with_null_values(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(NullsLog(records=12), ALL, flush_size=20, errors=KEPT)
    lines = [line for each in dead_letters(sink_fixture).values() for line in each]
    assert [(line["offset"], line["reason"], line["value"] is None) for line in lines] == [
        (1, "NullValue", True),
        (2, "InvalidRecord", False),
        (5, "NullValue", True),
        (8, "InvalidRecord", False),
        (9, "NullValue", True),
        (11, "InvalidRecord", False),
    ]
    assert sorted(accepted_offsets(sink_fixture)) == [0, 3, 4, 6, 7, 10]


def test_kept_null_values_are_no_gaps_for_verify(sink_fixture: SinkFixture) -> None:
    log = NullsLog(records=12)
    sink_fixture.run(log, ALL, flush_size=20, errors=KEPT)
    (verdict,) = deep(sink_fixture, log, flush_size=20, errors=KEPT)
    assert verdict.findings == ()
    assert (verdict.records, verdict.dead_letters, verdict.gaps) == (6, 6, 0)


def test_an_object_with_kept_null_values_is_rebuilt_with_them(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = NullsLog(records=12)
    crash_before_publishing(sink_fixture, monkeypatch, log, flush_size=5, errors=KEPT)
    sink_fixture.abort_uploads_of("")
    sink_fixture.run(log, ALL, flush_size=5, errors=KEPT)
    assert sorted(rejected_offsets(sink_fixture)) == [1, 2, 5, 8, 9, 11]
    assert sorted(accepted_offsets(sink_fixture)) == [0, 3, 4, 6, 7, 10]
