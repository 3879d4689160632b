"""Properties of Kafka's client and of Spark: which the sink keeps for itself, and which must never be shown.

Exactly-once delivery rests on some of them (isolation, starting offsets, speculation), bounded memory on others (fetch
sizes), and a few have a field of their own in the spec. Those are refused by name, with the field to use instead.
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
"""Names of properties whose values are secrets for certain. Also read by the API server, as RE2."""
LOGIN: Final = "sasl.jaas.config"
LOGIN_SECRETS: Final = r"(?i)(password|secret)\s*="
"""What a login holds that is a secret: some have none, as with a ticket or a file."""
BY_SECRET: Final = "a manifest is no place for secrets: give its value by spec.kafka.propertySecrets"
BY_POD: Final = "a manifest is no place for secrets: give it to the pods from a Secret, by their podTemplate"

_BY_SINK = "the sink assigns topic-partitions by itself"
_BY_BUDGET = "it comes out of the memory of a task; spec.rounds.maxBytes says how much a round reads"
_BY_CONVERTER = "the sink reads bytes; use spec.format.converter and spec.format.keyConverter"
_BY_LEDGER = "the sink commits offsets by itself, once their objects are visible"

KAFKA_OWNED: Final[Mapping[str, str]] = {
    "allow.auto.create.topics": "the sink creates no topics",
    "auto.commit.interval.ms": _BY_LEDGER,
    "auto.offset.reset": "use spec.kafka.startingOffsets",
    "bootstrap.servers": "use spec.kafka.bootstrapServers",
    "enable.auto.commit": _BY_LEDGER,
    "exclude.internal.topics": "use spec.kafka.topics or spec.kafka.topicsPattern",
    "fetch.max.bytes": _BY_BUDGET,
    "fetch.max.wait.ms": "the sink waits by spec.rounds.maxDelay",
    "fetch.min.bytes": "the sink waits by spec.rounds.minBytes",
    "group.id": "use spec.kafka.groupId",
    "group.instance.id": _BY_SINK,
    "group.protocol": _BY_SINK,
    "group.remote.assignor": _BY_SINK,
    "heartbeat.interval.ms": _BY_SINK,
    "interceptor.classes": "interceptors could change or drop records behind the ledger's back",
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

_BY_STATE = "the sink sets it by itself"
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
    "spark.kubernetes.namespace": "the sink runs in its own namespace",
    "spark.master": "use spec.executor.mode",
    "spark.python.unix.domain.socket.enabled": _BY_STATE,
    "spark.speculation": "two attempts of one task at a time would upload twice",
    "spark.submit.deployMode": _BY_STATE,
    "spark.task.cpus": "use spec.executor.cores",
}

SPARK_OWNED_PREFIXES: Final[Mapping[str, str]] = {
    "spark.dynamicAllocation.": "use spec.executor.instances",
    "spark.kafka.consumer.cache.": _BY_STATE,
    "spark.kubernetes.authenticate.": "the operator makes the service account",
    "spark.sql.execution.arrow.": _BY_STATE,
}


def kafka_complaint(name: str) -> str | None:
    """Why the Kafka property `name` cannot be set in a manifest; None if it can."""
    if name.startswith("kafka."):
        return f"is written without the prefix: {name.removeprefix('kafka.')}"
    owner = KAFKA_OWNED.get(name)
    return f"cannot be set here: {owner}" if owner else None


def login_complaint(name: str, value: str) -> str | None:
    """Why the value of a Kafka property, which may be set, cannot be written into a manifest; None if it can."""
    secret = re.search(SECRET_NAMES, name) or (name == LOGIN and re.search(LOGIN_SECRETS, value))
    return f"cannot be written here: {BY_SECRET}" if secret else None


def spark_complaint(name: str) -> str | None:
    """Why the Spark property `name` cannot be set in a manifest; None if it can."""
    if not name.startswith("spark."):
        return "is not a property of Spark: their names begin with spark."
    owner = SPARK_OWNED.get(name) or next(
        (why for start, why in SPARK_OWNED_PREFIXES.items() if name.startswith(start)), None
    )
    if owner is None and re.search(SECRET_NAMES, name):
        return f"cannot be written here: {BY_POD}"
    return f"cannot be set here: {owner}" if owner else None


def is_secret(name: str) -> bool:
    """Whether a property of this name holds, going by the name, something that must not be shown."""
    return bool(_SECRET_NAME.search(name))


def looks_secret(text: str) -> bool:
    """Whether a text looks as if it held a secret, wherever it stands."""
    return bool(_SECRET_TEXT.search(text))


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """`properties` for logs: values that may be secrets are replaced."""
    return {name: HIDDEN if is_secret(name) or looks_secret(value) else value for name, value in properties.items()}
