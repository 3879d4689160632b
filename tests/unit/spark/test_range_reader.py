"""The reader of offset ranges: the plan and the consumer settings that the JVM gets. The JVM is a stand-in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range
from sink_job.spark import range_reader
from sink_job.spark.range_reader import RangeReader

A, B = TopicPartition("t", 0), TopicPartition("u.v", 12)


class JavaMap(dict[str, str]):
    def put(self, name: str, value: str) -> None:
        self[name] = value


class Jvm:
    """The classes of the reader in the JVM: RangeReader and ColumnarBatcher."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plans: list[str] = []
        self.consumers: list[dict[str, str]] = []
        self.timeouts: list[int] = []
        self.batchers: list[tuple[Any, ...]] = []
        self.added: list[str] = []
        self.spark: Any = SimpleNamespace(_jsparkSession="session", sparkContext=self)
        self._gateway = SimpleNamespace(
            jvm=SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(HashMap=JavaMap)))
        )
        self._temp_dir = str(folder)
        self._jsc = SimpleNamespace(addJar=self.added.append)

    def instance(self, gateway: object, source: object, name: str) -> Any:
        return {"s3sink.RangeReader": self, "s3sink.ColumnarBatcher": SimpleNamespace(of=self.of)}[name]

    def of(self, *arguments: Any) -> Any:
        self.batchers.append(arguments)
        return SimpleNamespace(schema=lambda: "schema")

    def writeJar(self, code: object, path: str) -> None:  # noqa: N802
        Path(path).touch()

    def read(self, session: str, params: JavaMap, plan: str, timeout_ms: int, batcher: object, schema: str) -> str:
        self.plans.append(plan)
        self.consumers.append(dict(params))
        self.timeouts.append(timeout_ms)
        return "batches"


@pytest.fixture
def jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jvm:
    found = Jvm(tmp_path)
    monkeypatch.setattr(range_reader, "new_instance", found.instance)
    monkeypatch.setattr(range_reader, "bytecodes", lambda *_: {})
    monkeypatch.setattr(range_reader, "DataFrame", lambda batches, spark: batches)
    return found


def reader(jvm: Jvm, **client: str) -> RangeReader:
    return RangeReader(jvm.spark, {"bootstrap.servers": "kafka:9092", **client}, group_id="g", poll_timeout_ms=900)


def test_a_plan_has_a_line_for_each_task_with_its_exact_ranges(jvm: Jvm) -> None:
    tasks = [[(A, Range(5, 2**53)), (B, Range(0, 0))], [(B, Range(7, 8))]]
    assert reader(jvm).read(tasks, Columns(), fetch_bytes=1 << 20) == "batches"  # type: ignore[comparison-overlap]
    assert jvm.plans == [f"t 0 5 {2**53} u.v 12 0 0\nu.v 12 7 8"]
    assert jvm.timeouts == [900]


def test_only_the_columns_of_the_round_are_read(jvm: Jvm) -> None:
    reader(jvm).read([], Columns(key=True, timestamp_type=True), fetch_bytes=1 << 20)
    [(_, *columns)] = jvm.batchers
    assert columns == [False, True, False, True]


def test_a_property_of_the_user_replaces_a_default_but_none_that_decides_what_is_read(jvm: Jvm) -> None:
    users = {"fetch.max.wait.ms": "50", "max.poll.records": "1", "auto.offset.reset": "latest", "group.id": "mine"}
    reader(jvm, **users).read([], Columns(), fetch_bytes=2 << 20)
    [consumer] = jvm.consumers
    assert (consumer["bootstrap.servers"], consumer["fetch.max.wait.ms"]) == ("kafka:9092", "50")
    assert (consumer["auto.offset.reset"], consumer["enable.auto.commit"]) == ("none", "false")
    assert (consumer["group.id"], consumer["max.partition.fetch.bytes"]) == ("g-fetch-2m", str(2 << 20))
    assert consumer["max.poll.records"] != "1"


def test_consumers_of_another_fetch_size_have_another_group(jvm: Jvm) -> None:
    """Spark rejects a cached consumer with other parameters."""
    found = reader(jvm)
    for size in (4 << 20, 2 << 20, 4 << 20):
        found.read([], Columns(), fetch_bytes=size)
    first, second, third = jvm.consumers
    assert first == third
    assert first["group.id"] != second["group.id"]


def test_a_poll_that_gets_no_answer_ends_with_the_timeout_of_the_reader(jvm: Jvm) -> None:
    reader(jvm).read([], Columns(), fetch_bytes=1 << 20)
    [consumer] = jvm.consumers
    assert (consumer["default.api.timeout.ms"], consumer["request.timeout.ms"]) == ("900", "900")


def test_the_executors_get_the_class_of_batches_once_for_each_session(jvm: Jvm) -> None:
    reader(jvm)
    reader(jvm)
    assert jvm.added == [str(jvm.folder / "s3sink.jar")]


def test_the_properties_of_the_caller_are_not_changed(jvm: Jvm) -> None:
    client = {"bootstrap.servers": "kafka:9092"}
    RangeReader(jvm.spark, client, group_id="g").read([], Columns(), fetch_bytes=1 << 20)
    assert client == {"bootstrap.servers": "kafka:9092"}
