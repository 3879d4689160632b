"""The typed status: read from any document, written without loss."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_operator.status.status_model import (
    Attempt,
    ConditionStatus,
    MemoryChange,
    MemoryStatus,
    Retry,
    S3SinkStatus,
    StatusCondition,
)
from s3sink_operator.types import FailureCategory, Json
from tests.operator.fake_cluster import START, running

READY: Json = {
    "type": "Ready",
    "status": "True",
    "reason": "Running",
    "message": "",
    "lastTransitionTime": "2025-10-09T08:53:20Z",
    "observedGeneration": 1,
}


def test_times_and_sizes_are_numbers_in_code_and_text_in_json() -> None:
    memory = MemoryStatus(
        current=512 << 20,
        last_change=MemoryChange(time=START, from_=1 << 30, to=2 << 30, reason="grow"),
        change_times=[START],
    )
    document = {
        "current": "512Mi",
        "lastChange": {"time": "2025-10-09T08:53:20Z", "from": "1Gi", "to": "2Gi", "reason": "grow"},
        "changeTimes": ["2025-10-09T08:53:20Z"],
    }
    assert memory.document() == document
    assert MemoryStatus.model_validate(document) == memory


def test_the_status_of_a_running_sink_is_read_and_written_without_loss() -> None:
    document = running().status
    assert S3SinkStatus.read(document).document() == document


@pytest.mark.parametrize("document", [None, {}, "text", [], {"zebra": 1}, {"attempts": 5, "conditions": {"a": 1}}])
def test_a_document_without_a_valid_field_is_an_empty_status(document: Any) -> None:
    assert S3SinkStatus.read(document) == S3SinkStatus()


def test_an_invalid_field_is_absent_and_the_others_are_kept() -> None:
    document: Json = {
        "observedGeneration": -1,
        "conditions": [{"type": "Ready"}, {"status": "True"}, READY, {**READY, "status": "Maybe"}],
        "memory": {"current": "much", "inputs": {"slots": "many", "partSize": 5}, "changeTimes": ["soon"]},
        "attempts": [{"number": "first", "endTime": "soon", "reason": "Killed"}],
        "retry": {"failures": 2, "category": "Zebra"},
    }
    status = S3SinkStatus.read(document)
    assert status.observed_generation is None
    assert [each.type for each in status.conditions or ()] == ["Ready"]
    assert status.memory is not None
    assert status.memory.current is None
    assert status.memory.inputs is not None
    assert (status.memory.inputs.slots, status.memory.inputs.part_size) == (None, 5)
    assert status.memory.change_times == []
    assert status.attempts == [Attempt(reason="Killed")]
    assert status.retry == Retry(failures=2, category=FailureCategory.INFRASTRUCTURE)


def test_a_condition_is_found_by_its_type() -> None:
    status = S3SinkStatus.read({"conditions": [READY]})
    assert status.condition("Stalled") is None
    found = status.condition("Ready")
    assert found == StatusCondition(
        type="Ready",
        status=ConditionStatus.TRUE,
        reason="Running",
        message="",
        last_transition_time=START,
        observed_generation=1,
    )
