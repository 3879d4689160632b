"""Timestamps of single records, read by a consumer in the JVM that belongs to no group.

It gives the age of the lag. One request for all topic-partitions; each fetch is at most one batch of a topic-partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from py4j.java_gateway import JavaGateway

from sink_job.api.errors import SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.kafka.admin import format_positions, parse_offsets
from sink_job.kafka.errors import domain_error, parse_chain
from sink_job.kafka.java_classes import new_instance
from sink_job.kafka.properties import KafkaProperties

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_SETTINGS = {
    "client.id": "s3sink-lag",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "enable.auto.commit": "false",
    "auto.offset.reset": "none",
    "enable.metrics.push": "false",
    "max.poll.records": "1",
    "fetch.min.bytes": "1",
    "fetch.max.wait.ms": "200",
    "fetch.max.bytes": str(1 << 20),
    "max.partition.fetch.bytes": str(16 << 10),  # a larger batch is fetched alone
}


def time_reader(gateway: JavaGateway) -> Any:
    """The consumer of timestamps in Java, in the gateway's JVM."""
    return new_instance(gateway, files("sink_job.kafka") / "RecordTimes.java", "s3sink.RecordTimes")


class RecordTimes:
    """The consumer of one cluster. One thread calls `read` and `close`; `stop` is thread-safe."""

    def __init__(self, gateway: JavaGateway, properties: KafkaProperties) -> None:
        """Does not connect."""
        self._properties = properties
        settings = gateway.jvm.java.util.HashMap()
        for name, value in (properties.client() | _SETTINGS).items():
            settings.put(name, value)
        self._reader = time_reader(gateway)
        self._reader.open(settings)

    def read(self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int) -> dict[TopicPartition, int]:
        """The timestamp in ms since the epoch of the first record at or after each offset.

        Without the topic-partitions that have no such record, whose record has no timestamp, and those that did not
        answer within `timeout_ms`. Raises the errors of `JavaKafkaAdmin`.
        """
        if not offsets:
            return {}
        text = str(self._reader.read(format_positions(offsets), timeout_ms))
        if text.startswith("+"):
            return {tp: ms for tp, ms in parse_offsets(text[1:]).items() if ms >= 0}
        chain = parse_chain(self._properties.redact(text[1:]))
        error: SinkError = domain_error(
            chain, doing="read the timestamps of the lag", servers=self._properties.bootstrap_servers
        )
        raise error

    def stop(self) -> None:
        """Ends `read` early, now and later."""
        self._reader.stop()

    def close(self) -> None:
        """Closes the connections."""
        self._reader.close()
