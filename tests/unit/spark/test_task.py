"""A Spark task: distribution of its batches, and failures of its processor."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.errors import DataError, ObjectConflict, SinkError, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, PartitionFunction, ProcessorFactory, stateless
from sink_job.spark import task as tasks
from sink_job.spark.frames import RangeBatch, ReadError
from sink_job.spark.task import InlineInputs, SparkTask, TaskFailure, TaskOutcome

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 1)
ALL = (A, B, C)


def batches_of(*records: tuple[TopicPartition, int]) -> list[RangeBatch]:
    """A batch for each range of consecutive records. Ranges have the numbers of `ALL`."""
    return [
        RangeBatch(ALL.index(tp), pa.RecordBatch.from_pydict({"offset": offsets, "value": [b"v"] * len(offsets)}))
        for tp, each in groupby(records, key=lambda record: record[0])
        if (offsets := [offset for _, offset in each])
    ]


def offsets(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
    read = []
    for part in batches:
        assert part.num_rows
        assert part.schema.names == ["offset", "value"]
        read += part["offset"].to_pylist()
    return repr(read).encode() + given


class Frames:
    """In place of a FrameReader: returns the batches, and raises `error` after them."""

    def __init__(self, batches: Sequence[RangeBatch], error: Exception | None = None) -> None:
        self.unread = list(batches)
        self.error = error
        self.closed = False

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def next(self) -> RangeBatch | None:
        if self.unread:
            return self.unread.pop(0)
        if self.error:
            raise self.error
        return None


def run(
    fn: PartitionFunction, frames: Sequence[RangeBatch] | Frames, *members: TopicPartition, **options: Any
) -> list[TaskOutcome]:
    return run_processor(stateless(fn), frames, *members, **options)


def run_processor(
    factory: ProcessorFactory, frames: Sequence[RangeBatch] | Frames, *members: TopicPartition, attempt: int = 0
) -> list[TaskOutcome]:
    reader = frames if isinstance(frames, Frames) else Frames(frames)
    task = SparkTask(factory, InlineInputs({A: b"!"}), [[], members], 4, "/sockets/s3sink", Columns())
    opened: list[str] = []

    def open_frames(path: object, columns: Columns) -> Frames:
        opened.append(str(path))
        return reader

    with pytest.MonkeyPatch.context() as patch:
        context = SimpleNamespace(attemptNumber=lambda: attempt, taskAttemptId=lambda: 17)
        patch.setattr(tasks, "_task_context", lambda: context)
        patch.setattr(tasks, "FrameReader", open_frames)
        try:
            return list(task(1, iter([])))
        finally:
            assert opened == ["/sockets/s3sink-17.sock"]
            assert reader.closed


def raises(error: Exception) -> PartitionFunction:
    def fail(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        raise error

    return fail


def failure(outcomes: list[TaskOutcome]) -> TaskFailure:
    [(_, failed, result)] = outcomes
    assert failed
    unpickled = pickle.loads(result)
    assert isinstance(unpickled, TaskFailure)
    return unpickled


def test_a_task_of_one_topic_partition_gets_all_batches_and_its_input() -> None:
    batches = [*batches_of((A, 1), (A, 2)), *batches_of((A, 5))]
    assert run(offsets, batches, A) == [(A, False, b"[1, 2, 5]!")]


def test_each_topic_partition_of_a_task_gets_its_own_records() -> None:
    batches = [*batches_of((A, 1), (B, 0)), *batches_of((B, 1), (C, 0))]
    assert run(offsets, batches, A, B, C) == [(A, False, b"[1]!"), (B, False, b"[0, 1]"), (C, False, b"[0]")]


def test_a_topic_partition_without_records_is_processed() -> None:
    assert run(offsets, batches_of((B, 7)), A, B, C) == [(A, False, b"[]!"), (B, False, b"[7]"), (C, False, b"[]")]


def test_a_function_can_leave_records_unread() -> None:
    def first_only(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        return str(next(batches)["offset"][0].as_py()).encode()

    batches = [*batches_of((A, 1)), *batches_of((A, 2), (B, 3)), *batches_of((B, 4))]
    assert [result for _, _, result in run(first_only, batches, A, B)] == [b"1", b"3"]


def test_what_the_last_function_leaves_unread_is_not_read() -> None:
    def first_only(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        return str(next(batches)["offset"][0].as_py()).encode()

    frames = Frames([*batches_of((A, 1)), *batches_of((A, 2), (B, 3)), *batches_of((B, 4)), *batches_of((B, 5))])
    assert [result for _, _, result in run(first_only, frames, A, B)] == [b"1", b"3"]
    assert len(frames.unread) == 2


def test_records_of_a_topic_partition_outside_the_task_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="not in this task"):
        run(offsets, batches_of((A, 1), (C, 1)), A, B)


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
    outcomes = run_processor(lambda: processor, batches_of((A, 1), (B, 0), (B, 1)), A, B, C)
    assert processor.calls == ["t-0 1", "t-1 2", "u-1 0", "close"]
    assert [result for _, _, result in outcomes] == [b"done"] * 3


def test_a_task_whose_close_fails_returns_no_result() -> None:
    outcomes = run_processor(lambda: RecordingProcessor(ObjectConflict("key")), batches_of((A, 1)), A, B)
    assert isinstance(failure(outcomes).error, ObjectConflict)


def test_an_unexpected_exception_of_close_is_retried_by_spark() -> None:
    with pytest.raises(ValueError, match="bug"):
        run_processor(lambda: RecordingProcessor(ValueError("bug")), [], A, attempt=2)


def test_a_processor_is_not_closed_after_a_failure() -> None:
    class FailingProcessor(RecordingProcessor):
        def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
            if tp == B:
                raise ObjectConflict("key")
            return super().__call__(tp, given, batches)

    processor = FailingProcessor()
    failure(run_processor(lambda: processor, [], A, B, C))
    assert processor.calls == ["t-0 0"]


records_of_members = st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(0, 99)), max_size=20)


@given(records_of_members, st.lists(st.integers(0, 20), max_size=4))
def test_each_topic_partition_gets_its_records_in_order_whatever_the_batches(
    records: list[tuple[TopicPartition, int]], cuts: list[int]
) -> None:
    records.sort(key=lambda record: record[0])
    edges = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    batches = [batch for start, end in pairwise(edges) for batch in batches_of(*records[start:end])]
    outcomes = {tp: result for tp, _, result in run(offsets, batches, A, B, C)}
    for tp in (A, B, C):
        expected = repr([offset for member, offset in records if member == tp]).encode()
        assert outcomes[tp] == expected + (b"!" if tp == A else b"")


@pytest.mark.parametrize("error", [ObjectConflict("key"), DataError("t", 0, 7, "bad"), TransientError("slow")])
def test_a_sink_error_is_returned_at_the_first_attempt(error: SinkError) -> None:
    carried = failure(run(raises(error), [], A)).error
    assert (type(carried), str(carried)) == (type(error), str(error))


def test_an_unexpected_exception_is_retried_by_spark() -> None:
    with pytest.raises(ValueError, match="bug"):
        run(raises(ValueError("bug")), [], A, attempt=2)


def test_an_unexpected_exception_is_returned_at_the_last_attempt() -> None:
    assert "bug" in str(failure(run(raises(ValueError("bug")), [], A, attempt=3)).error)


def test_an_unexpected_exception_is_returned_with_its_last_line_and_its_trace() -> None:
    carried = failure(run(raises(ValueError("bug")), [], A, attempt=3))
    assert (type(carried.error), str(carried.error)) == (SinkError, "ValueError: bug")
    assert "Traceback" in carried.trace


def test_an_error_of_the_reader_is_raised_to_spark_even_at_the_last_attempt() -> None:
    with pytest.raises(ReadError, match="ends early"):
        run(offsets, Frames(batches_of((A, 1)), ReadError("ends early")), A, attempt=3)


def test_a_failed_task_leaves_its_records_unread() -> None:
    frames = Frames(batches_of((A, 1), (B, 1)))
    failure(run(raises(ObjectConflict("key")), frames, A))
    assert len(frames.unread) == 2


def test_a_task_reads_the_end_that_the_reader_reports() -> None:
    with pytest.raises(ReadError, match="ends early"):
        run(offsets, Frames(batches_of((B, 1)), ReadError("ends early")), A, B)
