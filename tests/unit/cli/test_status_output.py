"""`s3sink status`: output from ledger, Kafka and a running job."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from sink_job.api.parser import load_sink
from sink_job.api.report import PartitionReport, Report, RunState, TableReport, Totals
from sink_job.api.topic_partition import TopicPartition
from sink_job.cli import status_output
from sink_job.json.typed.field_list import FieldType, parse_fields
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetChecksum, OpenObject, PartitionState
from sink_job.rotation.types import OpenObjectState, RotationState

SINK = load_sink("""
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "localhost:9092", topics: [flights]}
  rotation: {flushSize: 100}
  s3: {bucket: archive}
""")
NOW = 1_700_000_100_000


def open_object(path: str, *, size: int = 1000, opened_at: int = NOW - 60_000) -> OpenObject:
    return OpenObject(
        OpenObjectState(path=path, first=90, last=99, count=10, size=size, opened_at=opened_at, interval_start=None),
        settings=1,
        offsets=OffsetChecksum(10, 1),
    )


def closed_object(first: int) -> ClosedObject:
    return ClosedObject(
        key="k",
        topic="flights",
        partition=1,
        path="p",
        first=first,
        last=first + 9,
        bytes=1,
        crc=1,
        upload="u",
        parts=(),
        sources=(),
        offsets=OffsetChecksum(10, 1),
        settings=1,
    )


@pytest.fixture
def state() -> LedgerState:
    opened = tuple(open_object(f"hour={n:02d}") for n in range(5))
    return LedgerState(
        number=7,
        clock=NOW - 3_000,
        partitions={
            "flights-0": PartitionState(RotationState(next=100, committable=90), rotation_start=90, open=opened),
            "flights-1": PartitionState(RotationState.start(50), rotation_start=50),
        },
        pending={"k": closed_object(40)},
    )


ENDS = {TopicPartition("flights", 0): 1100, TopicPartition("flights", 1): 50}


def words(line: str) -> str:
    return " ".join(line.split())


def status_of(state: LedgerState, **changes: Any) -> status_output.StatusSummary:
    defaults: dict[str, Any] = {"ends": ENDS, "group": {}, "unknown": None, "now": NOW}
    return status_output.of_ledger(SINK, state, **{**defaults, **changes})


def test_the_table_shows_offsets_lag_and_the_first_open_paths(state: LedgerState) -> None:
    lines = status_output.as_table(status_of(state)).splitlines()
    assert lines[0] == "default.flights  record 7  last round 3 s ago  1 objects being published  lag 1,020"
    assert words(lines[2]) == "TOPIC-PARTITION COMMITTED NEXT END LAG OPEN BYTES AGE PATHS"
    assert words(lines[3]) == "flights-0 90 100 1,100 1,010 5 5.0 kB 1 min 0 s hour=00, hour=01, hour=02 …"


def test_the_open_object_of_dead_letters_has_no_path(state: LedgerState) -> None:
    open_ = (open_object("hour=00"), open_object("/dead-letters"))
    state = msgspec.structs.replace(
        state,
        partitions={
            **state.partitions,
            "flights-0": msgspec.structs.replace(state.partitions["flights-0"], open=open_),
        },
    )
    assert words(status_output.as_table(status_of(state)).splitlines()[3]).endswith("hour=00, (dead letters)")


def test_the_committed_offset_excludes_an_unpublished_object(state: LedgerState) -> None:
    assert status_of(state).partitions[1].committed == 40


def test_the_committed_offset_comes_from_the_ledger_not_from_the_group(state: LedgerState) -> None:
    found = status_of(state, group={TopicPartition("flights", 1): 50})
    assert found.partitions[1].committed == 40
    assert found.pending == 1


def test_without_kafka_the_table_shows_the_ledger(state: LedgerState) -> None:
    found = status_of(state, ends={}, unknown="no answer")
    assert found.unknown == "no answer"
    assert found.partitions[0].lag is None
    assert status_output.as_table(found).splitlines()[3].split()[:5] == ["flights-0", "90", "100", "?", "?"]


def test_a_different_group_offset_is_reported(state: LedgerState) -> None:
    found = status_of(state, group={TopicPartition("flights", 0): 80, TopicPartition("flights", 1): 40})
    assert (
        status_output.as_table(found)
        .splitlines()[-1]
        .startswith("flights-0: consumer group offset is 80 but should be 90")
    )


def test_the_lag_of_a_topic_that_was_created_again_is_unknown(state: LedgerState) -> None:
    """The log end of the new topic is below the committed offset of the deleted one: the lag was 0."""
    found = status_of(state, ends=dict.fromkeys(ENDS, 3), recreated=["flights"])
    assert [(each.end, each.lag) for each in found.partitions] == [(3, None), (3, None)]
    lines = status_output.as_table(found).splitlines()
    assert lines[0].endswith("lag ?")
    assert lines[-1].startswith("flights: deleted and created again, so its lag is unknown")
    assert json.loads(status_output.as_json(found))["recreated"] == ["flights"]


def test_a_sink_that_has_not_run_has_no_ledger() -> None:
    found = status_of(LedgerState(), ends={})
    assert status_output.as_table(found) == "default.flights: no ledger yet: this sink has not run"
    assert json.loads(status_output.as_json(found))["record"] is None


def test_json_is_camel_case_and_complete(state: LedgerState) -> None:
    found = json.loads(status_output.as_json(status_of(state)))
    assert found["sinkId"] == "default.flights"
    assert found["partitions"][0]["open"] == {
        "count": 5,
        "bytes": 5000,
        "oldest": NOW - 60_000,
        "paths": ["hour=00", "hour=01", "hour=02"],
    }


def test_the_status_of_a_report_has_the_same_table() -> None:
    report = Report(
        sink_id="default.flights",
        name="flights",
        namespace="default",
        state=RunState.RUNNING,
        now=NOW,
        started_at=0,
        round=9,
        partitions=[
            PartitionReport(topic="flights", partition=0, committed=90, next=100, end=110, lag=20, open_objects=2)
        ],
    )
    lines = status_output.as_table(status_output.of_report(report)).splitlines()
    assert lines[0] == "default.flights  Running  record 9  lag 20"
    assert lines[3].split() == ["flights-0", "90", "100", "110", "20", "2"]


def statuses(*found: tuple[int, int]) -> list[status_output.StatusSummary]:
    """Statuses of one partition. `found`: pairs of the ledger record n, committed to 10 n, and the group offset."""
    tp = TopicPartition("flights", 0)
    states = [
        LedgerState(number=n, partitions={str(tp): PartitionState(RotationState.start(10 * n), rotation_start=10 * n)})
        for n, _ in found
    ]
    return [status_of(state, group={tp: group}) for state, (_, group) in zip(states, found, strict=True)]


def test_an_inconsistent_status_of_a_running_sink_is_read_again() -> None:
    found = statuses((1, 20), (2, 30), (3, 30), (4, 40))
    assert status_output.settled(iter(found).__next__) is found[2]


def test_a_different_group_offset_without_a_new_record_is_reported() -> None:
    found = statuses((3, 50), (3, 50))
    status = status_output.settled(iter(found).__next__)
    assert "consumer group offset is 50 but should be 30; the next run will correct it" in status_output.as_table(
        status
    )


def test_the_status_of_a_report_shows_dropped_records_and_dead_letters() -> None:
    report = Report(
        sink_id="default.flights",
        name="flights",
        namespace="default",
        state=RunState.RUNNING,
        now=NOW,
        started_at=NOW,
        round=7,
        totals=Totals(dropped=1_200, dead_letters=7),
    )
    found = status_output.of_report(report)
    assert "record 7  1,200 dropped  7 dead letters  lag" in status_output.as_table(found)
    assert json.loads(status_output.as_json(found))["dropped"] == 1200
    assert json.loads(status_output.as_json(found))["deadLetters"] == 7


def test_the_status_of_a_report_shows_what_tables_lack_and_why() -> None:
    tables = [
        TableReport(
            table="lake.a", record=4_000, lag_objects=3, lag_ms=61_000, reason="TableReplaced", message="another UUID"
        ),
        TableReport(table="lake.b", record=5_000, skipped_objects=1_200),
    ]
    report = Report(
        sink_id="default.flights",
        name="flights",
        namespace="default",
        state=RunState.RUNNING,
        now=NOW,
        started_at=NOW,
        tables=tables,
    )
    found = status_output.of_report(report)
    lines = status_output.as_table(found).splitlines()
    assert lines[2:] == [
        "table lake.a: lacks 3 objects for 1 min 1 s, up to record 4,000; TableReplaced: another UUID",
        "table lake.b: has all objects, up to record 5,000, 1,200 objects did not exist and were left out",
    ]
    assert json.loads(status_output.as_json(found))["tables"][1]["missing"] == 0


def test_after_a_reset_the_headline_shows_the_generation_and_its_directory() -> None:
    state = LedgerState(number=7, generation=2, topics_dir="topics/generation=2")
    table = status_output.as_table(status_output.of_ledger(SINK, state, ends={}, group={}, unknown=None, now=NOW))
    assert "record 7  generation 2 below topics/generation=2" in table


def test_inferred_schemas_are_printed_as_field_lists(state: LedgerState) -> None:
    fields = (FieldType("n", type="int64", optional=True), FieldType("s", type="string", optional=True))
    found = status_output.of_ledger(SINK, state, ends={}, group={}, unknown=None, now=NOW, schemas={"flights": fields})
    head, *lines = status_output.as_table(found).rpartition("flights: ")[2].splitlines()
    assert head == "inferred schema, as a field list for spec.format.schema.text:"
    assert parse_fields("\n".join(lines)) == fields
    assert json.loads(status_output.as_json(found))["schemas"]["flights"][0] == {
        "name": "n",
        "type": "int64",
        "optional": True,
    }
