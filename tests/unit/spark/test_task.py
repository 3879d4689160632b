"""What one Spark task does with its batches and its function's failures."""

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
from tests.support.columnar_batches import Read, rows

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 1)
Outcome = tuple[TopicPartition, bool, bytes]


def batch(*records: tuple[TopicPartition, int]) -> pa.RecordBatch:
    """Rows of packs, a new one wherever the topic-partition changes."""
    return rows(*([Read(*record) for record in pack] for _, pack in groupby(records, key=lambda record: record[0])))


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
    return run_work(stateless(fn), batches, *members, **options)


def run_work(
    work: ProcessorFactory, batches: Iterator[pa.RecordBatch], *members: TopicPartition, attempt: int = 0
) -> list[Outcome]:
    task = SparkTask(work, InlineInputs({A: b"!"}), [members], 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_task_context", lambda: (0, attempt))
        came = [row for made in task(batches) for row in made.to_pylist()]
    return [(TopicPartition(row["topic"], row["partition"]), row["failed"], row["result"]) for row in came]


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


def test_a_task_of_one_member_gets_all_batches_and_its_input() -> None:
    batches = [batch((A, 1), (A, 2)), batch(), batch((A, 5))]
    assert run(offsets, iter(batches), A) == [(A, False, b"[1, 2, 5]!")]


def test_packs_of_several_members_reach_each_its_own() -> None:
    batches = [batch((A, 1), (B, 0)), batch((B, 1), (C, 0))]
    assert run(offsets, iter(batches), A, B, C) == [(A, False, b"[1]!"), (B, False, b"[0, 1]"), (C, False, b"[0]")]


def test_a_member_without_records_is_called_all_the_same() -> None:
    assert run(offsets, iter([batch((B, 7))]), A, B, C) == [(A, False, b"[]!"), (B, False, b"[7]"), (C, False, b"[]")]


def test_a_function_need_not_read_its_records() -> None:
    def first_only(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        return str(next(batches)["offset"][0].as_py()).encode()

    batches = [batch((A, 1)), batch((A, 2), (B, 3)), batch((B, 4))]
    assert [result for _, _, result in run(first_only, iter(batches), A, B)] == [b"1", b"3"]


def test_records_of_nobody_are_not_lost_silently() -> None:
    with pytest.raises(RuntimeError, match="no part in"):
        run(offsets, iter([batch((A, 1), (C, 1))]), A, B)


class Told:
    """A share that writes down its calls; `error` is what its end raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.error = error

    def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
        self.calls.append(f"{tp} {sum(part.num_rows for part in batches)}")
        return b"done"

    def close(self) -> None:
        self.calls.append("end")
        if self.error:
            raise self.error


def test_one_share_sees_all_members_of_a_task_and_then_its_end() -> None:
    share = Told()
    outcomes = run_work(lambda: share, iter([batch((A, 1), (B, 0), (B, 1))]), A, B, C)
    assert share.calls == ["t-0 1", "t-1 2", "u-1 0", "end"]
    assert [result for _, _, result in outcomes] == [b"done"] * 3


def test_no_result_leaves_a_task_whose_end_fails() -> None:
    outcomes = run_work(lambda: Told(ObjectConflict("key")), iter([batch((A, 1))]), A, B)
    assert isinstance(failure(outcomes).error, ObjectConflict)


def test_an_end_without_a_name_for_its_error_is_left_to_spark_to_try_again() -> None:
    with pytest.raises(ValueError, match="bug"):
        run_work(lambda: Told(ValueError("bug")), iter([]), A, attempt=2)


def test_a_share_whose_member_failed_is_not_ended() -> None:
    class Refusing(Told):
        def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
            if tp == B:
                raise ObjectConflict("key")
            return super().__call__(tp, given, batches)

    share = Refusing()
    failure(run_work(lambda: share, iter([]), A, B, C))
    assert share.calls == ["t-0 0"]


records_of_members = st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(0, 99)), max_size=20)


@given(records_of_members, st.lists(st.integers(0, 20), max_size=4))
def test_however_batches_fall_each_member_gets_its_records_in_order(
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
def test_a_domain_error_comes_back_at_the_first_try(error: SinkError) -> None:
    carried = failure(run(raises(error), iter([]), A)).error
    assert (type(carried), str(carried)) == (type(error), str(error))


def test_what_has_no_name_is_left_to_spark_to_try_again() -> None:
    with pytest.raises(ValueError, match="bug"):
        run(raises(ValueError("bug")), iter([]), A, attempt=2)


def test_the_last_try_gives_the_error_back() -> None:
    assert "bug" in str(failure(run(raises(ValueError("bug")), iter([]), A, attempt=3)).error)


def test_an_unexpected_exception_is_told_by_its_last_line_and_traced() -> None:
    carried = failure(run(raises(ValueError("bug")), iter([]), A, attempt=3))
    assert (type(carried.error), str(carried.error)) == (SinkError, "ValueError: bug")
    assert "Traceback" in carried.trace


def test_an_error_of_the_reader_stays_sparks_even_at_the_last_try() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield batch((A, 1))
        raise OSError("stream ends early")

    with pytest.raises(OSError, match="ends early"):
        run(offsets, broken(), A, attempt=3)


def test_a_failed_function_leaves_nothing_unread() -> None:
    batches = iter([batch((A, 1)), batch((A, 2))])
    failure(run(raises(ObjectConflict("key")), batches, A))
    assert next(batches, None) is None
