"""What Kafka's logs still hold, after polls that outlast a new leader and a topic that is missing for a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.retention import MAX_RETENTION_CHECKS, RetentionChecker
from sink_job.engine.types import Cancelled
from tests.support.synthetic_log import SyntheticLog
from tests.unit.coordinator.claimed_sink import OTHER, TP, ClaimedSink

GONE = TopicPartition("gone", 0)


@pytest.fixture
def sink(tmp_path: Path) -> ClaimedSink:
    return ClaimedSink(tmp_path, SyntheticLog(records=20, partitions=2))


class Waits:
    """Counts the pauses; `then` is called at the `at`-th one. Returns True from the `stop_at`-th one on."""

    def __init__(self, at: int = 0, then: Callable[[], None] = lambda: None, *, stop_at: int | None = None) -> None:
        self.count = 0
        self._at = at
        self._then = then
        self._stop_at = stop_at

    def __call__(self) -> bool:
        self.count += 1
        if self.count == self._at:
            self._then()
        return self._stop_at is not None and self.count >= self._stop_at


@pytest.mark.parametrize(
    ("starts_at", "retained"),
    [(0, (2, 10)), (2, (2, 10)), (3, (3, 10)), (9, (9, 10)), (10, (10, 10)), (15, (15, 10))],
)
def test_retained_is_the_part_of_a_range_from_the_start_of_the_log_on(
    sink: ClaimedSink, starts_at: int, retained: tuple[int, int]
) -> None:
    sink.kafka.log = SyntheticLog(records=20, partitions=2, starts_at=starts_at)
    waits = Waits()
    assert RetentionChecker(sink.discovery, waits).retained({TP: (2, 10), OTHER: (18, 20)}) == {
        TP: retained,
        OTHER: (max(18, starts_at), 20),
    }
    assert waits.count == 0


def test_a_new_leader_that_lags_behind_is_polled_until_it_has_the_range(sink: ClaimedSink) -> None:
    sink.kafka.log = SyntheticLog(records=9, partitions=2)
    waits = Waits(3, lambda: setattr(sink.kafka, "log", SyntheticLog(records=10, partitions=2)))
    assert RetentionChecker(sink.discovery, waits).retained({TP: (2, 10)}) == {TP: (2, 10)}
    assert waits.count == 3


def test_a_log_that_stays_too_short_is_truncated_after_all_polls(sink: ClaimedSink) -> None:
    sink.kafka.log = SyntheticLog(records=9, partitions=2)
    waits = Waits()
    assert RetentionChecker(sink.discovery, waits).retained({TP: (2, 10), OTHER: (2, 9)}) == {TP: (2, 9), OTHER: (2, 9)}
    assert waits.count == MAX_RETENTION_CHECKS


def test_a_stop_ends_the_polls_of_a_short_log(sink: ClaimedSink) -> None:
    waits = Waits(stop_at=2)
    with pytest.raises(Cancelled, match="appeared truncated"):
        RetentionChecker(sink.discovery, waits).retained({TP: (2, 21)})
    assert waits.count == 2


def test_a_topic_that_exists_is_not_polled_again(sink: ClaimedSink) -> None:
    waits = Waits()
    assert RetentionChecker(sink.discovery, waits).deleted([TP], None) == {}
    assert waits.count == 0


def test_a_topic_that_is_missing_in_every_poll_is_deleted(sink: ClaimedSink) -> None:
    waits = Waits()
    assert RetentionChecker(sink.discovery, waits).deleted([TP, GONE], None) == {
        GONE: "topic gone was deleted in Kafka"
    }
    assert waits.count == MAX_RETENTION_CHECKS - 1


def test_a_topic_that_is_missing_for_a_moment_is_not_deleted(sink: ClaimedSink) -> None:
    complete = SyntheticLog(records=20, other_topics={"gone": "id"})
    waits = Waits(MAX_RETENTION_CHECKS - 1, lambda: setattr(sink.kafka, "log", complete))
    assert RetentionChecker(sink.discovery, waits).deleted([GONE], None) == {}


def test_a_stop_ends_the_polls_of_a_missing_topic(sink: ClaimedSink) -> None:
    with pytest.raises(Cancelled, match="topics were missing"):
        RetentionChecker(sink.discovery, Waits(stop_at=1)).deleted([GONE], None)
