"""The first start after a connector: where it starts, and what it accepts (P5)."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError, LedgerLost
from sink_job.engine.kafka_admin import GroupMember
from sink_job.formats.compression import zstd
from sink_job.ledger.store import Ledger
from sink_job.maintenance.position.cases import Case
from sink_job.maintenance.position.finder import ConnectorPosition
from sink_job.verify.results import FindingType
from tests.support.previous_objects import (
    LOG,
    accepted,
    expect_each_record_once,
    key_of,
    offsets_in,
    position,
    rows,
    run,
    two_objects,
    write,
)
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog
from tests.support.verify_sink import ROOT, deep, findings

pytestmark = pytest.mark.data


# -- the cases -------------------------------------------------------------------------------------------------------


def test_a_sink_starts_at_the_committed_offset_if_no_object_is_beyond_it(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10), (10, 20))
    sink_fixture.set_group({"log-0": 20})
    found = position(sink_fixture, LOG)
    assert [(p.case, p.start, p.after_objects, p.accepted) for p in found.partitions] == [(Case.COMMITTED, 20, 20, ())]
    run(sink_fixture, found.previous_writer())
    expect_each_record_once(sink_fixture)


def test_objects_beyond_the_offset_with_kafkas_records_are_accepted_and_not_copied_again(
    sink_fixture: SinkFixture,
) -> None:
    write(sink_fixture, LOG, (0, 10), (10, 20), (20, 27))
    sink_fixture.set_group({"log-0": 10})
    before = sink_fixture.etags()
    found = position(sink_fixture, LOG)
    assert [(p.case, p.start, p.after_objects) for p in found.partitions] == [(Case.ACCEPTED, 27, 27)]
    run(sink_fixture, found.previous_writer())
    expect_each_record_once(sink_fixture)
    assert sink_fixture.etags().items() >= before.items()
    (claim, *_) = Ledger(sink_fixture.s3, ROOT, "test").claims(Ledger(sink_fixture.s3, ROOT, "test").load())
    assert claim.previous is not None
    assert (claim.previous.group, claim.previous.comparison) == ("group", "values of JSON")
    assert [(o.key, o.first, o.last, o.records) for o in claim.previous.objects] == [
        (key_of(10), 10, 19, 10),
        (key_of(20), 20, 26, 7),
    ]
    assert sink_fixture.group() == {"log-0": 45}


def test_verify_reports_accepted_objects_as_of_the_previous_writer(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10), (10, 20), (20, 27))
    sink_fixture.set_group({"log-0": 10})
    run(sink_fixture, accepted(sink_fixture, LOG))
    (result,) = deep(sink_fixture, LOG)
    assert result.start == 27
    assert result.notes == (
        "1 objects begin before the sink's start offset 27: it did not write them",
        "2 objects with offsets 10 to 26 are of the previous writer: their 17 records were equal to Kafka's at the "
        "first start",
    )


def test_a_committed_offset_inside_of_an_object_moves_to_its_end(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10), (10, 20))
    sink_fixture.set_group({"log-0": 13})
    run(sink_fixture, accepted(sink_fixture, LOG))
    expect_each_record_once(sink_fixture)


def test_offsets_that_kafka_has_forgotten_are_taken_from_the_objects_on_request(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10), (10, 18))
    found = position(sink_fixture, LOG)
    assert [(p.case, p.start, p.after_objects) for p in found.partitions] == [(Case.FORGOTTEN, None, 18)]
    with pytest.raises(LedgerLost, match="--start-at-objects"):
        found.previous_writer()
    run(sink_fixture, position(sink_fixture, LOG, start_at_objects=True).previous_writer())
    expect_each_record_once(sink_fixture)


def test_a_wrong_group_does_not_start_beside_the_running_connector(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10))
    admin = FileConsumerGroup(LOG, sink_fixture.folder / "group.json")
    admin.active = [GroupMember("connect-log", "connector-consumer-log-0", "log")]
    found = position(sink_fixture, LOG, admin, start_at_objects=True)
    assert [(p.case, p.start, p.connectors) for p in found.partitions] == [(Case.FORGOTTEN, None, ("connect-log",))]
    with pytest.raises(LedgerLost, match="groups connect-log"):
        found.previous_writer()
    sink_fixture.set_group({"log-0": 10})
    assert [p.case for p in position(sink_fixture, LOG, admin).partitions] == [Case.COMMITTED]


def test_a_topic_partition_without_offset_and_object_starts_as_the_manifest_says(sink_fixture: SinkFixture) -> None:
    run(sink_fixture, accepted(sink_fixture, LOG))
    expect_each_record_once(sink_fixture)


def test_each_topic_partition_has_its_own_case(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=30, partitions=3)
    write(sink_fixture, log, (0, 10), (10, 20))
    write(sink_fixture, log, (0, 10), partition=1)
    sink_fixture.set_group({"log-0": 10, "log-1": 10})
    found = position(sink_fixture, log)
    assert [p.case for p in found.partitions] == [Case.ACCEPTED, Case.COMMITTED, Case.NEW]
    run(sink_fixture, found.previous_writer(), log)
    assert sorted(offsets_in(sink_fixture)) == sorted([*range(30)] * 3)
    assert findings(deep(sink_fixture, log)) == []


def test_an_object_larger_than_the_first_range_is_read_to_its_end(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=400)
    write(sink_fixture, log, (0, 100), (100, 350))
    sink_fixture.set_group({"log-0": 100})
    run(sink_fixture, accepted(sink_fixture, log), log)
    expect_each_record_once(sink_fixture, log)


def test_offsets_without_a_record_are_no_difference(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=45, gaps=frozenset({10, 11, 19, 24, 25}))
    write(sink_fixture, log, (0, 10), (12, 20), (20, 24))
    sink_fixture.set_group({"log-0": 10})
    run(sink_fixture, accepted(sink_fixture, log), log)
    expect_each_record_once(sink_fixture, log)


@pytest.mark.parametrize("codec", ["Gzip", "Zstd"])
def test_compressed_objects_are_compared(sink_fixture: SinkFixture, codec: str) -> None:
    suffix, compressed = (".gz", gzip.compress) if codec == "Gzip" else (".zst", zstd.compress)
    log = replace(LOG, starts_at=10)
    sink_fixture.put(key_of(10) + suffix, compressed(rows(log, range(10, 20))))
    sink_fixture.set_group({"log-0": 10})
    spec = {"format": {"compression": {"codec": codec}}}
    assert [(p.case, p.start) for p in position(sink_fixture, log, spec=spec).partitions] == [(Case.ACCEPTED, 20)]
    sink_fixture.put(key_of(10) + suffix, compressed(rows(log, range(10, 20)))[:-9])
    assert [p.case for p in position(sink_fixture, log, spec=spec).partitions] == [Case.DIFFERENT]


@pytest.mark.parametrize(("end", "case"), [(b"", Case.ACCEPTED), (b"x", Case.DIFFERENT)])
def test_delimited_bytes_are_compared_byte_by_byte(sink_fixture: SinkFixture, end: bytes, case: Case) -> None:
    log = replace(LOG, starts_at=10)
    values = b"".join(log.value(0, offset) + b"|" for offset in range(10, 20))
    sink_fixture.put(key_of(10).replace(".json", ".bin"), values + end)
    sink_fixture.set_group({"log-0": 10})
    spec = {"format": {"converter": "Bytes", "output": "Bytes", "bytes": {"separator": "|"}}}
    found = position(sink_fixture, log, spec=spec)
    assert ([p.case for p in found.partitions], found.comparison) == ([case], "bytes")
    sink_fixture.put(key_of(10).replace(".json", ".bin"), values.replace(b"|", b"||", 1))
    assert [p.case for p in position(sink_fixture, log, spec=spec).partitions] == [Case.DIFFERENT]


def test_records_that_the_sink_leaves_out_are_expected_in_no_object(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=45, tombstones=frozenset({12, 20}), starts_at=10)
    write(sink_fixture, SyntheticLog(gaps=log.tombstones), (10, 20))
    sink_fixture.set_group({"log-0": 10})
    errors = {"tolerance": "All", "onNullValue": "Ignore"}
    assert [(p.case, p.start) for p in position(sink_fixture, log, errors=errors).partitions] == [(Case.ACCEPTED, 20)]


# -- records that are in no object -----------------------------------------------------------------------------------


def expect_uncovered(found: ConnectorPosition, offset: int, *words: str) -> None:
    assert [(p.case, p.start, p.uncovered) for p in found.partitions] == [(Case.AHEAD_OF_OBJECTS, None, offset)]
    assert all(each in found.partitions[0].message for each in words)
    assert found.exit_code == 7
    with pytest.raises(LedgerLost, match=r"log-0 \(AheadOfObjects\).*Correct the manifest, or set the group's offsets"):
        found.previous_writer()


def test_an_offset_behind_the_end_of_the_newest_object_rejects_the_start(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10))
    sink_fixture.set_group({"log-0": 18})
    found = position(sink_fixture, LOG)
    expect_uncovered(found, 10, "ends before offset 10: the record at offset 10 is in no object", "kafka.groupId")
    sink_fixture.set_group({"log-0": 10})  # the command of the dry run
    run(sink_fixture, accepted(sink_fixture, LOG))
    expect_each_record_once(sink_fixture)


def test_an_offset_far_behind_the_newest_object_is_found_in_a_longer_range(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=500, gaps=frozenset(range(10, 480)))
    write(sink_fixture, log, (0, 10))
    sink_fixture.set_group({"log-0": 480})
    assert [p.case for p in position(sink_fixture, log).partitions] == [Case.COMMITTED]
    sink_fixture.set_group({"log-0": 490})
    expect_uncovered(position(sink_fixture, log), 10, "the record at offset 480 is in no object")


def test_offsets_that_the_sink_does_not_write_may_lie_between_the_objects_and_the_offset(
    sink_fixture: SinkFixture,
) -> None:
    log = SyntheticLog(records=45, gaps=frozenset({10, 13}), tombstones=frozenset({11, 12}))
    write(sink_fixture, log, (0, 10))
    sink_fixture.set_group({"log-0": 14})
    errors = {"tolerance": "All", "onNullValue": "Ignore"}
    assert [(p.case, p.start) for p in position(sink_fixture, log, errors=errors).partitions] == [(Case.COMMITTED, 14)]
    sink_fixture.set_group({"log-0": 15})
    expect_uncovered(position(sink_fixture, log, errors=errors), 10, "the record at offset 14")


def test_records_that_a_filter_leaves_out_may_lie_between_the_objects_and_the_offset(sink_fixture: SinkFixture) -> None:
    log = replace(LOG, paths=2)
    sink_fixture.put(key_of(0), rows(log, range(0, 10, 2)))
    sink_fixture.set_group({"log-0": 10})
    spec = {"transforms": [{"type": "Filter", "when": {"field": "kind", "values": ["k1"]}}]}
    assert [p.case for p in position(sink_fixture, log, spec=spec).partitions] == [Case.COMMITTED]


def test_an_offset_without_any_object_rejects_the_start_if_kafka_has_records_before_it(
    sink_fixture: SinkFixture,
) -> None:
    sink_fixture.set_group({"log-0": 18})
    expect_uncovered(position(sink_fixture, LOG), 0, "the record at offset 0")
    assert [p.case for p in position(sink_fixture, replace(LOG, starts_at=18)).partitions] == [Case.COMMITTED]


def test_without_any_object_the_records_are_looked_for_with_every_partitioner(sink_fixture: SinkFixture) -> None:
    sink_fixture.set_group({"log-0": 18})
    expect_uncovered(position(sink_fixture, LOG, paths=True), 0)


def test_objects_behind_the_offset_do_not_hide_a_record_before_it(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10), (18, 25))
    sink_fixture.set_group({"log-0": 18})
    expect_uncovered(position(sink_fixture, LOG), 10)
    sink_fixture.s3.delete([key_of(0)])
    expect_uncovered(position(sink_fixture, LOG), 0)


def test_an_object_that_differs_has_at_most_as_many_records_as_its_rows(sink_fixture: SinkFixture) -> None:
    sink_fixture.put(key_of(0), rows(LOG, range(10)).replace(b'"offset":3', b'"offset":99'))
    sink_fixture.set_group({"log-0": 10})
    found = position(sink_fixture, LOG)
    assert [p.case for p in found.partitions] == [Case.COMMITTED]
    assert "Only the number of its records was checked" in found.partitions[0].message
    sink_fixture.set_group({"log-0": 11})
    (only,) = position(sink_fixture, LOG).partitions
    assert (only.case, only.uncovered) == (Case.AHEAD_OF_OBJECTS, None)
    assert "has 10 records, fewer than Kafka has up to offset 10" in only.message


def test_an_object_of_which_kafka_has_deleted_records_is_counted(sink_fixture: SinkFixture) -> None:
    log = replace(LOG, starts_at=5)
    write(sink_fixture, LOG, (0, 10))
    sink_fixture.set_group({"log-0": 10})
    assert [p.case for p in position(sink_fixture, log).partitions] == [Case.COMMITTED]
    sink_fixture.set_group({"log-0": 40})
    assert [p.case for p in position(sink_fixture, log).partitions] == [Case.AHEAD_OF_OBJECTS]


def test_a_record_between_older_objects_rejects_a_start_behind_the_newest_one(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 5), (10, 15))
    found = position(sink_fixture, LOG, start_at_objects=True)
    assert [(p.case, p.start, p.uncovered) for p in found.partitions] == [(Case.FORGOTTEN, None, 5)]
    assert "the record at offset 5 is in no object, though later ones are" in found.partitions[0].message
    compacted = SyntheticLog(records=45, gaps=frozenset(range(5, 10)))
    found = position(sink_fixture, compacted, start_at_objects=True)
    assert [(p.case, p.start) for p in found.partitions] == [(Case.AFTER_OBJECTS, 15)]
    found = position(sink_fixture, replace(LOG, starts_at=10), start_at_objects=True)
    assert [(p.case, p.start) for p in found.partitions] == [(Case.AFTER_OBJECTS, 15)]


def test_an_empty_object_at_the_offset_rejects_the_start_before_the_claim(sink_fixture: SinkFixture) -> None:
    tampered(sink_fixture, b"")
    found = position(sink_fixture, LOG)
    assert [(p.case, p.message) for p in found.partitions] == [(Case.DIFFERENT, f"{key_of(10)}: it has no record")]


def test_an_empty_object_before_the_offset_has_no_record_either(sink_fixture: SinkFixture) -> None:
    tampered(sink_fixture, b"")
    sink_fixture.set_group({"log-0": 20})
    (only,) = position(sink_fixture, LOG).partitions
    assert (only.case, "has 0 records" in only.message) == (Case.AHEAD_OF_OBJECTS, True)


def test_a_record_at_the_offset_behind_an_object_that_compaction_has_emptied_is_not_left_out(
    sink_fixture: SinkFixture,
) -> None:
    write(sink_fixture, LOG, (0, 5), (9, 15))
    sink_fixture.set_group({"log-0": 8})
    compacted = SyntheticLog(records=45, gaps=frozenset(range(8)))
    (only,) = position(sink_fixture, compacted).partitions
    assert (only.case, "the record at offset 8 is in no object before it" in only.message) == (Case.DIFFERENT, True)


def test_the_first_record_behind_a_deleted_offset_is_not_left_out(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 3), (6, 15))
    sink_fixture.set_group({"log-0": 3})
    (only,) = position(sink_fixture, replace(LOG, starts_at=5)).partitions
    assert (only.case, "the record at offset 5 is in no object before it" in only.message) == (Case.DIFFERENT, True)


def test_one_topic_partition_with_a_record_in_no_object_rejects_the_start_of_all(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=30, partitions=3)
    write(sink_fixture, log, (0, 10))
    write(sink_fixture, log, (0, 10), partition=1)
    write(sink_fixture, log, (0, 10), partition=2)
    sink_fixture.set_group({"log-0": 10, "log-1": 12})
    found = position(sink_fixture, log, start_at_objects=True)
    assert [p.case for p in found.partitions] == [Case.COMMITTED, Case.AHEAD_OF_OBJECTS, Case.AFTER_OBJECTS]
    with pytest.raises(LedgerLost, match=r"1 topic-partitions cannot continue .*log-1 \(AheadOfObjects\)"):
        found.previous_writer()
    sink_fixture.set_group({"log-0": 10, "log-1": 10})
    run(sink_fixture, position(sink_fixture, log, start_at_objects=True).previous_writer(), log)
    assert sorted(offsets_in(sink_fixture)) == sorted([*range(30)] * 3)


def test_one_of_two_topics_without_an_offset_is_decided_on_its_own(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=30, other_topics={"other": "id-other"})
    write(sink_fixture, log, (0, 10))
    for first, end in ((0, 5), (5, 12)):
        key = key_of(first).replace("/log", "/other")
        sink_fixture.put(key, rows(log, range(first, end)))
    sink_fixture.set_group({"log-0": 10})
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": ["log", "other"], "groupId": "group"}
    found = position(sink_fixture, log, spec={"kafka": kafka})
    assert [(str(p.tp), p.case, p.start) for p in found.partitions] == [
        ("log-0", Case.COMMITTED, 10),
        ("other-0", Case.FORGOTTEN, None),
    ]
    found = position(sink_fixture, log, spec={"kafka": kafka}, start_at_objects=True)
    assert [p.start for p in found.partitions] == [10, 12]
    assert found.previous_writer().starts == {"other-0": 12}


def test_objects_of_a_topic_that_was_created_again_do_not_show_an_offset(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, SyntheticLog(records=2000), (0, 10), (1000, 1010))
    for start_at_objects in (False, True):
        (only,) = position(sink_fixture, LOG, start_at_objects=start_at_objects).partitions
        assert (only.case, only.start, only.after_objects) == (Case.FORGOTTEN, None, None)


# -- what is rejected ------------------------------------------------------------------------------------------------


def tampered(sink_fixture: SinkFixture, content: bytes) -> None:
    write(sink_fixture, LOG, (0, 10))
    sink_fixture.put(key_of(10), content)
    sink_fixture.set_group({"log-0": 10})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (rows(LOG, range(10, 15)).replace(b'"offset":12', b'"offset":99'), "offset 12 differs"),
        (rows(LOG, [10, 11, 13, 14]), "offset 12 differs"),
        (rows(LOG, [10, 11, 11, 12]), "offset 12 differs"),
        (rows(LOG, [11, 12]), "offset 10 differs"),
        (rows(LOG, range(10, 45)) + b'{"offset":45}\n', "more records than Kafka"),
        (rows(LOG, range(10, 15))[:-30], "offset 14 differs"),
        (b"\xff\xfe", "offset 10 differs"),
    ],
    ids=["changed", "missing", "doubled", "another first", "beyond the log", "truncated", "no JSON"],
)
def test_an_object_that_differs_from_kafka_rejects_the_start(
    sink_fixture: SinkFixture, content: bytes, message: str
) -> None:
    tampered(sink_fixture, content)
    found = position(sink_fixture, LOG)
    assert [p.case for p in found.partitions] == [Case.DIFFERENT]
    assert message in found.partitions[0].message
    with pytest.raises(LedgerLost, match="log-0"):
        found.previous_writer()


def test_an_object_that_differs_before_the_offset_and_reaches_beyond_it_rejects_the_start(
    sink_fixture: SinkFixture,
) -> None:
    changed = rows(LOG, range(15)).replace(b'"offset":3', b'"offset":99')
    sink_fixture.put(key_of(0), changed)
    sink_fixture.set_group({"log-0": 10})
    assert [p.case for p in position(sink_fixture, LOG).partitions] == [Case.DIFFERENT]
    sink_fixture.set_group({"log-0": 15})
    assert [p.case for p in position(sink_fixture, LOG).partitions] == [Case.COMMITTED]


def test_an_object_before_the_offset_that_holds_the_record_at_it_rejects_the_start(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=20, gaps=frozenset({0, 8}))
    sink_fixture.put(key_of(1), rows(log, [*range(1, 8), 9]))
    write(sink_fixture, log, (9, 12))
    sink_fixture.set_group({"log-0": 9})
    assert [p.case for p in position(sink_fixture, log).partitions] == [Case.DIFFERENT]


def test_records_that_compaction_has_removed_since_are_no_fault_of_an_object_before_the_offset(
    sink_fixture: SinkFixture,
) -> None:
    write(sink_fixture, LOG, (0, 10), (10, 15))
    sink_fixture.set_group({"log-0": 10})
    compacted = SyntheticLog(records=45, gaps=frozenset({2, 3, 9}))
    assert [(p.case, p.start) for p in position(sink_fixture, compacted).partitions] == [(Case.ACCEPTED, 15)]


def test_a_record_between_two_objects_is_not_left_out(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (0, 10), (12, 20))
    sink_fixture.set_group({"log-0": 10})
    found = position(sink_fixture, LOG)
    assert [p.case for p in found.partitions] == [Case.DIFFERENT]
    assert "the record at offset 10 is in no object" in found.partitions[0].message


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"paths": True}, "partitioner Field"),
        ({"spec": {"format": {"envelope": True}}}, "envelope"),
    ],
)
def test_objects_that_cannot_be_compared_reject_the_start(
    sink_fixture: SinkFixture, given: dict[str, Any], reason: str
) -> None:
    path = "kind=k0" if "paths" in given else "partition=0"
    sink_fixture.put(f"topics/log/{path}/log+0+0000000010.json", b"x")
    sink_fixture.set_group({"log-0": 10})
    found = position(sink_fixture, LOG, **given)
    assert [p.case for p in found.partitions] == [Case.NOT_COMPARED]
    assert reason in found.partitions[0].message
    assert found.exit_code == 7


def test_records_that_kafka_has_deleted_cannot_be_compared(sink_fixture: SinkFixture) -> None:
    write(sink_fixture, LOG, (10, 20))
    sink_fixture.set_group({"log-0": 10})
    found = position(sink_fixture, replace(LOG, starts_at=15))
    assert [p.case for p in found.partitions] == [Case.NOT_COMPARED]
    assert "Kafka no longer holds its records: the log begins at offset 15" in found.partitions[0].message


def test_an_offset_behind_the_log_is_rejected(sink_fixture: SinkFixture) -> None:
    sink_fixture.set_group({"log-0": 50})
    assert [p.case for p in position(sink_fixture, LOG).partitions] == [Case.AHEAD]


def test_active_members_reject_the_start(sink_fixture: SinkFixture) -> None:
    class Kafka(FileConsumerGroup):
        members = 2

    found = position(sink_fixture, LOG, Kafka(LOG, sink_fixture.folder / "group.json"))
    assert [(p.case, p.message) for p in found.partitions] == [(Case.RUNNING, "")]
    with pytest.raises(ConfigurationError, match="2 active members"):
        found.previous_writer()


# -- after the start -------------------------------------------------------------------------------------------------


def test_a_copy_of_an_accepted_object_is_still_reported(sink_fixture: SinkFixture) -> None:
    run(sink_fixture, two_objects(sink_fixture))
    sink_fixture.put(key_of(25), rows(LOG, range(25, 27)))
    assert [kind for _, kind, _ in findings(deep(sink_fixture, LOG))] == [FindingType.UNTRACKED_OBJECT]


def test_the_option_changes_nothing_once_there_is_a_ledger(sink_fixture: SinkFixture) -> None:
    previous = two_objects(sink_fixture)
    run(sink_fixture, previous)
    objects = sink_fixture.etags()
    run(sink_fixture, previous)
    assert sink_fixture.etags() == objects


def test_objects_of_a_connector_with_transforms_are_compared_after_the_same_ones(sink_fixture: SinkFixture) -> None:
    """The connector has dropped a field, and filtered the records of a kind."""
    log = replace(LOG, paths=2, starts_at=10)
    kept = [json.loads(log.value(0, offset)) for offset in range(10, 20, 2)]
    for each in kept:
        del each["pad"]
    sink_fixture.put(key_of(10), b"".join(json.dumps(each).encode() + b"\n" for each in kept))
    sink_fixture.set_group({"log-0": 10})
    transforms = [
        {"type": "Filter", "when": {"field": "kind", "values": ["k1"]}},
        {"type": "Drop", "fields": ["pad"]},
    ]
    found = position(sink_fixture, log, spec={"transforms": transforms})
    assert [(p.case, p.start, p.message) for p in found.partitions] == [(Case.ACCEPTED, 19, "")]
    assert [p.case for p in position(sink_fixture, log).partitions] == [Case.DIFFERENT]
