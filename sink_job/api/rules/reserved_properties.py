"""Reserved and secret properties of Kafka clients and of Spark.

A manifest must not set reserved properties: exactly-once delivery depends on some (isolation, start offsets,
speculation), bounded memory on others (fetch sizes), and some have their own field in the spec. The error names the
field to use instead. Values of secret properties are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "[hidden]"

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|jaas|credential|user\.?info|private|certificate|(access|api)[._-]?key"
    r"|(?<![a-z])key(store)?$|store\.key|token$",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(r"-----BEGIN|passw(or)?d\s*=|secret\s*=|LoginModule|://[^/@\s]*@", re.IGNORECASE)

SECRET_NAMES: Final = r"(?i)(passw(or)?d|passphrase|secret|secret[._-]?(access[._-])?key|keystore[.]key)$"
"""Names of properties that always have secret values. The API server uses this pattern too, as RE2."""
LOGIN: Final = "sasl.jaas.config"
LOGIN_SECRETS: Final = r"(?i)(password|secret)\s*="
"""Options of a JAAS login with a secret value. A login by ticket or file has none of them."""
BY_SECRET: Final = "a manifest must not contain secrets: use spec.kafka.propertySecrets"
BY_POD: Final = "a manifest must not contain secrets: mount it from a Secret with podTemplate"

_BY_SINK = "the sink manages the assignment of topic-partitions"
_BY_BUDGET = "the sink derives it from the memory of a task; use spec.rounds.maxBytes to limit a round"
_BY_CONVERTER = "the sink reads bytes; use spec.format.converter and spec.format.keyConverter"
_BY_LEDGER = "the sink commits offsets after it has published their objects"

KAFKA_OWNED: Final[Mapping[str, str]] = {
    "allow.auto.create.topics": "the sink never creates topics",
    "auto.commit.interval.ms": _BY_LEDGER,
    "auto.offset.reset": "use spec.kafka.startingOffsets",
    "bootstrap.servers": "use spec.kafka.bootstrapServers",
    "enable.auto.commit": _BY_LEDGER,
    "exclude.internal.topics": "use spec.kafka.topics or spec.kafka.topicsPattern",
    "fetch.max.bytes": _BY_BUDGET,
    "fetch.max.wait.ms": "use spec.rounds.maxDelay",
    "fetch.min.bytes": "use spec.rounds.minBytes",
    "group.id": "use spec.kafka.groupId",
    "group.instance.id": _BY_SINK,
    "group.protocol": _BY_SINK,
    "group.remote.assignor": _BY_SINK,
    "heartbeat.interval.ms": _BY_SINK,
    "interceptor.classes": "an interceptor could change or drop records without a record in the ledger",
    "isolation.level": "use spec.kafka.isolationLevel",
    "key.deserializer": _BY_CONVERTER,
    "key.serializer": _BY_CONVERTER,
    "max.partition.fetch.bytes": _BY_BUDGET,
    "max.poll.interval.ms": _BY_SINK,
    "max.poll.records": _BY_BUDGET,
    "partition.assignment.strategy": _BY_SINK,
    "receive.buffer.bytes": _BY_BUDGET,
    "session.timeout.ms": _BY_SINK,
    "value.deserializer": _BY_CONVERTER,
    "value.serializer": _BY_CONVERTER,
}

_BY_STATE = "the sink manages this property"
_BY_EXECUTOR_MEMORY = "use spec.executor.memory"
_BY_DRIVER_MEMORY = "use spec.driver.memory"
_BY_IMAGE = "use spec.image and spec.imagePullSecrets"
_BY_TEMPLATE = "use spec.executor.podTemplate and spec.driver.podTemplate"

SPARK_OWNED: Final[Mapping[str, str]] = {
    "spark.app.id": _BY_STATE,
    "spark.app.name": _BY_STATE,
    "spark.driver.bindAddress": _BY_STATE,
    "spark.driver.cores": "use spec.driver.cores",
    "spark.driver.host": _BY_STATE,
    "spark.driver.memory": _BY_DRIVER_MEMORY,
    "spark.driver.memoryOverhead": _BY_DRIVER_MEMORY,
    "spark.driver.memoryOverheadFactor": _BY_DRIVER_MEMORY,
    "spark.driver.port": _BY_STATE,
    "spark.executor.cores": "use spec.executor.cores",
    "spark.executor.instances": "use spec.executor.instances",
    "spark.executor.memory": _BY_EXECUTOR_MEMORY,
    "spark.executor.memoryOverhead": _BY_EXECUTOR_MEMORY,
    "spark.executor.memoryOverheadFactor": _BY_EXECUTOR_MEMORY,
    "spark.executor.pyspark.memory": _BY_EXECUTOR_MEMORY,
    "spark.kubernetes.container.image": _BY_IMAGE,
    "spark.kubernetes.container.image.pullSecrets": _BY_IMAGE,
    "spark.kubernetes.driver.container.image": _BY_IMAGE,
    "spark.kubernetes.driver.podTemplateFile": _BY_TEMPLATE,
    "spark.kubernetes.driver.pod.name": _BY_STATE,
    "spark.kubernetes.executor.container.image": _BY_IMAGE,
    "spark.kubernetes.executor.podNamePrefix": _BY_STATE,
    "spark.kubernetes.executor.podTemplateFile": _BY_TEMPLATE,
    "spark.kubernetes.namespace": "executors run in the namespace of the sink",
    "spark.master": "use spec.executor.mode",
    "spark.python.unix.domain.socket.enabled": _BY_STATE,
    "spark.speculation": "concurrent attempts of one task would upload the same data twice",
    "spark.submit.deployMode": _BY_STATE,
    "spark.task.cpus": "use spec.executor.cores",
}

SPARK_OWNED_PREFIXES: Final[Mapping[str, str]] = {
    "spark.dynamicAllocation.": "use spec.executor.instances",
    "spark.kubernetes.authenticate.": "the operator creates the service account; use spec.serviceAccount",
}


def kafka_property_error(name: str) -> str | None:
    """The reason why a manifest must not set the Kafka property `name`; None if it may."""
    if name.startswith("kafka."):
        return f"must not have the prefix kafka.: use {name.removeprefix('kafka.')}"
    owner = KAFKA_OWNED.get(name)
    return f"cannot be set here: {owner}" if owner else None


def kafka_secret_error(name: str, value: str) -> str | None:
    """The reason why a manifest must not contain the value of the Kafka property `name`; None if it may."""
    secret = re.search(SECRET_NAMES, name) or (name == LOGIN and re.search(LOGIN_SECRETS, value))
    return f"cannot be set here: {BY_SECRET}" if secret else None


def spark_property_error(name: str) -> str | None:
    """The reason why a manifest must not set the Spark property `name`; None if it may."""
    if not name.startswith("spark."):
        return "is not a Spark property: the name must start with spark."
    owner = SPARK_OWNED.get(name) or next(
        (why for start, why in SPARK_OWNED_PREFIXES.items() if name.startswith(start)), None
    )
    if owner is None and re.search(SECRET_NAMES, name):
        return f"cannot be set here: {BY_POD}"
    return f"cannot be set here: {owner}" if owner else None


def is_secret(name: str) -> bool:
    """True if a property has the name of a secret."""
    return bool(_SECRET_NAME.search(name))


def looks_secret(text: str) -> bool:
    """True if a text looks like it contains a secret."""
    return bool(_SECRET_TEXT.search(text))


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """`properties` for logs, with `HIDDEN` in place of values that may be secrets."""
    return {name: HIDDEN if is_secret(name) or looks_secret(value) else value for name, value in properties.items()}
