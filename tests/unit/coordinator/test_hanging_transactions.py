"""When a topic-partition counts as held up by an open transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from sink_job.api.report import HangingTransactionReport
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.hanging_transactions import HangingTransactionDetector
from sink_job.engine.kafka_admin import KafkaAdmin

TP = TopicPartition("log", 0)


class Log:
    """One topic-partition and a clock; counts how often its end is asked for."""

    def __init__(self) -> None:
        self.now, self.stable, self.end, self.asked = 0, 10, 10, 0
        self.standstill = HangingTransactionDetector(
            cast("KafkaAdmin", self), lambda: self.now, every=1_000, after=60_000
        )

    def end_offsets(
        self, partitions: Sequence[TopicPartition], *, committed: bool = True
    ) -> Mapping[TopicPartition, int]:
        assert not committed
        self.asked += 1
        return {TP: self.end}

    def at(self, ms: int, *, stable: int, end: int) -> list[HangingTransactionReport]:
        self.now, self.end = ms, end
        return self.standstill.check({TP: stable})


def test_an_unchanged_stable_offset_of_a_growing_log_is_reported() -> None:
    log = Log()
    assert log.at(0, stable=10, end=15) == []
    assert log.at(59_000, stable=10, end=20) == []
    [found] = log.at(60_000, stable=10, end=25)
    assert (found.topic, found.partition, found.offset, found.end, found.since) == ("log", 0, 10, 25, 0)


def test_consecutive_transactions_are_not_reported() -> None:
    log = Log()
    assert [log.at(n * 30_000, stable=10 + n, end=15 + n) for n in range(5)] == [[]] * 5


def test_an_idle_log_is_not_reported() -> None:
    log = Log()
    assert [log.at(n * 60_000, stable=10, end=10) for n in range(3)] == [[]] * 3


def test_the_report_ends_with_the_transaction() -> None:
    log = Log()
    log.at(0, stable=10, end=15)
    assert log.at(60_000, stable=10, end=15) != []
    assert log.at(61_000, stable=16, end=16) == []


def test_kafka_is_polled_at_intervals_and_the_report_is_the_same_between() -> None:
    log = Log()
    log.at(0, stable=10, end=15)
    first = log.at(60_000, stable=10, end=15)
    assert log.at(60_500, stable=10, end=15) == first
    assert log.asked == 2
