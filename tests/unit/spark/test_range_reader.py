"""The reader of offset ranges: the plan and the consumer settings that the JVM gets. The JVM is a stand-in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range
from sink_job.spark import range_reader
from sink_job.spark.range_reader import FETCH_BYTES, RangeReader

A, B = TopicPartition("t", 0), TopicPartition("u.v", 12)


class JavaMap(dict[str, str]):
    def put(self, name: str, value: str) -> None:
        self[name] = value


class Jvm:
    """A context, and the classes of the reader in its JVM."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plans: list[str] = []
        self.given: list[tuple[Any, ...]] = []
        self.added: list[str] = []
        self._gateway = SimpleNamespace(
            jvm=SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(HashMap=JavaMap)))
        )
        self._temp_dir = str(folder)
        self._jsc = SimpleNamespace(addJar=self.added.append, jars=lambda: self.added, sc=lambda: "context")

    @property
    def consumers(self) -> list[dict[str, str]]:
        return [dict(client) for _, client, *_ in self.given]

    def getConf(self) -> Any:  # noqa: N802
        return SimpleNamespace(get=lambda name: str(self.folder))

    def settings(self, *given: Any) -> str:
        self.given.append(given)
        return "settings"

    def read(self, context: str, plan: str, settings: str) -> str:
        self.plans.append(plan)
        return "batches"


@pytest.fixture
def jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jvm:
    made = Jvm(tmp_path)
    monkeypatch.setattr(range_reader, "new_instance", lambda *_: made)
    monkeypatch.setattr(range_reader, "class_jar", lambda *_, folder: folder / "s3sink.jar")
    monkeypatch.setattr(range_reader, "RDD", lambda batches, context, serializer: batches)
    return made


def reader(jvm: Jvm, **client: str) -> RangeReader:
    context: Any = jvm
    return RangeReader(context, {"bootstrap.servers": "kafka:9092", **client}, poll_timeout_ms=900)


def test_a_plan_has_a_line_for_each_task_with_its_exact_ranges(jvm: Jvm) -> None:
    tasks = [[(A, Range(5, 2**53)), (B, Range(0, 0))], [(B, Range(7, 8))]]
    assert reader(jvm).read(tasks, Columns()) == "batches"  # type: ignore[comparison-overlap]
    assert jvm.plans == [f"t 0 5 {2**53} u.v 12 0 0\nu.v 12 7 8\n"]
    assert 900 in jvm.given[0]


def test_only_the_columns_of_the_round_are_read(jvm: Jvm) -> None:
    reader(jvm).read([], Columns(key=True, timestamp_type=True, separator=b"\n"))
    [given] = jvm.given
    assert given[-5:] == (False, True, False, True, b"\n")


def test_a_property_of_the_user_replaces_a_default_but_none_that_decides_what_is_read(jvm: Jvm) -> None:
    users = {"fetch.max.wait.ms": "50", "max.poll.records": "1", "auto.offset.reset": "latest"}
    reader(jvm, **users).read([], Columns())
    [consumer] = jvm.consumers
    assert (consumer["bootstrap.servers"], consumer["fetch.max.wait.ms"]) == ("kafka:9092", "50")
    assert (consumer["auto.offset.reset"], consumer["enable.auto.commit"]) == ("none", "false")
    assert consumer["max.partition.fetch.bytes"] == str(FETCH_BYTES)
    assert consumer["max.poll.records"] != "1"


def test_a_poll_that_gets_no_answer_ends_with_the_timeout_of_the_reader(jvm: Jvm) -> None:
    reader(jvm).read([], Columns())
    [consumer] = jvm.consumers
    assert (consumer["default.api.timeout.ms"], consumer["request.timeout.ms"]) == ("900", "900")


def test_the_executors_get_the_class_of_batches_once_for_each_session(jvm: Jvm) -> None:
    reader(jvm)
    reader(jvm)
    assert jvm.added == [str(jvm.folder / "s3sink.jar")]


def test_the_properties_of_the_caller_are_not_changed(jvm: Jvm) -> None:
    client = {"bootstrap.servers": "kafka:9092"}
    context: Any = jvm
    RangeReader(context, client).read([], Columns())
    assert client == {"bootstrap.servers": "kafka:9092"}
