"""A Kafka admin client without Spark, for commands that only query Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sink_job.driver.broker_check import BROKER_TIMEOUT_S, wait_for_broker
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.jvm import plain_jvm
from sink_job.kafka.properties import KafkaProperties
from sink_job.spark.login_jars import kafka_jars


@contextmanager
def admin(
    properties: KafkaProperties, *, timeout_ms: int = 30_000, connect_timeout_s: float = BROKER_TIMEOUT_S
) -> Iterator[JavaKafkaAdmin]:
    """An admin client in its own JVM. Both end with the context.

    `connect_timeout_s`: how long to wait for a broker to accept a connection. `timeout_ms`: timeout of one request.
    Raises the errors of `wait_for_broker`, `JavaKafkaAdmin` and `kafka_jars`, and ConfigurationError if
    Java is not installed.
    """
    wait_for_broker(properties.bootstrap_servers, timeout_s=connect_timeout_s)
    gateway = plain_jvm(kafka_jars(properties), options=properties.java_options)
    try:
        with JavaKafkaAdmin(gateway, properties, timeout_ms=timeout_ms) as client:
            yield client
    finally:
        gateway.shutdown()
