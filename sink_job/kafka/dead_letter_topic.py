"""The producer of dead letters in the JVM (DeadLetterBridge.java): one transaction for the records of a round.

A transaction also commits a number of the ledger, as the offset of a consumer group of its own for partition 0 of the
topic. So after a crash the next driver knows from Kafka alone what is in the topic.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, Final

from py4j.java_gateway import JavaGateway

from sink_job.api.errors import AccessDenied, ConfigurationError, SinkError, TopicNotFound, TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.dead_letter_topic import ID_HEADER, CommittedNumber, DeadLetter, ProducerFenced
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.errors import JavaThrowable, domain_error, parse_chain
from sink_job.kafka.java_classes import new_instance
from sink_job.kafka.properties import KafkaProperties

DEFAULT_MAX_BYTES: Final = 1_048_588
"""Kafka's default of `max.message.bytes`, for a topic whose configuration the sink may not read."""

TRANSACTION_TIMEOUT_MS: Final = 300_000
"""How long Kafka keeps the transaction of a driver that is gone, unless the next one ends it."""

_FIELD: Final = "spec.errors.deadLetters"
_FENCED: Final = {"InvalidProducerEpochException", "ProducerFencedException"}
_INVALID: Final = {"InvalidRecordException", "InvalidTimestampException"}
_NO_TRANSACTIONS: Final = {"UnsupportedVersionException", "InvalidTxnTimeoutException"}
_MAX_INT: Final = 2**31 - 1
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArray"


class JavaDeadLetterTopic:
    """A producer with one name, which is its transactional id and its consumer group.

    Each method raises TransientError (no answer in time), InvalidCredentials, AccessDenied, ConfigurationError, and the
    errors of its own description.
    """

    def __init__(
        self,
        gateway: JavaGateway,
        properties: KafkaProperties,
        admin: JavaKafkaAdmin,
        name: str,
        *,
        transactions: bool,
        timeout_ms: int = 30_000,
    ) -> None:
        """Does not connect. Without `transactions` records can be produced twice."""
        self._gateway = gateway
        self._properties = properties
        self._admin = admin
        self._name = name
        self._transactions = transactions
        self._timeout_ms = timeout_ms
        self._max_bytes = DEFAULT_MAX_BYTES
        self._bridge: Any = new_instance(
            gateway, files("sink_job.kafka") / "DeadLetterBridge.java", "s3sink.DeadLetterBridge"
        )

    def check(self, topic: str) -> int:
        """The maximum size of a record of the topic in bytes. Raises TopicNotFound, AccessDenied if the topic may not
        be written to, and ConfigurationError for a topic that is compacted."""
        what = f"{_FIELD}.topic: Kafka at {self._properties.bootstrap_servers}: topic {topic}"
        found = self._bridge.check(self._admin_settings(), topic, self._timeout_ms)
        try:
            answer = self._answer(found, f"describe topic {topic}")
        except TopicNotFound:
            raise TopicNotFound(f"{what} does not exist. Create it, then start the sink again.") from None
        limit, write, policy = answer.split(" ")
        if write == "0":
            raise AccessDenied(f"{what} may not be written to. Allow the operation Write for it.")
        if "compact" in policy:
            raise ConfigurationError(
                f"{what} is compacted (cleanup.policy is {policy}): Kafka would remove all dead letters of a key but "
                "the last, and reject those without a key. Set cleanup.policy=delete, or use another topic."
            )
        self._max_bytes = int(limit) if int(limit) >= 0 else DEFAULT_MAX_BYTES
        return self._max_bytes

    def start(self) -> None:
        """Starts a producer whose records have the size that the last `check` has found. With transactions it fences
        earlier ones, and ends their transactions."""
        self._answer(self._bridge.open(self._producer_settings()), "create a producer")
        if self._transactions:
            self._answer(self._bridge.initTransactions(), "start transactions", transactions=True)

    def committed(self, topic: str) -> CommittedNumber | None:
        """The number that was committed last with records of the topic; None if there is none, or it has expired."""
        answer = self._bridge.committed(self._admin_settings(), self._name, topic, self._timeout_ms)
        number, _, metadata = self._answer(answer, f"read the offsets of group {self._name}").partition(" ")
        return CommittedNumber(int(number), metadata) if number else None

    def produce(self, topic: str, batches: Iterable[Sequence[DeadLetter]], commit: CommittedNumber) -> None:
        """Produces records and commits a number, both or neither: without transactions the number after the records.

        Raises ProducerFenced. After any error the producer has to be started again.
        """
        doing = f"produce to topic {topic}"
        if not self._transactions:
            for batch in batches:
                self._answer(self._bridge.send(topic, encoded(batch)), doing)
            self._answer(self._bridge.flush(), doing)
            self._admin.alter_group_offsets(
                self._name, {TopicPartition(topic, 0): commit.number}, metadata=commit.metadata
            )
            return
        self._answer(self._bridge.begin(), doing)
        try:
            for batch in batches:
                self._answer(self._bridge.send(topic, encoded(batch)), doing)
            self._answer(self._bridge.flush(), doing)
        except SinkError:
            self._bridge.abort()
            raise
        self._answer(self._bridge.commit(self._name, topic, commit.number, commit.metadata), doing, transactions=True)

    def search(self, topic: str, prefix: str, since: int) -> set[str]:
        """The `s3sink.id` headers that begin with `prefix`, of records with a timestamp of `since` (ms) or later."""
        settings = self._settings(
            {
                "isolation.level": "read_committed",
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "key.deserializer": f"{_BYTES}Deserializer",
                "value.deserializer": f"{_BYTES}Deserializer",
            }
        )
        wait_ms = TRANSACTION_TIMEOUT_MS + self._timeout_ms
        found = self._bridge.search(settings, topic, ID_HEADER, prefix, since, wait_ms)
        return set(self._answer(found, f"read topic {topic}").splitlines())

    def close(self) -> None:
        """Ends the connections. Idempotent."""
        self._bridge.close()

    def _admin_settings(self) -> Any:
        timeouts = {"request.timeout.ms": min(self._timeout_ms, 10_000), "default.api.timeout.ms": self._timeout_ms}
        return self._settings({name: str(value) for name, value in timeouts.items()})

    def _producer_settings(self) -> Any:
        settings = {
            "acks": "all",
            "enable.idempotence": str(self._transactions).lower(),
            "key.serializer": f"{_BYTES}Serializer",
            "value.serializer": f"{_BYTES}Serializer",
            "max.request.size": str(min(max(self._max_bytes, 1 << 20) + (1 << 16), _MAX_INT)),
            "batch.size": str(min(64 << 10, self._max_bytes)),
            "buffer.memory": str(max(self._max_bytes + (1 << 20), 16 << 20)),
            "max.block.ms": str(self._timeout_ms),
        }
        if self._transactions:
            settings |= {"transactional.id": self._name, "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS)}
        return self._settings(settings)

    def _settings(self, settings: dict[str, str]) -> Any:
        found = self._gateway.jvm.java.util.HashMap()
        for name, value in ({"enable.metrics.push": "false"} | self._properties.client() | settings).items():
            found.put(name, value)
        return found

    def _answer(self, text: str, doing: str, *, transactions: bool = False) -> str:
        if text.startswith("+"):
            return text[1:]
        chain = parse_chain(self._properties.redact(text[1:]))
        if {each.name for each in chain} & _FENCED:
            raise ProducerFenced(chain[0].message)
        raise self._error(chain, doing, transactions=transactions)

    def _error(self, chain: list[JavaThrowable], doing: str, *, transactions: bool) -> SinkError:
        names, servers = {each.name for each in chain}, self._properties.bootstrap_servers
        rejected = f"{_FIELD}.topic: Kafka at {servers}: cannot {doing}: {chain[-1].message}."
        if "RecordTooLargeException" in names:
            return ConfigurationError(
                f"{rejected} The sink shortens records that are larger than max.message.bytes of the topic, if it may "
                "read that: allow the operation DescribeConfigs for the topic, or raise max.message.bytes."
            )
        if names & _INVALID:
            return ConfigurationError(
                f"{rejected} A dead letter has the time at which it was rejected, and may have no key: set "
                "cleanup.policy=delete for the topic, and message.timestamp.before.max.ms to more than the sink may be "
                "down."
            )
        error = domain_error(chain, doing=doing, servers=servers)
        if not transactions:
            return error
        if isinstance(error, AccessDenied):
            return AccessDenied(
                f"{_FIELD}.delivery: {error}. Allow Write and Describe for the transactional id {self._name} and Read "
                f"for the group {self._name}, or set delivery: AtLeastOnce."
            )
        if names & _NO_TRANSACTIONS:
            return ConfigurationError(
                f"{_FIELD}.delivery: {error}. ExactlyOnce needs a broker with transactions, of "
                f"{TRANSACTION_TIMEOUT_MS // 1000} s at least (transaction.max.timeout.ms): set delivery: AtLeastOnce."
            )
        if isinstance(error, TransientError):
            return TransientError(f"{error}. If the broker has no transactions, set {_FIELD}.delivery: AtLeastOnce.")
        return error


def encoded(records: Iterable[DeadLetter]) -> bytes:
    """The records in the form of DeadLetterBridge.java."""
    parts: list[bytes] = []
    for record in records:
        parts.append(struct.pack(">q", record.timestamp))
        parts += [*_text(record.key), *_text(record.value), struct.pack(">i", len(record.headers))]
        for name, value in record.headers:
            parts += [*_text(name.encode()), *_text(value)]
    return b"".join(parts)


def _text(data: bytes | None) -> tuple[bytes, ...]:
    return (struct.pack(">i", -1),) if data is None else (struct.pack(">i", len(data)), data)
