"""The start of a driver: its checks, its claim of the ledger, and how it is stopped."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import pytest

from sink_job.api.errors import ClockSkew, ConfigurationError, LedgerFenced, SinkError, UnsupportedStore
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.ledger.generations import commit_metadata
from sink_job.s3 import StoreAdvice, start_check
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.store_faults import FIRST, LOG, OBJECTS, Once
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, InlineEngine, SyntheticLog

TP = TopicPartition("log", 0)
PUBLISH = StopCondition(publish_open=True)
NEW_LEDGER = StopCondition(until_caught_up=True, publish_open=True, start_new_ledger=True)


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def test_publishing_alone_without_a_ledger_creates_none(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG, goal=PUBLISH)
    assert sink_fixture.s3.objects == {}
    assert not sink_fixture.group.exists()


def test_the_claim_of_a_new_sink_has_its_settings_and_first_offsets(sink_fixture: MemorySinkFixture) -> None:
    log = SyntheticLog(records=9, partitions=2, starts_at=4)
    loop = sink_fixture.driver(log, attempt="first").start()
    loop.close()
    claim = sink_fixture.ledger_access().ledger.record(1)
    assert (claim.kind, claim.epoch, claim.attempt, claim.clock) == ("claim", 1, "first", CLOCK_MS)
    assert claim.settings is not None
    assert '"flushSize":5' in claim.settings
    assert {name: delta.state.next for name, delta in claim.partitions.items()} == {"log-0": 4, "log-1": 4}
    assert claim.kafka is not None
    assert claim.kafka.topics == {"log": "topic-id"}


def test_the_next_driver_continues_with_a_higher_epoch_and_fences_the_first(sink_fixture: MemorySinkFixture) -> None:
    first = sink_fixture.driver(LOG).start()
    second = sink_fixture.driver(LOG).start()
    try:
        assert (first.state.epoch, second.state.epoch) == (1, 2)
        with pytest.raises(LedgerFenced):
            first.run()
        second.run()
    finally:
        first.close()
        second.close()
    assert sink_fixture.offsets() == OBJECTS


def test_the_clock_of_a_claim_is_never_before_that_of_the_ledger(sink_fixture: MemorySinkFixture) -> None:
    ahead = CLOCK_MS + 60_000
    sink_fixture.driver(LOG, clock=lambda: ahead).start().close()
    sink_fixture.driver(LOG).start().close()
    assert sink_fixture.ledger_access().ledger.record(2).clock == ahead


def without_ledger(sink_fixture: MemorySinkFixture) -> None:
    """The objects of a sink whose ledger a user has deleted."""
    sink_fixture.run(LOG)
    for key in [key for key in sink_fixture.s3.objects if key.startswith(sink_fixture.root)]:
        del sink_fixture.s3.objects[key]


def test_objects_without_a_ledger_end_the_start_and_nothing_is_claimed(sink_fixture: MemorySinkFixture) -> None:
    without_ledger(sink_fixture)
    sink_fixture.group.unlink()
    sink_fixture.group.with_suffix(".metadata").unlink()
    error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, ConfigurationError)
    assert "--start-new-ledger" in str(error)
    assert not sink_fixture.ledger_access().ledger.exists()
    assert sink_fixture.offsets() == OBJECTS


def test_a_new_ledger_is_started_on_request_and_continues_at_the_groups_offsets(
    sink_fixture: MemorySinkFixture,
) -> None:
    without_ledger(sink_fixture)
    longer = SyntheticLog(records=15)
    sink_fixture.run(longer, goal=NEW_LEDGER)
    assert sorted(itertools.chain(*sink_fixture.offsets().values())) == list(range(15))


def test_a_group_of_another_ledger_ends_the_start(sink_fixture: MemorySinkFixture) -> None:
    other = "s3://other/topics/_s3sink/log/"
    FileConsumerGroup(LOG, sink_fixture.group).alter_group_offsets("group", {TP: 5}, metadata=commit_metadata(1, other))
    error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, ConfigurationError)
    assert other in str(error)
    assert not sink_fixture.ledger_access().ledger.exists()


def test_a_start_with_a_skewed_clock_writes_nothing(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.s3.check_access = lambda: None  # type: ignore[method-assign]
    error = error_of(lambda: sink_fixture.run(LOG, store_clock=lambda: CLOCK_MS + 3_600_000))
    assert isinstance(error, ClockSkew)
    assert sink_fixture.s3.objects == {}
    assert not sink_fixture.group.exists()


def test_a_lifecycle_rule_that_aborts_uploads_is_a_warning(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(start_check, "lifecycle_warning", lambda s3, root, **_: f"a rule aborts uploads below {root}")
    with caplog.at_level(logging.WARNING):
        sink_fixture.run(LOG)
    assert f"a rule aborts uploads below {sink_fixture.root}" in caplog.messages
    assert sink_fixture.offsets() == OBJECTS


def test_a_check_of_the_store_that_was_made_before_is_not_repeated(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checked = [StoreAdvice(logging.WARNING, "checked beside Spark's start")]
    requests: list[tuple[str, str]] = []
    monkeypatch.setattr(sink_fixture.s3, "fault", lambda request, key, *_: requests.append((request, key)))
    with caplog.at_level(logging.WARNING):
        sink_fixture.run(LOG, store_check=lambda: checked)
    assert checked[0].message in caplog.messages
    written = [key for request, key in requests if request == "put"]
    assert written
    assert not [key for key in written if "/probe/" in key]


def test_a_store_that_fails_its_check_ends_the_start_before_the_claim(sink_fixture: MemorySinkFixture) -> None:
    def failed() -> list[StoreAdvice]:
        raise UnsupportedStore("the store overwrites")

    assert isinstance(error_of(lambda: sink_fixture.run(LOG, store_check=failed)), UnsupportedStore)
    assert sink_fixture.s3.objects == {}


def test_a_stop_cancels_the_running_round_and_publishes_nothing(sink_fixture: MemorySinkFixture) -> None:
    engine = InlineEngine(LOG)
    driver = sink_fixture.driver(LOG, goal=StopCondition(), engine=engine)
    driver.stop()
    driver.run()
    assert engine.cancelled
    assert not driver.context.publish_at_stop.is_set()
    assert sink_fixture.offsets() == {}


def test_a_failed_run_ends_the_threads_of_its_loop(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    close = RoundLoop.close

    def counted(loop: RoundLoop) -> None:
        closed.append(True)
        close(loop)

    def fail(call: str, key: str) -> None:
        if (call, key) == ("complete", FIRST):
            raise SinkError("by the test")

    monkeypatch.setattr(RoundLoop, "close", counted)
    with sink_fixture.faults(fail):
        assert isinstance(error_of(lambda: sink_fixture.run(LOG)), SinkError)
    assert closed == [True]


def test_jumps_of_the_clock_are_in_the_report(sink_fixture: MemorySinkFixture) -> None:
    steady = itertools.count(0, 60_000)  # a minute passes at each call, and the host's clock does not move
    driver = sink_fixture.driver(SyntheticLog(records=3), steady_clock=steady.__next__)
    driver.run()
    assert driver.progress.report().totals.clock_jumps > 0


def test_of_drivers_that_start_a_sink_at_once_none_takes_the_others_objects_for_a_lost_ledger(
    sink_fixture: MemorySinkFixture,
) -> None:
    with sink_fixture.faults(Once("list", "topics/log/", lambda key: sink_fixture.run(SyntheticLog(records=8)))):
        sink_fixture.run(LOG)
    found = sorted(offset for offsets in sink_fixture.offsets().values() for offset in offsets)
    assert found == list(range(12))
