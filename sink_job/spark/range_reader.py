"""Exact offset ranges of Kafka as a DataFrame of packs, one task for each list of ranges, by Spark's own Kafka RDD.

Spark's data source (`spark.read.format("kafka")`) puts around that RDD an admin client of its own for every read, an
order of tasks of its own, and a row for each record. A row costs Spark a microsecond, and a small record is read in a
fraction of that: so here a row is a *pack*, many records of one topic-partition (ColumnarBatcher.java makes them,
pack.py reads them).

ColumnarBatcher runs in the executors. Its class, compiled in the driver at the start, goes into a jar that
`SparkContext.addJar` names to them: Spark's driver serves it, and an executor fetches it before its first task and puts
it on the class path of its tasks. So it is in local mode, where the only executor is in the driver's JVM, and so with
executors elsewhere, which have to reach the driver anyway; an image need not hold the jar.
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
    """Reads from one cluster, with consumers that the executors keep from read to read."""

    def __init__(
        self, spark: SparkSession, client: Mapping[str, str], *, group_id: str, poll_timeout_ms: int = 15_000
    ) -> None:
        """`client`: a Kafka consumer's properties, in clear. A poll without an answer fails after `poll_timeout_ms`."""
        self._spark = spark
        self._client = dict(client)
        self._group_id = group_id
        self._poll_timeout_ms = poll_timeout_ms
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        self._java_map = gateway.jvm.java.util.HashMap
        self._ranges = new_instance(gateway, files("sink_job.spark") / "RangeReader.java", "s3sink.RangeReader")
        self._packer = self._known_packer()

    def read(self, tasks: Sequence[TaskRanges], columns: Columns, *, fetch_bytes: int) -> DataFrame:
        """The records of `tasks`, a partition of the DataFrame each, as packs with what `columns` asks for.

        `fetch_bytes`: what a fetch may bring, one of `fetch.SIZES` (a single larger batch of records still comes).
        """
        plan = "\n".join(" ".join(f"{tp.topic} {tp.partition} {r.start} {r.end}" for tp, r in task) for task in tasks)
        params = self._java_map()
        for name, value in self._consumer(fetch_bytes).items():
            params.put(name, value)
        packer = self._packer.of(_PACK_BYTES, columns.timestamp, columns.key, columns.headers)
        session = self._spark._jsparkSession
        packs = self._ranges.read(session, params, plan, self._poll_timeout_ms, packer, packer.schema())
        return DataFrame(packs, self._spark)

    def _known_packer(self) -> Any:
        """A ColumnarBatcher, whose class the executors are told of, once a session."""
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


_PACK_BYTES = 1 << 20  # of values
_MAX_POLL_RECORDS = 50_000  # a poll asks the broker for the range it has, twice; so make it count
