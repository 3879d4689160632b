"""An admin client where there is no Spark: for commands that only ask Kafka something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sink_job.driver.broker_check import BROKER_TIMEOUT_S, wait_for_broker
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.jvm import plain_jvm
from sink_job.kafka.properties import KafkaProperties
from sink_job.spark.jars import connector_jars


@contextmanager
def admin(
    properties: KafkaProperties, *, timeout_ms: int = 30_000, patience_s: float = BROKER_TIMEOUT_S
) -> Iterator[JavaKafkaAdmin]:
    """An admin client in a JVM of its own, both ended at the end.

    `patience_s`: how long brokers may take to come up; `timeout_ms`: how long one question may take. Raises what
    `wait_for_broker`, `Admin` and `connector_jars` raise, and ConfigurationError without a Java.
    """
    wait_for_broker(properties.bootstrap_servers, patience_s=patience_s)
    gateway = plain_jvm(connector_jars())
    try:
        with JavaKafkaAdmin(gateway, properties, timeout_ms=timeout_ms) as client:
            yield client
    finally:
        gateway.shutdown()
