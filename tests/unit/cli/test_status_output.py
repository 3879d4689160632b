"""`s3sink status`: what is told of ledger, Kafka and a running job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.report import PartitionReport, Report, RunState, Totals
from sink_job.api.spec import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.cli import status_output
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetChecksum, OpenObject, PartitionState

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
        path=path,
        first=90,
        last=99,
        size=size,
        opened_at=opened_at,
        settings=1,
        offsets=OffsetChecksum(10, 1),
        interval_start=None,
    )


def named(first: int) -> ClosedObject:
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
            "flights-0": PartitionState(next=100, committable=90, rotation_start=90, open=opened),
            "flights-1": PartitionState(next=50, committable=50, rotation_start=50),
        },
        pending={"k": named(40)},
    )


ENDS = {TopicPartition("flights", 0): 1100, TopicPartition("flights", 1): 50}


def words(line: str) -> str:
    return " ".join(line.split())


def told(state: LedgerState, **given: Any) -> status_output.SinkStatus:
    usual: dict[str, Any] = {"ends": ENDS, "group": {}, "unknown": None, "now": NOW}
    return status_output.of_ledger(SINK, state, **{**usual, **given})


def test_the_table_tells_offsets_lag_and_the_first_open_paths(state: LedgerState) -> None:
    lines = status_output.as_table(told(state)).splitlines()
    assert lines[0] == "default.flights  record 7  last round 3 s ago  1 objects being published  lag 1,020"
    assert words(lines[2]) == "TOPIC-PARTITION COMMITTED NEXT END LAG OPEN BYTES AGE PATHS"
    assert words(lines[3]) == "flights-0 90 100 1,100 1,010 5 5.0 kB 1 min 0 s hour=00, hour=01, hour=02 …"


def test_an_object_that_is_not_visible_yet_holds_the_committed_offset_back(state: LedgerState) -> None:
    assert told(state).partitions[1].committed == 40


def test_a_group_offset_beyond_what_the_ledger_acknowledges_is_not_believed(state: LedgerState) -> None:
    found = told(state, group={TopicPartition("flights", 1): 50})
    assert found.partitions[1].committed == 40
    assert found.pending == 1


def test_without_kafka_the_ledger_still_speaks(state: LedgerState) -> None:
    found = told(state, ends={}, unknown="no answer")
    assert found.unknown == "no answer"
    assert found.partitions[0].lag is None
    assert status_output.as_table(found).splitlines()[3].split()[:5] == ["flights-0", "90", "100", "?", "?"]


def test_a_group_offset_that_disagrees_is_told(state: LedgerState) -> None:
    found = told(state, group={TopicPartition("flights", 0): 80, TopicPartition("flights", 1): 40})
    assert status_output.as_table(found).splitlines()[-1].startswith("flights-0: the group's offset is 80, not 90")


def test_a_sink_that_has_not_run_has_no_ledger() -> None:
    found = told(LedgerState(), ends={})
    assert status_output.as_table(found) == "default.flights: no ledger yet: this sink has not run"
    assert json.loads(status_output.as_json(found))["record"] is None


def test_json_is_camel_case_and_complete(state: LedgerState) -> None:
    found = json.loads(status_output.as_json(told(state)))
    assert found["sinkId"] == "default.flights"
    assert found["partitions"][0]["open"] == {
        "count": 5,
        "bytes": 5000,
        "oldest": NOW - 60_000,
        "paths": ["hour=00", "hour=01", "hour=02"],
    }


def test_a_report_tells_the_same_as_far_as_it_knows() -> None:
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


def looks(*found: tuple[int, int]) -> list[status_output.SinkStatus]:
    """Standings of one partition whose ledger has record `n` with all committed up to 10 n, and the group's offset."""
    tp = TopicPartition("flights", 0)
    states = [LedgerState(number=n, partitions={str(tp): PartitionState(10 * n, 10 * n, 10 * n)}) for n, _ in found]
    return [told(state, group={tp: group}) for state, (_, group) in zip(states, found, strict=True)]


def test_a_running_sink_that_went_on_between_ledger_and_group_is_looked_at_again() -> None:
    found = looks((1, 20), (2, 30), (3, 30), (4, 40))
    assert status_output.settled(iter(found).__next__) is found[2]


def test_a_group_that_stays_apart_from_a_ledger_that_stands_still_is_told() -> None:
    found = looks((3, 50), (3, 50))
    told_again = status_output.settled(iter(found).__next__)
    assert "the group's offset is 50, not 30: the next run mends it" in status_output.as_table(told_again)


def test_a_report_tells_of_refused_records() -> None:
    report = Report(
        sink_id="default.flights",
        name="flights",
        namespace="default",
        state=RunState.RUNNING,
        now=NOW,
        started_at=NOW,
        round=7,
        totals=Totals(dropped=1_200),
    )
    found = status_output.of_report(report)
    assert "record 7  1,200 refused  lag" in status_output.as_table(found)
    assert json.loads(status_output.as_json(found))["dropped"] == 1200


def test_after_a_reset_the_headline_tells_the_generation_and_where_its_objects_go() -> None:
    state = LedgerState(number=7, generation=2, topics_dir="topics/generation=2")
    told = status_output.as_table(status_output.of_ledger(SINK, state, ends={}, group={}, unknown=None, now=NOW))
    assert "record 7  generation 2 below topics/generation=2" in told
