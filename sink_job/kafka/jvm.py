"""A JVM for the admin client where there is no Spark session (`s3sink status`, `s3sink verify`)."""

from collections.abc import Sequence
from pathlib import Path

from py4j.java_gateway import JavaGateway


def plain_jvm(jars: Sequence[Path]) -> JavaGateway:
    """A JVM with `jars` (kafka-clients) and PySpark's own on its class path; it ends with `gateway.shutdown()` or this process."""
    raise NotImplementedError
