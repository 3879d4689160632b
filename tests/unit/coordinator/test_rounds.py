"""Rounds: what is recorded of one, which offsets are skipped, and how open objects are closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import DataLoss, TransientError
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.planner import RoundPlan
from sink_job.coordinator.rounds import ReadHistory
from sink_job.ledger.staging import is_expired
from sink_job.ledger.state import PartitionState
from sink_job.ledger.store import Ledger
from sink_job.tasks.write import TaskCounters, TaskResult
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.sink_fixture import manifest
from tests.support.store_faults import LOG, OBJECTS
from tests.support.synthetic_log import InlineEngine, SyntheticLog

FIRST = "topics/log/partition=0/log+0+0000000000.json"


class Retention(InlineEngine):
    """Once `runs`, each of the next five jobs finds that the log has lost one more record."""

    runs = False

    def run(self, **given: Any) -> dict[Any, bytes]:
        if self.runs and self.log.starts_at < 5:
            object.__setattr__(self.log, "starts_at", self.log.starts_at + 1)
        return super().run(**given)


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    sink_fixture = MemorySinkFixture(tmp_path, monkeypatch)
    given = manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=10, spec={"onDataLoss": "Continue"})
    sink_fixture.sink = load_sink(given)
    return sink_fixture


def test_a_round_that_is_recorded_is_not_read_again_when_an_object_of_it_cannot_be_rebuilt(
    sink_fixture: MemorySinkFixture,
) -> None:
    log = SyntheticLog(records=20)
    engine = Retention(log)

    def upload_is_gone(call: str, key: str) -> None:
        if (call, key) == ("complete", FIRST) and not engine.runs:
            engine.runs = True
            sink_fixture.s3.uploads = {
                name: upload for name, upload in sink_fixture.s3.uploads.items() if upload.key != key
            }

    with sink_fixture.faults(upload_is_gone):
        assert isinstance(error_of(lambda: sink_fixture.run(log, engine=engine, snapshot_every=100)), DataLoss)
    store: Any = sink_fixture.s3
    ledger = Ledger(store, sink_fixture.root, "reader")
    reached = [
        change.state.next
        for number in range(1, ledger.load().number + 1)
        for change in ledger.record(number).partitions.values()
    ]
    assert reached == sorted(reached)
    sink_fixture.run(log)
    lost = [line.lost for line in ledger.published(ledger.load()) if line.lost]
    assert [(each.first, each.offsets.count) for each in lost] == [(0, 5)]
    assert sink_fixture.offsets() == {
        f"topics/log/partition=0/log+0+{first:010d}.json": list(range(first, first + 5)) for first in (5, 10, 15)
    }


def test_the_skipped_offsets_are_logged_from_the_first_to_the_last(
    sink_fixture: MemorySinkFixture, caplog: pytest.LogCaptureFixture
) -> None:
    sink_fixture.run(SyntheticLog(records=5))
    sink_fixture.run(SyntheticLog(records=20, starts_at=8))
    assert "log-0: Kafka has deleted offsets 5 to 7: they are lost; resuming after them" in caplog.messages


def test_a_partition_that_was_added_without_a_driver_is_read_from_its_start(sink_fixture: MemorySinkFixture) -> None:
    """`startingOffsets` applies to the first start of a sink alone."""
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group", "startingOffsets": "Latest"}
    given = manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=10, spec={"kafka": kafka})
    sink_fixture.sink = load_sink(given)
    sink_fixture.run(SyntheticLog(records=5))
    sink_fixture.run(SyntheticLog(records=10, partitions=2))
    assert sink_fixture.offsets() == {
        "topics/log/partition=0/log+0+0000000005.json": [5, 6, 7, 8, 9],
        "topics/log/partition=1/log+1+0000000000.json": [0, 1, 2, 3, 4],
        "topics/log/partition=1/log+1+0000000005.json": [5, 6, 7, 8, 9],
    }


@pytest.fixture
def five_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    """Five records in an object, two in a round."""
    return MemorySinkFixture(tmp_path, monkeypatch)


def test_staged_remainders_that_keep_vanishing_end_the_driver(five_each: MemorySinkFixture) -> None:
    def fault(call: str, key: str) -> None:
        if call == "get_range":
            five_each.s3.delete([key])

    with five_each.faults(fault):
        error = error_of(lambda: five_each.run(LOG))
    assert type(error) is TransientError
    assert "its open objects were rebuilt 5 times" in str(error)
    five_each.run(LOG)
    assert five_each.offsets() == OBJECTS


def test_the_staging_object_of_a_round_is_not_expired_before_the_record_of_the_round(
    five_each: MemorySinkFixture,
) -> None:
    five_each.run(SyntheticLog(records=9), goal=StopCondition(until_caught_up=True), snapshot_every=100)
    store: Any = five_each.s3
    ledger = Ledger(store, five_each.root, "reader")
    head = ledger.load()
    named = {
        name.removeprefix(f"{five_each.root}staging/"): number
        for number in range(head.number, 0, -1)  # the first record that names an object counts
        for change in ledger.record(number).partitions.values()
        for name in change.state.staged()
    }
    assert named
    assert [name for name, number in named.items() if is_expired(name, head.epoch, number - 1)] == []
    assert [name for name, number in named.items() if not is_expired(name, head.epoch, number)] == []


def test_objects_that_stay_open_after_each_attempt_to_close_them_end_the_driver(five_each: MemorySinkFixture) -> None:
    loop = five_each.driver(LOG).start()
    selections = []

    def select() -> dict[int, list[TopicPartition]]:
        selections.append(1)
        return {loop.state.current_settings(): [TopicPartition("log", 0)]}

    try:
        with pytest.raises(TransientError, match=r"disappear while objects are closed \(5 times in a row\)"):
            loop._rounds.close_until_none(select)
    finally:
        loop.close()
    assert len(selections) == 6


def test_a_round_that_only_closes_reads_nothing(five_each: MemorySinkFixture) -> None:
    five_each.run(LOG, goal=StopCondition(until_caught_up=True))
    loop = five_each.driver(LOG).start()
    tp = TopicPartition("log", 0)
    try:
        before = loop.state.partitions["log-0"]
        assert before.open
        loop._rounds.run(RoundPlan({}, [tp]), close=True)
        after = loop.state.partitions["log-0"]
    finally:
        loop.close()
    assert (after.next, after.open) == (before.next, ())
    assert five_each.offsets() == OBJECTS


# -- what the planner knows of previous rounds -----------------------------------------------------------------------


TP = TopicPartition("log", 0)


def result(records: int, size: int, *, unresolved: bool = False) -> TaskResult:
    ids = (("log", "7"),) if unresolved else ()
    return TaskResult(PartitionState.start(0), TaskCounters(records=records, bytes=size), unresolved=ids)


def test_the_average_size_is_that_of_the_last_round_with_records() -> None:
    history = ReadHistory()
    history.add({TP: result(4, 100)}, lambda: 5)
    assert (history.record_bytes, history.last_read_ms) == ({TP: 25.0}, {TP: 5})
    history.add({TP: result(0, 0)}, lambda: 9)
    assert (history.record_bytes, history.last_read_ms) == ({TP: 25.0}, {TP: 9})
    history.add({TP: result(2, 10)}, lambda: 11)
    assert history.record_bytes == {TP: 5.0}


def test_after_unknown_ids_the_next_round_of_the_topic_partition_does_not_wait() -> None:
    history, other = ReadHistory(), TopicPartition("log", 1)
    history.add({TP: result(4, 100, unresolved=True), other: result(1, 1)}, lambda: 5)
    assert history.last_read_ms == {TP: 0, other: 5}
