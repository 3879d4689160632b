"""Kafka as a sample: records exist from their arrival on."""

from __future__ import annotations

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range, stateless
from sink_job.plan.replay_log import BATCH_RECORDS, ReplayClock, ReplayLog
from tests.unit.plan.samples import START, partition, sample

TP = TopicPartition("t", 0)
UNREAD = TopicPartition("t", 5)


def test_log_ends_follow_the_clock() -> None:
    clock = ReplayClock(START)
    log = ReplayLog(sample({0: partition([0, 5_000], first=3)}), clock)
    assert log.end_offsets([TP]) == {TP: 4}
    clock.now += 5_000
    assert log.end_offsets([TP]) == {TP: 5}


def test_partitions_that_were_not_read_do_not_exist() -> None:
    log = ReplayLog(sample({0: partition([0])}, of=9), ReplayClock(START))
    assert log.beginning_offsets([TP, UNREAD]) == {TP: 0}
    assert log.end_offsets([TP, UNREAD]) == {TP: 1}
    assert log.topics()["t"].partitions == 9


def test_a_task_gets_the_columns_that_it_asks_for_in_batches() -> None:
    log = ReplayLog(sample({0: partition([0] * (BATCH_RECORDS + 1))}), ReplayClock(START))
    seen: list[tuple[int, list[str]]] = []

    def task(tp: TopicPartition, task_input: bytes, batches: object) -> bytes:
        seen.extend((len(batch), batch.schema.names) for batch in batches)  # type: ignore[attr-defined]
        return b"done"

    ranges = {TP: Range(0, BATCH_RECORDS + 1)}
    found = log.run(ranges=ranges, idle=(), inputs={}, columns=Columns(timestamp=True), factory=stateless(task))
    assert found == {TP: b"done"}
    assert seen == [(BATCH_RECORDS, ["offset", "value", "timestamp"]), (1, ["offset", "value", "timestamp"])]


def test_the_group_keeps_what_the_driver_commits() -> None:
    log = ReplayLog(sample({0: partition([0])}), ReplayClock(START))
    log.alter_group_offsets("group", {TP: 1}, metadata="claim")
    assert log.group_offsets("group", [TP, UNREAD]) == {TP: 1}
    assert log.group_metadata("group", [TP]) == {TP: "claim"}
