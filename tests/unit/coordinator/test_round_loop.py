"""The round loop: when it ends, what it does between rounds, and what it publishes when the driver is stopped."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import DataLoss, TopicNotFound, TransientError
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.engine.types import Cancelled
from tests.support.memory_sink import PUBLISH_ALL, MemorySinkFixture, error_of
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, InlineEngine, SyntheticLog

LOG = SyntheticLog(records=13, partitions=3)
FOREVER = StopCondition()
LEFT_OPEN = StopCondition(until_caught_up=True)
HOUR = 3_600_000


class EndingEngine(InlineEngine):
    """Spark whose executors are deleted with the namespace after `rounds` rounds, when the driver is stopped too."""

    rounds = 2
    error: type[Exception] = Cancelled
    stop: Any = None

    def run(self, **given: Any) -> dict[TopicPartition, bytes]:
        if self.rounds == 0:
            self.stop()
            raise self.error("the executors are gone")
        self.rounds -= 1
        return super().run(**given)


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def stopped(sink: MemorySinkFixture, error: type[Exception] = Cancelled, *, publish: bool = True) -> Coordinator:
    """A driver that is stopped in its third round."""
    engine = EndingEngine(LOG)
    driver = sink.driver(LOG, goal=FOREVER, engine=engine)
    engine.error, engine.stop = error, driver.publish_and_stop if publish else driver.stop
    return driver


def copied(sink: MemorySinkFixture) -> list[int]:
    """The offsets in all visible objects."""
    return sorted(offset for offsets in sink.offsets().values() for offset in offsets)


def open_objects(sink: MemorySinkFixture) -> int:
    state = sink.ledger_access().ledger.load()
    return sum(len(p.open) for p in state.partitions.values()) + len(state.pending)


@pytest.mark.parametrize("error", [Cancelled, TransientError])
def test_open_objects_are_published_without_executors(sink: MemorySinkFixture, error: type[Exception]) -> None:
    driver = stopped(sink, error)
    driver.run()
    assert sink.offsets() == {f"topics/log/partition={n}/log+{n}+0000000000.json": [0, 1, 2, 3] for n in range(3)}
    assert open_objects(sink) == 0
    assert sink.orphans() == []
    assert driver.progress.report().final().published


def test_without_publication_objects_stay_open(sink: MemorySinkFixture) -> None:
    driver = stopped(sink, publish=False)
    driver.run()
    assert sink.offsets() == {}
    assert open_objects(sink) == 3
    assert not driver.progress.report().final().published


def test_the_next_driver_continues_after_the_published_records(sink: MemorySinkFixture) -> None:
    stopped(sink).run()
    sink.run(LOG)
    assert copied(sink) == sorted([*range(13)] * 3)


def test_an_object_that_has_to_be_rebuilt_stays_open_for_the_next_driver(sink: MemorySinkFixture) -> None:
    driver = stopped(sink)
    stop = driver.publish_and_stop

    def stop_and_lose_staged_data() -> None:
        for key in [key for key in sink.s3.objects if "/staging/" in key]:
            del sink.s3.objects[key]
        stop()

    driver.context.engine.stop = stop_and_lose_staged_data  # type: ignore[attr-defined]
    assert isinstance(error_of(driver.run), TransientError)
    assert not driver.progress.report().final().published
    sink.run(LOG)
    assert copied(sink) == sorted([*range(13)] * 3)


# -- the end of a run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "offsets"),
    [(LEFT_OPEN, [0, 1, 2, 3, 4]), (PUBLISH_ALL, [0, 1, 2, 3, 4, 5, 6])],
    ids=["caught up", "caught up and published"],
)
def test_a_run_with_an_end_reads_up_to_the_log_ends_of_its_start(
    sink: MemorySinkFixture, goal: StopCondition, offsets: list[int]
) -> None:
    log = SyntheticLog(records=7)
    group = FileConsumerGroup(log, sink.group)

    def between_rounds() -> None:
        group.log = replace(group.log, records=group.log.records + 1)

    sink.run(log, goal=goal, admin=group, engine=InlineEngine(SyntheticLog(records=100)), between_rounds=between_rounds)
    assert copied(sink) == offsets
    assert open_objects(sink) == (1 if goal is LEFT_OPEN else 0)


def test_publishing_alone_reads_no_further_record(sink: MemorySinkFixture) -> None:
    sink.run(SyntheticLog(records=7), goal=LEFT_OPEN)
    sink.run(SyntheticLog(records=20), goal=StopCondition(publish_open=True))
    assert copied(sink) == list(range(7))
    assert open_objects(sink) == 0


def test_a_driver_that_is_stopped_before_its_first_round_reads_nothing(sink: MemorySinkFixture) -> None:
    stop = threading.Event()
    stop.set()
    sink.run(LOG, goal=FOREVER, stop=stop)
    assert sink.offsets() == {}
    assert open_objects(sink) == 0


def test_objects_of_earlier_settings_are_closed_before_the_first_round(sink: MemorySinkFixture) -> None:
    sink.run(SyntheticLog(records=3), goal=LEFT_OPEN)
    sink.sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=2, compression="Gzip"))
    stop = threading.Event()
    stop.set()
    sink.run(SyntheticLog(records=9), goal=FOREVER, stop=stop)
    assert sink.offsets() == {"topics/log/partition=0/log+0+0000000000.json": [0, 1, 2]}


def test_a_ledgers_clock_that_is_ahead_is_set_back_after_its_open_objects_are_closed(sink: MemorySinkFixture) -> None:
    """Offset ranges and clocks identify the records of an object."""
    ahead = CLOCK_MS + HOUR
    sink.run(SyntheticLog(records=3), goal=LEFT_OPEN, clock=lambda: ahead)
    sink.run(SyntheticLog(records=3), goal=LEFT_OPEN, store_clock=lambda: CLOCK_MS, snapshot_every=100)
    ledger = sink.ledger_access().ledger
    state = ledger.load()
    assert state.clock == CLOCK_MS
    assert open_objects(sink) == 0
    assert sink.offsets() == {"topics/log/partition=0/log+0+0000000000.json": [0, 1, 2]}
    numbers = [number for number in range(1, state.number + 1) if ledger.record(number).sets_clock_back]
    assert len(numbers) == 1
    assert ledger.record(numbers[0] - 1).clock == ahead


# -- deleted offsets and topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["Fail", "Continue"])
def test_offsets_that_kafka_has_deleted_end_the_driver_or_are_skipped(sink: MemorySinkFixture, policy: str) -> None:
    sink.run(SyntheticLog(records=5))
    given = manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=10, spec={"onDataLoss": policy})
    sink.sink = load_sink(given)
    error = error_of(lambda: sink.run(SyntheticLog(records=12, starts_at=8)))
    assert isinstance(error, DataLoss) is (policy == "Fail")
    assert copied(sink) == [*range(5), *(() if policy == "Fail" else range(8, 12))]


class ShrinkingKafka(InlineEngine):
    """Kafka whose topic `logs` is deleted after the first round."""

    group: FileConsumerGroup

    def run(self, **given: Any) -> dict[TopicPartition, bytes]:
        results = super().run(**given)
        self.group.log = replace(self.group.log, other_topics={})
        return results


def test_what_was_read_of_a_deleted_topic_is_published_and_the_others_are_read_on(sink: MemorySinkFixture) -> None:
    kafka = {"bootstrapServers": "127.0.0.1:9", "groupId": "group", "topicsPattern": "log.*"}
    given = manifest("archive", "http://127.0.0.1:9", flush_size=9, max_records=2, spec={"kafka": kafka})
    sink.sink = load_sink(given)
    log = SyntheticLog(records=7, other_topics={"logs": "other-id"})
    engine = ShrinkingKafka(log)
    engine.group = FileConsumerGroup(log, sink.group)
    sink.run(log, goal=LEFT_OPEN, admin=engine.group, engine=engine)
    assert sink.offsets() == {"topics/logs/partition=0/logs+0+0000000000.json": [0, 1]}
    assert sink.ledger_access().ledger.load().partitions["log-0"].next == 7


def test_a_topic_that_is_missing_and_is_not_deleted_ends_the_driver(
    sink: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = FileConsumerGroup(LOG, sink.group)

    def missing(*_: Any, **__: Any) -> None:
        raise TopicNotFound("topic log does not exist")

    driver = sink.driver(LOG, goal=FOREVER, admin=group)
    loop = driver.start()
    try:
        monkeypatch.setattr(group, "end_offsets", missing)
        with pytest.raises(TopicNotFound):
            loop.run_once()
    finally:
        loop.close()


# -- between rounds --------------------------------------------------------------------------------------------------


def test_each_turn_calls_between_rounds_also_while_there_is_nothing_to_read(sink: MemorySinkFixture) -> None:
    calls: list[int] = []
    driver = sink.driver(SyntheticLog(records=2), goal=LEFT_OPEN, between_rounds=lambda: calls.append(1))
    loop = driver.start()
    try:
        loop.recover()
        assert [loop.run_once(), loop.run_once(), loop.run_once()] == [True, False, False]
    finally:
        loop.close()
    assert len(calls) == 3


def test_a_topic_that_is_held_is_not_read_and_others_are(sink: MemorySinkFixture) -> None:
    log = SyntheticLog(records=13, other_topics={"held": "id"})
    spec = {"kafka": {"bootstrapServers": "127.0.0.1:9", "topics": ["log", "held"], "groupId": "group"}}
    sink.sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=2, spec=spec))
    polls: list[frozenset[str]] = []

    def held(topics: Any) -> frozenset[str]:
        polls.append(frozenset(topics))
        return frozenset({"held"}) if len(polls) < 9 else frozenset()

    driver = sink.driver(log, held_topics=held)
    loop = driver.start()
    loop.recover()
    loop.run_once()
    loop.close()
    found = {each.topic: (each.next, each.end) for each in driver.progress.report().partitions}
    assert found == {"log": (2, 13), "held": (0, 13)}
    sink.run(log, held_topics=held)
    assert {*polls} == {frozenset({"log", "held"})}
    assert copied(sink) == sorted([*range(13)] * 2)
    state = sink.ledger_access().ledger.load()
    assert {name: p.next for name, p in state.partitions.items()} == {"log-0": 13, "held-0": 13}


def test_a_run_that_ends_automatically_waits_for_a_topic_that_is_held(sink: MemorySinkFixture) -> None:
    polls = 0

    def held(topics: Any) -> Any:
        nonlocal polls
        polls += 1
        assert sink.offsets() == {} or polls > 3
        return topics if polls < 4 else ()

    sink.run(SyntheticLog(records=13), held_topics=held)
    assert copied(sink) == [*range(13)]
