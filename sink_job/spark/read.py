"""Exact offset ranges of Kafka as a DataFrame, one task for each list of ranges, by Spark's own Kafka RDD.

Spark's data source (`spark.read.format("kafka")`) puts around that RDD an admin client of its own for every read, two
conversions of every row, and an order of tasks of its own. Without them a record of 100 bytes costs a third less, and
the caller knows which task reads what: no need for topic and partition columns, which would cost that third again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from pyspark.sql import DataFrame, SparkSession

from sink_job.api.types import TopicPartition
from sink_job.kafka.jvm import new_instance
from sink_job.spark.types import Columns, Range

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
        self._ranges = new_instance(gateway, files("sink_job.spark") / "Ranges.java", "s3sink.Ranges")

    def read(
        self, tasks: Sequence[TaskRanges], columns: Columns, *, fetch_bytes: int, with_partition: bool = False
    ) -> DataFrame:
        """The records of `tasks`, a partition of the DataFrame each: `offset`, `value` and what `columns` asks for.

        `fetch_bytes`: what a fetch may bring (a single larger batch of records still comes). `with_partition` adds
        `topic` and `partition` in front, for tasks of more than one range.
        """
        plan = "\n".join(" ".join(f"{tp.topic} {tp.partition} {r.start} {r.end}" for tp, r in task) for task in tasks)
        params = self._java_map()
        for name, value in self._consumer(fetch_bytes).items():
            params.put(name, value)
        frame = DataFrame(
            self._ranges.read(self._spark._jsparkSession, params, plan, self._poll_timeout_ms, columns.headers),
            self._spark,
        )
        return frame.selectExpr(*_select(columns, with_partition))

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
            "group.id": self._group_id,
            "key.deserializer": _BYTES,
            "value.deserializer": _BYTES,
            "auto.offset.reset": "none",
            "enable.auto.commit": "false",
        }


_MAX_POLL_RECORDS = 50_000  # a poll asks the broker for the range it has, twice; so make it count


def _select(columns: Columns, with_partition: bool) -> list[str]:
    return [
        *(["topic", "partition"] if with_partition else []),
        "offset",
        "value",
        *(["unix_millis(timestamp) AS timestamp"] if columns.timestamp else []),
        *(["key"] if columns.key else []),
        *(["headers"] if columns.headers else []),
    ]
