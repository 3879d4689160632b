"""Log lines about dropped records, and the error of a record that stops the sink."""

from __future__ import annotations

import logging

import pytest

from sink_job.api.errors import DataError, TooManyRejected
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.rejections import check_rejected_share, log_rejected, raise_data_errors
from sink_job.ledger.state import PartitionState
from sink_job.tasks.write import RejectedRecord, TaskCounters, TaskResult
from tests.unit.api.manifests import document

TP = TopicPartition("flights", 0)
STATE = PartitionState.start(0)
SINK = parse_sink(document({"metadata": {"name": "orders", "namespace": "data"}}))


def tolerating(share: float) -> Sink:
    """A sink with this `errors.deadLetters.maxShare`."""
    errors = {"tolerance": "All", "deadLetters": {"maxShare": share}}
    return parse_sink(document({"metadata": {"name": "orders", "namespace": "data"}, "spec.errors": errors}))


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
        raise_data_errors({TP: rejected(range(3)), **results}, SINK)
    assert "flights-2" in str(error.value)
    assert "offset 2" in str(error.value)


def test_the_error_has_the_command_that_skips_the_record() -> None:
    with pytest.raises(DataError) as error:
        raise_data_errors({TP: stopped(7)}, SINK)
    assert "kubectl s3sink skip orders -n data flights-0@7" in str(error.value)
    assert "spec.errors.skip: [{topic: flights, partition: 0, offset: 7}]" in str(error.value)


def test_tolerated_records_are_no_error() -> None:
    raise_data_errors({TP: rejected(range(3))}, SINK)


def counted(*, written: int, rejected: int, ignored: int = 0) -> TaskResult:
    counts = TaskCounters(records=written, rejected=rejected, ignored=ignored)
    return TaskResult(STATE, counts, rejected=(RejectedRecord(7, "bad 7"),) if rejected else ())


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(counted(written=0, rejected=99), id="99 records"),
        pytest.param(counted(written=100, rejected=100), id="the share itself"),
        pytest.param(counted(written=0, rejected=100, ignored=100), id="ignored null values count as accepted"),
        pytest.param(counted(written=0, rejected=0), id="no records"),
    ],
)
def test_a_smaller_share_of_rejected_records_is_tolerated(result: TaskResult) -> None:
    check_rejected_share({TP: result}, tolerating(0.5))


def test_a_share_of_1_tolerates_every_record() -> None:
    check_rejected_share({TP: counted(written=0, rejected=100_000)}, tolerating(1.0))


def test_a_larger_share_of_rejected_records_is_an_error_with_the_first_one() -> None:
    others = {TopicPartition("flights", n): counted(written=1_000, rejected=100) for n in (1, 2)}
    with pytest.raises(TooManyRejected) as error:
        check_rejected_share({**others, TP: counted(written=99, rejected=101)}, tolerating(0.5))
    assert (error.value.topic, error.value.partition, error.value.offset) == ("flights", 0, 7)
    assert str(error.value) == (
        "flights-0: 101 of 200 records of the round (50%) were rejected, more than spec.errors.deadLetters.maxShare "
        "(0.5) allows. The first one is at offset 7: bad 7. Nothing of the round was recorded. Fix the producer or "
        "spec.format / spec.partitioner. If these records may be left out, set spec.errors.deadLetters.maxShare: 1. To "
        "pass over this record alone: kubectl s3sink skip orders -n data flights-0@7, or spec.errors.skip: [{topic: "
        "flights, partition: 0, offset: 7}]"
    )


def test_null_values_that_are_kept_are_no_rejected_records(caplog: pytest.LogCaptureFixture) -> None:
    kept = TaskResult(STATE, TaskCounters(records=1, rejected=500, kept_nulls=500, dead_letters=500))
    with caplog.at_level(logging.WARNING):
        log_rejected({TP: kept})
    assert caplog.messages == []
    check_rejected_share({TP: kept}, tolerating(0.1))


def test_rejected_records_beside_kept_null_values_count_alone() -> None:
    counts = TaskCounters(records=100, rejected=600, kept_nulls=500, dead_letters=600)
    result = TaskResult(STATE, counts, rejected=rejected(range(100)).rejected)
    check_rejected_share({TP: result}, tolerating(0.5))
    with pytest.raises(TooManyRejected, match="100 of 700"):
        check_rejected_share({TP: result}, tolerating(0.1))
