"""The messages of a write task travel as msgpack."""

from __future__ import annotations

import msgspec

from sink_job.ledger.state import PartitionState
from sink_job.rotation.types import RotationState
from sink_job.tasks.write import RejectedRecord, TaskCounters, TaskInput, TaskResult

STATE = PartitionState(RotationState(next=5, committable=3), rotation_start=2)


def test_input_and_result_are_the_same_after_a_journey() -> None:
    task_input = TaskInput(STATE, end=9, close=True)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(task_input), type=TaskInput) == task_input
    result = TaskResult(
        STATE,
        TaskCounters(records=3, requests={"PutObject": 2}),
        error=RejectedRecord(7, "the value is not JSON"),
        rejected=(RejectedRecord(6, "odd"),),
        started_uploads=(("key", "upload"),),
        unresolved=(("t", "1"),),
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=TaskResult) == result


def test_two_tasks_do_not_share_their_counters_of_requests() -> None:
    first, second = TaskCounters(), TaskCounters()
    first.requests["PutObject"] = 1
    assert second.requests == {}
