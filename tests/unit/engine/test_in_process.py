"""Tasks in threads of the driver: no topic-partition is read, and each is processed once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pytest

from sink_job.api.errors import TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.in_process import TASKS, InProcessEngine
from sink_job.engine.types import Cancelled, Columns, ProcessorFactory, Range

TPS = [TopicPartition("t", number) for number in range(5)]


class Processor:
    """Returns its number and the input of each topic-partition."""

    def __init__(self, number: int, on_call: Callable[[], None]) -> None:
        self.number = number
        self.closed = 0
        self.batches = 0
        self._on_call = on_call

    def __call__(self, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch], /) -> bytes:
        self._on_call()
        self.batches += len(list(batches))
        return b"%d %b" % (self.number, task_input)

    def close(self) -> None:
        self.closed += 1


class Factory:
    """Creates processors and keeps them."""

    def __init__(self, on_call: Callable[[], None] = lambda: None) -> None:
        self.created: list[Processor] = []
        self._on_call = on_call
        self._lock = threading.Lock()

    def __call__(self) -> Processor:
        with self._lock:
            self.created.append(Processor(len(self.created), self._on_call))
            return self.created[-1]


def run(
    factory: ProcessorFactory,
    idle: Sequence[TopicPartition] = TPS,
    *,
    engine: InProcessEngine | None = None,
    ranges: Mapping[TopicPartition, Range] | None = None,
    inputs: Mapping[TopicPartition, bytes] | None = None,
) -> dict[TopicPartition, bytes]:
    return (engine or InProcessEngine()).run(
        ranges=ranges or {}, idle=idle, inputs=inputs or {}, columns=Columns(), factory=factory
    )


def test_each_topic_partition_has_the_result_of_its_input() -> None:
    found = run(Factory(), inputs={TPS[1]: b"one", TPS[4]: b"four"})
    assert {tp: result.partition(b" ")[2] for tp, result in found.items()} == {
        **dict.fromkeys(TPS, b""),
        TPS[1]: b"one",
        TPS[4]: b"four",
    }


@pytest.mark.parametrize("size", range(4))
def test_there_is_a_processor_for_each_task_with_topic_partitions(size: int) -> None:
    factory = Factory()
    found = run(factory, TPS[:size])
    assert len(factory.created) == min(size, TASKS)
    assert len({result.split()[0] for result in found.values()}) == min(size, TASKS)


def test_each_processor_is_closed_once_and_gets_no_records() -> None:
    factory = Factory()
    run(factory)
    assert [(each.closed, each.batches) for each in factory.created] == [(1, 0)] * TASKS


def test_a_range_is_left_to_the_next_driver() -> None:
    factory = Factory()
    with pytest.raises(TransientError, match=r"t-1 has to be read from Kafka again"):
        run(factory, ranges={TPS[2]: Range(0, 1), TPS[1]: Range(0, 1)})
    assert factory.created == []


def test_a_cancelled_engine_processes_nothing() -> None:
    engine, calls = InProcessEngine(), list[int]()
    engine.cancel()
    with pytest.raises(Cancelled):
        run(Factory(lambda: calls.append(1)), engine=engine)
    assert calls == []


def test_a_running_task_ends_before_its_next_topic_partition() -> None:
    engine, calls = InProcessEngine(), list[int]()

    def cancel() -> None:
        calls.append(1)
        engine.cancel()

    factory = Factory(cancel)
    with pytest.raises(Cancelled):
        run(factory, engine=engine)
    assert len(calls) <= TASKS
    assert [each.closed for each in factory.created] == [0] * len(factory.created)


def test_the_error_of_a_processor_is_raised() -> None:
    def fail() -> None:
        raise ValueError("broken")

    factory = Factory(fail)
    with pytest.raises(ValueError, match="broken"):
        run(factory)
    assert not any(each.closed for each in factory.created)
