"""What the dispatcher does around the tasks of a round: intents, checks of retention, and attempts of a rebuild."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import DataLoss, RebuildRejected, TopicNotFound, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.planner import RoundPlan
from sink_job.coordinator.retention import RetentionChecker
from sink_job.coordinator.task_dispatcher import (
    IN_PROCESS_BUDGET,
    IN_PROCESS_PART_BUFFERS,
    MAX_REBUILD_ROUNDS,
    TaskDispatcher,
)
from sink_job.engine.types import Range
from sink_job.ledger.schemas.schema_table import KnownSchemas
from sink_job.ledger.state import KafkaIdentity, LedgerState, OffsetChecksum
from sink_job.s3 import S3Settings
from sink_job.tasks.parameters import RoundParameters
from sink_job.tasks.rebuild import MissingRecords, RebuildInput, RebuildResult
from sink_job.tasks.write import TaskCounters, TaskInput, TaskResult
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog
from tests.unit.coordinator.claimed_sink import (
    OTHER,
    TP,
    ClaimedSink,
    closed_object,
    open_object,
    read_up_to,
    with_partitions,
)

GONE = TopicPartition("gone", 0)
Results = Mapping[TopicPartition, Any]


class Tasks:
    """An engine that runs no task. Each run returns the next of `results`, or raises it."""

    def __init__(self) -> None:
        self.results: list[Results | Exception] = []
        self.before: Callable[[], None] = lambda: None
        self.ranges: list[dict[TopicPartition, Range]] = []
        self.idle: list[list[TopicPartition]] = []
        self.inputs: list[dict[TopicPartition, bytes]] = []
        self.parameters: list[RoundParameters] = []

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Any,
        factory: Any,
    ) -> dict[TopicPartition, bytes]:
        self.before()
        self.ranges.append(dict(ranges))
        self.idle.append(list(idle))
        self.inputs.append(dict(inputs))
        self.parameters.append(factory.args[0])
        result = self.results.pop(0) if self.results else {}
        if isinstance(result, Exception):
            raise result
        return {tp: msgspec.msgpack.encode(each) for tp, each in result.items() if tp in inputs}

    def cancel(self) -> None:
        pass


class Dispatcher:
    """A dispatcher of a sink with two topic-partitions."""

    def __init__(self, folder: Path, *, on_data_loss: str = "Fail", **context: Any) -> None:
        self.sink = ClaimedSink(
            folder,
            SyntheticLog(records=50, partitions=2),
            spec={"onDataLoss": on_data_loss},
            errors={"tolerance": "All"},
        )
        self.engine = Tasks()
        self.state = with_partitions(self.sink.claim(TP, OTHER), {TP: read_up_to(10), OTHER: read_up_to(20)})
        given: Any = {
            "s3": S3Settings(bucket="archive"),
            "admin": self.sink.kafka,
            "engine": self.engine,
            "clock": lambda: CLOCK_MS,
            "owner": self.sink.owner,
            "attempt": "attempt",
            **context,
        }
        retention = RetentionChecker(self.sink.discovery, lambda: False)
        self.tasks = TaskDispatcher(
            self.sink.sink,
            CoordinatorContext(**given),
            self.sink.ledger,
            retention,
            lambda: KnownSchemas({"log": frozenset({"7"})}),
        )

    def write(self, plan: RoundPlan, state: LedgerState | None = None, *, close: bool = False) -> Results:
        return self.tasks.write(plan, state or self.state, now=CLOCK_MS, settings=1, close=close)

    def rebuild(self, inputs: Mapping[TopicPartition, RebuildInput]) -> Mapping[TopicPartition, RebuildResult]:
        return self.tasks.rebuild(inputs, self.state, now=CLOCK_MS, settings=1)

    def intended(self) -> dict[str, tuple[int, int]]:
        """The offset ranges of the newest intent."""
        stored, _ = self.sink.ledger.intents()
        return stored[-1].intent.ranges if stored else {}

    def retention_deletes_up_to(self, offset: int) -> None:
        self.sink.kafka.log = SyntheticLog(records=50, partitions=2, starts_at=offset)

    def new_upload(self, key: str) -> tuple[str, str]:
        return key, self.sink.memory.create_upload(key)


@pytest.fixture
def dispatcher(tmp_path: Path) -> Dispatcher:
    return Dispatcher(tmp_path)


@pytest.fixture
def continuing(tmp_path: Path) -> Dispatcher:
    """A dispatcher of a sink that accepts lost records."""
    return Dispatcher(tmp_path, on_data_loss="Continue")


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_task_gets_the_state_of_its_partition_and_the_end_of_its_range(dispatcher: Dispatcher) -> None:
    result = TaskResult(read_up_to(15), TaskCounters(records=5))
    dispatcher.engine.results = [{TP: result}]
    assert dispatcher.write(RoundPlan({TP: (10, 15)}, [OTHER]), close=True) == {TP: result}
    assert dispatcher.engine.ranges == [{TP: Range(10, 15)}]
    assert dispatcher.engine.idle == [[OTHER]]
    assert {tp: msgspec.msgpack.decode(raw, type=TaskInput) for tp, raw in dispatcher.engine.inputs[0].items()} == {
        TP: TaskInput(read_up_to(10), 15, True),
        OTHER: TaskInput(read_up_to(20), 20, True),
    }


def test_the_intent_of_a_round_is_written_before_its_tasks_run(dispatcher: Dispatcher) -> None:
    seen: list[dict[str, tuple[int, int]]] = []
    dispatcher.engine.before = lambda: seen.append(dispatcher.intended())
    dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    assert seen == [{"log-0": (10, 15)}]


def test_an_intent_covers_the_rounds_before_it(dispatcher: Dispatcher) -> None:
    dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    later = with_partitions(dispatcher.state, {TP: read_up_to(15), OTHER: read_up_to(20)})
    dispatcher.write(RoundPlan({TP: (15, 30)}, [OTHER]), later)
    assert dispatcher.intended() == {"log-0": (10, 30), "log-1": (20, 20)}
    dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    assert dispatcher.intended() == {"log-0": (10, 30), "log-1": (20, 20)}
    stored, superseded = dispatcher.sink.ledger.intents()
    assert ([each.intent.sequence for each in stored], len(superseded)) == ([3], 2)


def test_an_intent_covers_the_open_objects(dispatcher: Dispatcher) -> None:
    state = with_partitions(dispatcher.state, {TP: read_up_to(10, open_object(4, 9))})
    dispatcher.write(RoundPlan({TP: (10, 15)}, []), state)
    assert dispatcher.intended() == {"log-0": (4, 15)}


def test_a_range_that_kafka_no_longer_holds_is_not_read(dispatcher: Dispatcher) -> None:
    dispatcher.retention_deletes_up_to(12)
    with pytest.raises(DataLoss, match=r"\(log-0: 10 to 11\)"):
        dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    assert dispatcher.engine.ranges == []


def test_a_range_at_the_start_of_the_log_is_read(dispatcher: Dispatcher) -> None:
    dispatcher.retention_deletes_up_to(10)
    dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    assert dispatcher.engine.ranges == [{TP: Range(10, 15)}]


@pytest.mark.parametrize("error", [TransientError("the task failed"), DataLoss("offsets are missing")])
def test_an_error_of_the_tasks_becomes_the_deleted_range_that_has_caused_it(
    dispatcher: Dispatcher, error: Exception
) -> None:
    dispatcher.engine.results = [error]
    dispatcher.engine.before = lambda: dispatcher.retention_deletes_up_to(12)
    with pytest.raises(DataLoss, match=r"\(log-0: 10 to 11\)"):
        dispatcher.write(RoundPlan({TP: (10, 15)}, []))


def test_an_error_of_the_tasks_stays_if_kafka_holds_the_range(dispatcher: Dispatcher) -> None:
    dispatcher.engine.results = [TransientError("the task failed")]
    with pytest.raises(TransientError, match="the task failed"):
        dispatcher.write(RoundPlan({TP: (10, 15)}, []))


# -- parameters --------------------------------------------------------------------------------------------------------


def test_the_parameters_of_a_round_name_its_number_settings_and_schemas(dispatcher: Dispatcher) -> None:
    dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    (parameters,) = dispatcher.engine.parameters
    assert (parameters.round, parameters.epoch, parameters.settings_record) == (2, 1, 1)
    assert parameters.settings_json == dispatcher.sink.object_settings.model_dump_json()
    assert parameters.schemas == KnownSchemas({"log": frozenset({"7"})})
    assert parameters.tolerant


def test_a_task_has_the_present_memory_of_its_container(tmp_path: Path) -> None:
    now: list[tuple[int, int] | None] = [None, (64 << 20, 8)]
    dispatcher = Dispatcher(
        tmp_path,
        budget=32 << 20,
        part_buffers=2,
        threads=4,
        current_task_memory=lambda: now.pop(0),
        container=lambda: (1 << 30, 2),
    )
    for _ in range(2):
        dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    assert [(p.budget, p.part_buffers, p.threads, p.memory, p.slots) for p in dispatcher.engine.parameters] == [
        (32 << 20, 2, 4, 1 << 30, 2),
        (64 << 20, 8, 8, 1 << 30, 2),
    ]


def test_without_spark_no_range_is_read(dispatcher: Dispatcher) -> None:
    dispatcher.tasks.leave_spark()
    with pytest.raises(TransientError, match="log-0 has to be read from Kafka again"):
        dispatcher.write(RoundPlan({TP: (10, 15)}, []))
    assert dispatcher.engine.ranges == []


def test_without_spark_a_task_has_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher = Dispatcher(tmp_path, budget=1 << 30, part_buffers=6, threads=8, container=lambda: (8 << 30, 2))
    monkeypatch.setattr("sink_job.coordinator.task_dispatcher.InProcessEngine", lambda: dispatcher.engine)
    dispatcher.tasks.leave_spark()
    dispatcher.write(RoundPlan({}, [TP]))
    (p,) = dispatcher.engine.parameters
    assert (p.budget, p.part_buffers, p.threads) == (
        IN_PROCESS_BUDGET,
        IN_PROCESS_PART_BUFFERS,
        IN_PROCESS_PART_BUFFERS,
    )
    assert (p.memory, p.slots) == (0, None)


# -- rebuilding --------------------------------------------------------------------------------------------------------

CLOSED = closed_object(TP, 2, 6)
OPEN = open_object(5, 8)
INPUT = RebuildInput(closed=(CLOSED,), open=(OPEN,))


def missing(count: int, *, absent: int, returned: int = 0, rules: tuple[str, ...] = ()) -> MissingRecords:
    """An object of five records of which `count` are found."""
    return MissingRecords("p", 2, 6, OffsetChecksum(count, 1), OffsetChecksum(5, 7), returned, absent, rules)


def test_a_rebuild_reads_the_offsets_of_its_objects(dispatcher: Dispatcher) -> None:
    result = RebuildResult(closed=(CLOSED,), open=(OPEN,))
    dispatcher.engine.results = [{TP: result}]
    assert dispatcher.rebuild({TP: INPUT}) == {TP: result}
    assert dispatcher.engine.ranges == [{TP: Range(2, 9)}]
    assert dispatcher.intended() == {"log-0": (2, 9)}
    assert dispatcher.engine.parameters[0].schemas is None


def test_only_the_partition_whose_new_upload_disappeared_is_rebuilt_again(dispatcher: Dispatcher) -> None:
    done, lost = RebuildResult(closed=(CLOSED,)), RebuildResult(lost="upload", started_uploads=(("k", "u"),))
    dispatcher.engine.results = [{TP: done, OTHER: lost}, {OTHER: done}]
    assert dispatcher.rebuild({TP: INPUT, OTHER: INPUT}) == {TP: done, OTHER: done}
    assert [sorted(ranges) for ranges in dispatcher.engine.ranges] == [[TP, OTHER], [OTHER]]


def test_a_rebuild_ends_when_its_uploads_disappear_again_and_again(dispatcher: Dispatcher) -> None:
    done = RebuildResult(closed=(CLOSED,), started_uploads=(dispatcher.new_upload("done"),))
    lost = [
        RebuildResult(lost="upload of k", started_uploads=(dispatcher.new_upload(f"lost-{n}"),))
        for n in range(MAX_REBUILD_ATTEMPTS)
    ]
    dispatcher.engine.results = [{TP: done, OTHER: each} for each in lost]
    with pytest.raises(TransientError, match=f"{MAX_REBUILD_ATTEMPTS} times in a row: upload of k"):
        dispatcher.rebuild({TP: INPUT, OTHER: INPUT})
    assert dispatcher.sink.memory.uploads == {}
    assert dispatcher.engine.results == []


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        (missing(3, absent=2, returned=3), DataLoss, "Kafka holds 3 of its 5 records"),
        (missing(5, absent=0, returned=5), DataLoss, "Kafka holds other records at its offsets"),
        (missing(3, absent=0, returned=5), RebuildRejected, "selects 3 of the 5 that the object has"),
        (
            missing(3, absent=1, returned=4, rules=("pyarrow 1", "pyarrow 2")),
            RebuildRejected,
            "was written with pyarrow 1; installed are pyarrow 2",
        ),
    ],
    ids=["lost", "other records", "not selected", "other libraries"],
)
def test_an_object_that_cannot_be_rebuilt_ends_the_driver_with_the_reason(
    dispatcher: Dispatcher, record: MissingRecords, error: type[Exception], message: str
) -> None:
    started = dispatcher.new_upload("started")
    dispatcher.engine.results = [{TP: RebuildResult(missing=(record,), started_uploads=(started,))}]
    with pytest.raises(error, match=message):
        dispatcher.rebuild({TP: INPUT})
    assert dispatcher.sink.memory.uploads == {}


def test_a_store_that_does_not_respond_does_not_hide_the_reason(dispatcher: Dispatcher) -> None:
    def fault(call: str, key: str) -> None:
        if call == "abort":
            raise TransientError("no response")

    dispatcher.sink.memory.fault = fault
    dispatcher.engine.results = [
        {TP: RebuildResult(missing=(missing(3, absent=2, returned=3),), started_uploads=(("k", "u"),))}
    ]
    with pytest.raises(DataLoss):
        dispatcher.rebuild({TP: INPUT})


def test_with_continue_lost_records_are_a_result(continuing: Dispatcher) -> None:
    result = RebuildResult(missing=(missing(3, absent=2, returned=3),))
    continuing.engine.results = [{TP: result}]
    assert continuing.rebuild({TP: INPUT}) == {TP: result}
    (task,) = (msgspec.msgpack.decode(raw, type=RebuildInput) for raw in continuing.engine.inputs[0].values())
    assert task.partial


def test_with_continue_other_records_at_the_offsets_are_an_error(continuing: Dispatcher) -> None:
    continuing.engine.results = [{TP: RebuildResult(missing=(missing(5, absent=0, returned=5),))}]
    with pytest.raises(DataLoss, match="Kafka holds other records"):
        continuing.rebuild({TP: INPUT})


@pytest.mark.parametrize(("starts_at", "ranges"), [(0, [Range(2, 9)]), (8, [Range(8, 9)]), (9, [])])
def test_with_continue_a_rebuild_reads_what_kafka_still_holds(
    continuing: Dispatcher, starts_at: int, ranges: list[Range]
) -> None:
    continuing.retention_deletes_up_to(starts_at)
    results = continuing.rebuild({TP: INPUT})
    assert [each[TP] for each in continuing.engine.ranges] == ranges
    assert [(each.first, each.absent) for each in results[TP].missing] == [(2, 5), (5, 4)]


@pytest.mark.parametrize("failures", [MAX_REBUILD_ROUNDS - 1, MAX_REBUILD_ROUNDS])
def test_with_continue_a_rebuild_follows_retention_that_deletes_its_records(
    continuing: Dispatcher, failures: int
) -> None:
    result = RebuildResult(closed=(CLOSED,))
    continuing.engine.results = [*(DataLoss("deleted") for _ in range(failures)), {TP: result}]
    if failures < MAX_REBUILD_ROUNDS:
        assert continuing.rebuild({TP: INPUT}) == {TP: result}
    else:
        with pytest.raises(DataLoss):
            continuing.rebuild({TP: INPUT})


def test_a_topic_that_is_missing_during_a_rebuild_is_asked_for_again(dispatcher: Dispatcher) -> None:
    result = RebuildResult(closed=(CLOSED,))
    dispatcher.engine.results = [TopicNotFound("log"), {TP: result}]
    assert dispatcher.rebuild({TP: INPUT}) == {TP: result}


def test_the_objects_of_a_deleted_topic_end_the_driver_with_the_key_of_the_first(dispatcher: Dispatcher) -> None:
    key = "s3://archive/topics/gone/p/gone+0+0000000002.json"
    with pytest.raises(DataLoss, match=r"of gone-0 \(offsets 2 to 6\), and 1 more of this topic-partition") as error:
        dispatcher.rebuild({GONE: INPUT})
    assert key in str(error.value)
    assert "topic gone was deleted in Kafka" in str(error.value)


def test_with_continue_the_objects_of_a_deleted_topic_are_lost_and_the_others_rebuilt(continuing: Dispatcher) -> None:
    continuing.state = msgspec.structs.replace(continuing.state, kafka=KafkaIdentity("function", {}))
    done = RebuildResult(closed=(CLOSED,))
    continuing.engine.results = [{TP: done}]
    results = continuing.rebuild({GONE: INPUT, TP: INPUT})
    assert results[TP] == done
    assert [(each.found.count, each.absent) for each in results[GONE].missing] == [(0, 5), (0, 4)]
