"""Reads exact offset ranges from Kafka in Spark's tasks, past Spark's rows.

Spark plans, schedules, retries and supervises the tasks. The records do not become rows, which cost a microsecond each
and a way through several buffers: in the JVM of the task a consumer reads the ranges, and a thread sends batches of
records over a Unix socket to the Python worker of the same task (RangeSender.java, frames.py). See docs/adr/0044.

The driver has the classes in a jar (`java_classes`), which `SparkContext.addJar` announces to the executors. They
download the jar from the driver before their first task. This works in local mode and with executor pods, and the image
does not need the jar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range
from sink_job.kafka.java_classes import class_jar, new_instance
from sink_job.spark.frames import socket_prefix
from sink_job.spark.pyspark_core import RDD, NoOpSerializer, SparkContext

SOCKET_DIR = "spark.python.unix.domain.socket.dir"
"""Spark's property with the directory of the sockets between JVM and Python workers."""

BATCH_BYTES = 2 << 20
"""Bytes of values in a batch of records. A larger value is in a batch of its own."""

FETCH_BYTES = 4 << 20
"""Bytes of a fetch. Each concurrent task has a consumer, whose heap has two: one that is read, and the next one. The
ranges of a task that are fetched together share them (RangeGroup.java)."""

IDLE_MS = 60_000
"""Time after which an unused consumer is closed: a sink has rounds more often, or none for long."""

_MAX_POLL_RECORDS = 5_000  # few enough that the objects of a poll stay in the caches of the CPU
_BYTES = "org.apache.kafka.common.serialization.ByteBufferDeserializer"
_CLASS = "s3sink.RangeReader"
_SOURCES = ("RangeReader", "RangeSender", "RangeConsumer", "RangeGroup", "Frame")
TaskRanges = Sequence[tuple[TopicPartition, Range]]


class RangeReader:
    """Reads from one cluster. The JVMs of the tasks keep their consumers between reads."""

    def __init__(
        self,
        context: SparkContext,
        client: Mapping[str, str],
        *,
        poll_timeout_ms: int = 15_000,
        idle_ms: int = IDLE_MS,
    ) -> None:
        """`client`: properties of a Kafka consumer, with secrets in plain text. `poll_timeout_ms`: maximum time without
        a record of the range. `idle_ms`: time after which an unused consumer is closed."""
        gateway = context._gateway
        assert gateway is not None
        self._context = context
        self._poll_timeout_ms = poll_timeout_ms
        self._idle_ms = idle_ms
        self._client = gateway.jvm.java.util.HashMap()
        for name, value in self._consumer(client).items():
            self._client.put(name, value)
        self._reader = self._shipped_reader(gateway)
        self.sockets = socket_prefix(str(context.getConf().get(SOCKET_DIR)))

    def read(self, tasks: Sequence[TaskRanges], columns: Columns) -> RDD[Any]:
        """An RDD without elements, with one partition per element of `tasks`. Each sends the records of its ranges to
        the socket of its task (`frames.socket_path`)."""
        plan = "".join(
            " ".join(f"{tp.topic} {tp.partition} {r.start} {r.end}" for tp, r in task) + "\n" for task in tasks
        )
        settings = self._reader.settings(
            self.sockets, self._client, self._poll_timeout_ms, self._idle_ms, BATCH_BYTES, *columns
        )
        return RDD(self._reader.read(self._context._jsc.sc(), plan, settings), self._context, NoOpSerializer())

    def _shipped_reader(self, gateway: Any) -> Any:
        """A RangeReader of Java. Sends its classes to the executors, once per context."""
        folder = files("sink_job.spark")
        source, *others = (folder / f"{name}.java" for name in _SOURCES)
        reader = new_instance(gateway, source, _CLASS, *others)
        jar = class_jar(gateway, source, _CLASS, *others, folder=Path(self._context._temp_dir))
        if not any(str(url).endswith(f"/{jar.name}") for url in self._context._jsc.jars()):
            self._context._jsc.addJar(str(jar))
        return reader

    def _consumer(self, client: Mapping[str, str]) -> dict[str, str]:
        return {
            "enable.metrics.push": "false",
            "auto.include.jmx.reporter": "false",
            "fetch.max.wait.ms": "5",
            "receive.buffer.bytes": str(1 << 20),
            "default.api.timeout.ms": str(self._poll_timeout_ms),
            "request.timeout.ms": str(self._poll_timeout_ms),
            **client,
            "max.partition.fetch.bytes": str(FETCH_BYTES),
            "max.poll.records": str(_MAX_POLL_RECORDS),
            "key.deserializer": _BYTES,
            "value.deserializer": _BYTES,
            "auto.offset.reset": "none",
            "enable.auto.commit": "false",
        }
