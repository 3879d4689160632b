"""Rounds of the reader on real Spark with a real broker, and what they leave in the JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import SparkContext

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, PartitionFunction, Range, stateless
from sink_job.kafka.java_classes import new_instance
from sink_job.spark.engine import SparkEngine
from sink_job.spark.range_reader import IDLE_MS
from tests.support import spark_tasks

_VALUES = Columns()
THREAD = "s3sink reader o"
"""The name of a reader's thread, as the system cuts it off."""


def engine_of(
    spark: SparkContext, properties: Mapping[str, str], poll_timeout_ms: int = 10_000, idle_ms: int = IDLE_MS
) -> SparkEngine:
    client = {"isolation.level": "read_committed", **properties}
    return SparkEngine(spark, client, poll_timeout_ms=poll_timeout_ms, idle_ms=idle_ms)


def run(
    engine: SparkEngine,
    fn: PartitionFunction,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    idle: Sequence[TopicPartition] = (),
    inputs: Mapping[TopicPartition, bytes] | None = None,
    columns: Columns = _VALUES,
) -> dict[TopicPartition, bytes]:
    return engine.run(
        ranges={tp: Range(*offsets) for tp, offsets in ranges.items()},
        idle=idle,
        inputs=inputs or {},
        columns=columns,
        factory=stateless(fn),
    )


def rows(engine: SparkEngine, tp: TopicPartition, start: int, end: int, **columns: Any) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(
        run(engine, spark_tasks.rows_as_json, {tp: (start, end)}, columns=Columns()._replace(**columns))[tp]
    )
    return read


def offsets(engine: SparkEngine, tp: TopicPartition, start: int, end: int) -> list[int]:
    return [row["offset"] for row in rows(engine, tp, start, end)]


class Traces(NamedTuple):
    """What rounds could leave behind."""

    files: int
    sockets: int
    socket_files: int
    threads: int
    consumers: int


class Jvm:
    """The JVM of the session, which runs the tasks too."""

    def __init__(self, spark: SparkContext) -> None:
        assert spark._jvm is not None
        self._jvm: Any = spark._jvm
        source = files("tests.support") / "JvmTraces.java"
        self._beans = new_instance(spark._gateway, source, "s3sink.tests.JvmTraces")
        self._proc = Path("/proc") / str(self._jvm.java.lang.ProcessHandle.current().pid())

    def traces(self, engine: SparkEngine) -> Traces:
        opened = self._open_files()
        sockets = Path(engine._reader.sockets)
        return Traces(
            files=len(opened),
            sockets=sum(name.startswith("socket:") for name in opened),
            socket_files=sum(1 for _ in sockets.parent.glob(f"{sockets.name}*")),
            threads=self.threads(),
            consumers=len(self.consumers()),
        )

    def threads(self) -> int:
        """The number of readers' threads."""
        return sum(name == THREAD for name in map(_comm, self._proc.glob("task/*/comm")))

    def direct_bytes(self) -> int:
        """The bytes of buffers outside the heap, with those that no one uses and no collection has freed."""
        return int(self._beans.directBytes())

    def consumers(self) -> set[str]:
        """The names of all open consumers."""
        return set(self._beans.consumers().split())

    def log_seeks(self, enabled: bool) -> None:
        """Whether each `seek` of a consumer is logged."""
        log4j = self._jvm.org.apache.logging.log4j
        context = log4j.LogManager.getContext(False)
        level = log4j.Level.INFO if enabled else log4j.Level.OFF
        context.getConfiguration().getLoggerConfig("org.apache.kafka").setLevel(level)
        context.updateLoggers()

    def _open_files(self) -> list[str]:
        found = []
        for file in (self._proc / "fd").iterdir():
            try:
                found.append(str(file.readlink()))
            except FileNotFoundError:  # closed meanwhile
                continue
        return found


def _comm(path: Path) -> str:
    try:
        return path.read_text().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return ""
