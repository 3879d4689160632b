"""A Spark task: distribution of its batches, and failures of its processor."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.errors import DataError, ObjectConflict, SinkError, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import PartitionFunction, ProcessorFactory, stateless
from sink_job.spark import task as tasks
from sink_job.spark.task import InlineInputs, SparkTask, TaskFailure
from tests.support.columnar_batches import ConsumedRecord, batch_rows

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 1)
Outcome = tuple[TopicPartition, bool, bytes]


def batch(*records: tuple[TopicPartition, int]) -> pa.RecordBatch:
    """Spark rows of columnar batches. A new batch starts where the topic-partition changes."""
    return batch_rows(
        *([ConsumedRecord(*record) for record in each] for _, each in groupby(records, key=lambda record: record[0]))
    )


def offsets(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
    read = []
    for part in batches:
        assert part.num_rows
        assert part.schema.names == ["offset", "value"]
        read += part["offset"].to_pylist()
    return repr(read).encode() + given


def run(
    fn: PartitionFunction, batches: Iterator[pa.RecordBatch], *members: TopicPartition, **options: Any
) -> list[Outcome]:
    return run_processor(stateless(fn), batches, *members, **options)


def run_processor(
    factory: ProcessorFactory, batches: Iterator[pa.RecordBatch], *members: TopicPartition, attempt: int = 0
) -> list[Outcome]:
    task = SparkTask(factory, InlineInputs({A: b"!"}), [members], 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_task_context", lambda: (0, attempt))
        returned = [row for result in task(batches) for row in result.to_pylist()]
    return [(TopicPartition(row["topic"], row["partition"]), row["failed"], row["result"]) for row in returned]


def raises(error: Exception) -> PartitionFunction:
    def fail(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        raise error

    return fail


def failure(outcomes: list[Outcome]) -> TaskFailure:
    [(_, failed, result)] = outcomes
    assert failed
    unpickled = pickle.loads(result)
    assert isinstance(unpickled, TaskFailure)
    return unpickled


def test_a_task_of_one_topic_partition_gets_all_batches_and_its_input() -> None:
    batches = [batch((A, 1), (A, 2)), batch(), batch((A, 5))]
    assert run(offsets, iter(batches), A) == [(A, False, b"[1, 2, 5]!")]


def test_each_topic_partition_of_a_task_gets_its_own_records() -> None:
    batches = [batch((A, 1), (B, 0)), batch((B, 1), (C, 0))]
    assert run(offsets, iter(batches), A, B, C) == [(A, False, b"[1]!"), (B, False, b"[0, 1]"), (C, False, b"[0]")]


def test_a_topic_partition_without_records_is_processed() -> None:
    assert run(offsets, iter([batch((B, 7))]), A, B, C) == [(A, False, b"[]!"), (B, False, b"[7]"), (C, False, b"[]")]


def test_a_function_can_leave_records_unread() -> None:
    def first_only(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        return str(next(batches)["offset"][0].as_py()).encode()

    batches = [batch((A, 1)), batch((A, 2), (B, 3)), batch((B, 4))]
    assert [result for _, _, result in run(first_only, iter(batches), A, B)] == [b"1", b"3"]


def test_records_of_a_topic_partition_outside_the_task_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="not in this task"):
        run(offsets, iter([batch((A, 1), (C, 1))]), A, B)


class RecordingProcessor:
    """A processor that records its calls. `error` is raised by `close`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.error = error

    def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
        self.calls.append(f"{tp} {sum(part.num_rows for part in batches)}")
        return b"done"

    def close(self) -> None:
        self.calls.append("close")
        if self.error:
            raise self.error


def test_a_processor_gets_all_topic_partitions_of_its_task_and_is_then_closed() -> None:
    processor = RecordingProcessor()
    outcomes = run_processor(lambda: processor, iter([batch((A, 1), (B, 0), (B, 1))]), A, B, C)
    assert processor.calls == ["t-0 1", "t-1 2", "u-1 0", "close"]
    assert [result for _, _, result in outcomes] == [b"done"] * 3


def test_a_task_whose_close_fails_returns_no_result() -> None:
    outcomes = run_processor(lambda: RecordingProcessor(ObjectConflict("key")), iter([batch((A, 1))]), A, B)
    assert isinstance(failure(outcomes).error, ObjectConflict)


def test_an_unexpected_exception_of_close_is_retried_by_spark() -> None:
    with pytest.raises(ValueError, match="bug"):
        run_processor(lambda: RecordingProcessor(ValueError("bug")), iter([]), A, attempt=2)


def test_a_processor_is_not_closed_after_a_failure() -> None:
    class FailingProcessor(RecordingProcessor):
        def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
            if tp == B:
                raise ObjectConflict("key")
            return super().__call__(tp, given, batches)

    processor = FailingProcessor()
    failure(run_processor(lambda: processor, iter([]), A, B, C))
    assert processor.calls == ["t-0 0"]


records_of_members = st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(0, 99)), max_size=20)


@given(records_of_members, st.lists(st.integers(0, 20), max_size=4))
def test_each_topic_partition_gets_its_records_in_order_whatever_the_batches(
    records: list[tuple[TopicPartition, int]], cuts: list[int]
) -> None:
    records.sort(key=lambda record: record[0])
    edges = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    batches = [batch(*records[start:end]) for start, end in pairwise(edges)]
    outcomes = {tp: result for tp, _, result in run(offsets, iter(batches), A, B, C)}
    for tp in (A, B, C):
        expected = repr([offset for member, offset in records if member == tp]).encode()
        assert outcomes[tp] == expected + (b"!" if tp == A else b"")


@pytest.mark.parametrize("error", [ObjectConflict("key"), DataError("t", 0, 7, "bad"), TransientError("slow")])
def test_a_sink_error_is_returned_at_the_first_attempt(error: SinkError) -> None:
    carried = failure(run(raises(error), iter([]), A)).error
    assert (type(carried), str(carried)) == (type(error), str(error))


def test_an_unexpected_exception_is_retried_by_spark() -> None:
    with pytest.raises(ValueError, match="bug"):
        run(raises(ValueError("bug")), iter([]), A, attempt=2)


def test_an_unexpected_exception_is_returned_at_the_last_attempt() -> None:
    assert "bug" in str(failure(run(raises(ValueError("bug")), iter([]), A, attempt=3)).error)


def test_an_unexpected_exception_is_returned_with_its_last_line_and_its_trace() -> None:
    carried = failure(run(raises(ValueError("bug")), iter([]), A, attempt=3))
    assert (type(carried.error), str(carried.error)) == (SinkError, "ValueError: bug")
    assert "Traceback" in carried.trace


def test_an_error_of_the_reader_is_raised_to_spark_even_at_the_last_attempt() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield batch((A, 1))
        raise OSError("stream ends early")

    with pytest.raises(OSError, match="ends early"):
        run(offsets, broken(), A, attempt=3)


def test_a_failed_task_reads_all_its_batches() -> None:
    batches = iter([batch((A, 1)), batch((A, 2))])
    failure(run(raises(ObjectConflict("key")), batches, A))
    assert next(batches, None) is None
