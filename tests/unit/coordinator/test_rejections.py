"""Log lines about dropped records, and the error of a record that stops the sink."""

from __future__ import annotations

import logging

import pytest

from sink_job.api.errors import DataError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.rejections import log_rejected, raise_data_errors
from sink_job.ledger.state import PartitionState
from sink_job.tasks.write import RejectedRecord, TaskCounters, TaskResult

TP = TopicPartition("flights", 0)
STATE = PartitionState.start(0)


def rejected(offsets: range) -> TaskResult:
    reported = tuple(RejectedRecord(offset, f"bad {offset}") for offset in offsets)
    return TaskResult(STATE, TaskCounters(rejected=len(offsets)), rejected=reported[:10])


def stopped(offset: int) -> TaskResult:
    return TaskResult(STATE, TaskCounters(), error=RejectedRecord(offset, f"bad {offset}"))


def test_dropped_records_are_a_warning_with_the_first_offsets_and_how_many(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        log_rejected({TP: rejected(range(12, 1_300)), TopicPartition("flights", 1): rejected(range(0))})
    assert [record.getMessage() for record in caplog.records] == [
        "flights-0: dropped 1,288 rejected records (spec.errors.tolerance: All): offset 12: bad 12; offset 13: bad "
        "13; offset 14: bad 14; and 1,285 more"
    ]


@pytest.mark.parametrize(
    ("count", "tail"),
    [
        (1, "1 rejected record (spec.errors.tolerance: All): offset 12: bad 12"),
        (3, "3 rejected records (spec.errors.tolerance: All): offset 12: bad 12; offset 13: bad 13; offset 14: bad 14"),
    ],
)
def test_few_dropped_records_are_logged_completely(count: int, tail: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        log_rejected({TP: rejected(range(12, 12 + count))})
    assert caplog.messages == [f"flights-0: dropped {tail}"]


def test_the_topic_partitions_are_logged_in_order(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        log_rejected({TopicPartition("flights", n): rejected(range(1)) for n in (10, 2, 1)})
    assert [message.partition(":")[0] for message in caplog.messages] == ["flights-1", "flights-2", "flights-10"]


def test_the_error_is_that_of_the_first_topic_partition_that_stopped() -> None:
    results = {TopicPartition("flights", n): stopped(n) for n in (10, 2)}
    with pytest.raises(DataError, match="bad 2") as error:
        raise_data_errors({TP: rejected(range(3)), **results})
    assert "flights-2" in str(error.value)
    assert "offset 2" in str(error.value)


def test_tolerated_records_are_no_error() -> None:
    raise_data_errors({TP: rejected(range(3))})
