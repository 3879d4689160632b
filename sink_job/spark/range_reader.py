"""Reads exact offset ranges from Kafka as a DataFrame of columnar batches, with Spark's own Kafka RDD.

Spark's data source (`spark.read.format("kafka")`) adds to that RDD an admin client for each read, its own assignment of
tasks, and one row per record. A row costs Spark a microsecond, and the read of a small record takes a fraction of that.
So a row here is a *columnar batch* of many records of one topic-partition. ColumnarBatcher.java creates the batches,
columnar_batch.py reads them.

ColumnarBatcher runs in the executors. The driver compiles its class at the start and writes it to a jar, which
`SparkContext.addJar` announces to the executors. An executor downloads the jar from the driver before its first task.
This works in local mode and with executor pods, and the image does not need the jar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range
from sink_job.kafka.jvm import bytecodes, new_instance
from sink_job.spark.fetch import pool_group

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
TaskRanges = Sequence[tuple[TopicPartition, Range]]


class RangeReader:
    """Reads from one cluster. The executors keep their consumers between reads."""

    def __init__(
        self, spark: SparkSession, client: Mapping[str, str], *, group_id: str, poll_timeout_ms: int = 15_000
    ) -> None:
        """`client`: properties of a Kafka consumer, with secrets in plain text. `group_id`: prefix of its group ids.
        `poll_timeout_ms`: maximum time of a poll without an answer."""
        self._spark = spark
        self._client = dict(client)
        self._group_id = group_id
        self._poll_timeout_ms = poll_timeout_ms
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        self._java_map = gateway.jvm.java.util.HashMap
        self._ranges = new_instance(gateway, files("sink_job.spark") / "RangeReader.java", "s3sink.RangeReader")
        self._batcher = self._shipped_batcher()

    def read(self, tasks: Sequence[TaskRanges], columns: Columns, *, fetch_bytes: int) -> DataFrame:
        """A DataFrame of columnar batches, with one partition per element of `tasks`.

        `fetch_bytes`: the fetch size, one of `fetch.SIZES`. Kafka still returns a single larger record batch.
        """
        plan = "\n".join(" ".join(f"{tp.topic} {tp.partition} {r.start} {r.end}" for tp, r in task) for task in tasks)
        params = self._java_map()
        for name, value in self._consumer(fetch_bytes).items():
            params.put(name, value)
        batcher = self._batcher.of(_BATCH_BYTES, *columns)
        session = self._spark._jsparkSession
        batches = self._ranges.read(session, params, plan, self._poll_timeout_ms, batcher, batcher.schema())
        return DataFrame(batches, self._spark)

    def _shipped_batcher(self) -> Any:
        """A ColumnarBatcher. Sends its class to the executors, once per session."""
        context = self._spark.sparkContext
        gateway, source, name = (
            context._gateway,
            files("sink_job.spark") / "ColumnarBatcher.java",
            "s3sink.ColumnarBatcher",
        )
        assert gateway is not None
        jar = Path(context._temp_dir) / "s3sink.jar"
        if not jar.exists():
            self._ranges.writeJar(bytecodes(gateway, source, name), str(jar))
            context._jsc.addJar(str(jar))
        return new_instance(gateway, source, name)

    def _consumer(self, fetch_bytes: int) -> dict[str, str]:
        return {
            "enable.metrics.push": "false",
            "auto.include.jmx.reporter": "false",
            "fetch.max.wait.ms": "5",
            "receive.buffer.bytes": str(1 << 20),
            "default.api.timeout.ms": str(self._poll_timeout_ms),
            "request.timeout.ms": str(self._poll_timeout_ms),
            **self._client,
            "max.partition.fetch.bytes": str(fetch_bytes),
            "max.poll.records": str(_MAX_POLL_RECORDS),
            "group.id": pool_group(self._group_id, fetch_bytes),
            "key.deserializer": _BYTES,
            "value.deserializer": _BYTES,
            "auto.offset.reset": "none",
            "enable.auto.commit": "false",
        }


_BATCH_BYTES = 1 << 20  # bytes of values
_MAX_POLL_RECORDS = 50_000  # large, because each poll sends two requests for the available offsets to the broker
