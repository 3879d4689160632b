"""The engine on Spark: what a job gets, and what its outcome leads to. Spark itself is a stand-in."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.errors import DataError, DataLoss, SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Cancelled, Columns, Range, stateless
from sink_job.spark import engine as spark_engine
from sink_job.spark.engine import SparkEngine
from sink_job.spark.task import InlineInputs, SparkTask, TaskFailure, TaskOutcome

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def process(tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
    return b""


class Broadcast:
    """What is sent once to each executor."""

    def __init__(self, value: Mapping[TopicPartition, bytes]) -> None:
        self.value, self.destroyed = value, False

    def destroy(self) -> None:
        self.destroyed = True


class Spark:
    """A session whose jobs have the outcomes of `run`: by default, each topic-partition returns its input."""

    def __init__(self, master: str = "local[2,4]", max_failures: str | None = None) -> None:
        self.master = master
        self.defaultParallelism = 2
        self.max_failures = max_failures
        self.tasks: list[SparkTask] = []
        self.read: list[tuple[Sequence[Any], Columns]] = []
        self.broadcasts: list[Broadcast] = []
        self.groups: list[str] = []
        self.properties: dict[str, str | None] = {}
        self.cancelled: list[str] = []
        self.run: Callable[[SparkTask], list[TaskOutcome]] = lambda task: [
            TaskOutcome(tp, False, task.inputs.value.get(tp, b"")) for members in task.members for tp in members
        ]
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(cancelJobGroupAndFutureJobs=self.cancelled.append))

    def getConf(self) -> Any:  # noqa: N802
        return SimpleNamespace(get=lambda name: self.max_failures)

    def setJobGroup(self, group: str, what: str, **_: object) -> None:  # noqa: N802
        self.groups.append(group)

    def broadcast(self, value: Mapping[TopicPartition, bytes]) -> Broadcast:
        self.broadcasts.append(Broadcast(value))
        return self.broadcasts[-1]

    def setLocalProperty(self, name: str, value: str | None) -> None:  # noqa: N802
        self.properties[name] = value

    def mapPartitionsWithIndex(self, task: SparkTask) -> Any:  # noqa: N802
        self.tasks.append(task)
        return self

    def collect(self) -> list[TaskOutcome]:
        return self.run(self.tasks[-1])


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    session = Spark()

    class Reader:
        sockets = "/tmp/s3sink"

        def __init__(self, *_: object, **__: object) -> None: ...

        def read(self, tasks: Sequence[Any], columns: Columns) -> Spark:
            session.read.append((tasks, columns))
            return session

    monkeypatch.setattr(spark_engine, "RangeReader", Reader)
    return session


def engine(spark: Spark, **given: Any) -> SparkEngine:
    session: Any = spark
    return SparkEngine(session, {"bootstrap.servers": "kafka:9092"}, **given)


def run(
    found: SparkEngine,
    *tps: TopicPartition,
    idle: Sequence[TopicPartition] = (),
    inputs: Mapping[TopicPartition, bytes] | None = None,
) -> dict[TopicPartition, bytes]:
    ranges = {tp: Range(0, 10) for tp in tps}
    return found.run(
        ranges=ranges, idle=idle, inputs=inputs or {}, columns=Columns(key=True), factory=stateless(process)
    )


def failing(error: Exception) -> Callable[[SparkTask], list[TaskOutcome]]:
    def fails(task: SparkTask) -> list[TaskOutcome]:
        raise error

    return fails


# -- a run -------------------------------------------------------------------------------------------------------------


def test_each_topic_partition_has_the_result_of_its_processor(spark: Spark) -> None:
    assert run(engine(spark), A, idle=[B], inputs={A: b"a"}) == {A: b"a", B: b""}


def test_a_run_without_topic_partitions_starts_no_job(spark: Spark) -> None:
    assert run(engine(spark)) == {}
    assert (spark.tasks, spark.groups) == ([], [])


def test_exactly_the_ranges_and_columns_are_read_and_nothing_of_idle_ones(spark: Spark) -> None:
    run(engine(spark), A, idle=[B])
    [(tasks, columns)] = spark.read
    assert sorted(member for task in tasks for member in task) == [(A, Range(0, 10)), (B, Range(0, 0))]
    assert columns == Columns(key=True)


def test_many_small_ranges_share_the_tasks_of_the_slots(spark: Spark) -> None:
    found, tps = engine(spark, cores=1), [TopicPartition("t", n) for n in range(50)]
    run(found, *tps)
    found.set_slots(3)
    run(found, *tps)
    assert [len(task.members) for task in spark.tasks] == [4, 12]


@pytest.mark.parametrize(
    ("master", "max_failures", "attempts"),
    [
        ("local[2,4]", None, 4),
        ("local[*]", None, 1),
        ("local", None, 1),
        ("k8s://https://here", "7", 7),
        ("k8s://https://here", None, 4),
        ("local-cluster[2,1,1024]", "3", 3),
    ],
)
def test_a_task_knows_its_maximum_number_of_attempts(
    spark: Spark, master: str, max_failures: str | None, attempts: int
) -> None:
    spark.master, spark.max_failures = master, max_failures
    run(engine(spark), A)
    assert spark.tasks[0].attempts == attempts


@pytest.mark.parametrize(("size", "is_broadcast"), [(512 << 10, False), ((512 << 10) + 1, True)])
def test_large_inputs_are_sent_once_to_each_executor_and_then_removed(
    spark: Spark, size: int, is_broadcast: bool
) -> None:
    inputs = {A: bytes(size // 2), B: bytes(size - size // 2)}
    assert run(engine(spark), A, B, inputs=inputs) == inputs
    assert isinstance(spark.tasks[0].inputs, InlineInputs) is not is_broadcast
    assert [each.destroyed for each in spark.broadcasts] == [True] * is_broadcast


def test_a_broadcast_is_removed_also_after_a_failed_job(spark: Spark) -> None:
    spark.run = failing(Exception("the job failed"))
    with pytest.raises(SinkError):
        run(engine(spark), A, inputs={A: bytes(1 << 20)})
    assert [each.destroyed for each in spark.broadcasts] == [True]


# -- failures ----------------------------------------------------------------------------------------------------------


def test_the_error_of_a_processor_is_raised_and_its_trace_logged_without_secrets(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(spark_engine._log, "debug", lambda text, *values: logged.append(text % values))
    failure = TaskFailure(DataError("t", 0, 17, "is not JSON"), "Traceback: password=hunter2")
    spark.run = lambda task: [TaskOutcome(A, True, pickle.dumps(failure))]
    with pytest.raises(DataError, match="17"):
        run(engine(spark, redact=lambda text: text.replace("hunter2", "[hidden]")), A)
    assert logged == ["a task failed:\nTraceback: password=[hidden]"]


def test_a_missing_result_is_an_error(spark: Spark) -> None:
    spark.run = lambda task: [TaskOutcome(A, False, b"")]
    with pytest.raises(SinkError, match="Spark returned no result for 1 topic-partitions"):
        run(engine(spark), A, B)


def test_the_exception_of_a_job_is_mapped_without_secrets(spark: Spark) -> None:
    spark.run = failing(Exception("OffsetOutOfRangeException ... hunter2"))
    with pytest.raises(DataLoss):
        run(engine(spark), A)
    spark.run = failing(Exception("failed with hunter2"))
    with pytest.raises(SinkError, match=r"^Spark: failed with \[hidden\]$"):
        run(engine(spark, redact=lambda text: text.replace("hunter2", "[hidden]")), A)


# -- cancellation ------------------------------------------------------------------------------------------------------


def test_after_a_cancellation_no_run_starts_a_job(spark: Spark) -> None:
    found = engine(spark)
    found.cancel()
    with pytest.raises(Cancelled):
        run(found, A)
    assert spark.tasks == []


def test_a_job_that_fails_since_it_was_cancelled_is_cancelled(spark: Spark) -> None:
    found = engine(spark)

    def cancelled(task: SparkTask) -> list[TaskOutcome]:
        found.cancel()
        raise Exception("Job 1 cancelled as part of cancellation of job group")

    spark.run = cancelled
    with pytest.raises(Cancelled):
        run(found, A)
    assert spark.cancelled == spark.groups


def test_two_engines_of_a_session_have_job_groups_of_their_own(spark: Spark) -> None:
    run(engine(spark), A)
    run(engine(spark), A)
    assert len(set(spark.groups)) == 2


def test_other_jobs_of_the_thread_are_not_in_the_group_of_a_round(spark: Spark) -> None:
    run(engine(spark), A)
    assert spark.properties == {"spark.jobGroup.id": None}
