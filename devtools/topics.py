"""Topics of a broker: creation and changes, and records in committed, aborted and no transactions."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from devtools.processes import wait_until

_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
# Errors of a partition that was just created.
_LEADERLESS = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)
# Errors of the first commit to a broker while its coordinator starts.
_UNCOORDINATED = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record to produce: `timestamp` in ms since the epoch (None: the client's clock)."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Topics:
    """The topics of a broker. All calls wait for the broker's result and raise `KafkaException` on failure.

    `properties` are librdkafka's, for a listener that requires a login.
    """

    def __init__(self, bootstrap: str, *, properties: Mapping[str, Any] | None = None) -> None:
        self._properties: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2, **(properties or {})}
        self.admin = AdminClient(self._properties)
        self._groups: dict[str, Consumer] = {}

    def create(self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        """Creates a topic and waits until it accepts records; returns its name."""
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
        _all_done(self.admin.create_topics([new], operation_timeout=_SECONDS))
        # A broker that has not applied the controller's record yet returns a topic without partitions.
        wait_until(lambda: len(self.ends(name)) == partitions, f"{partitions} partitions of {name}", seconds=_SECONDS)
        return name

    def delete(self, name: str) -> None:
        _all_done(self.admin.delete_topics([name], operation_timeout=_SECONDS))

    def add_partitions(self, name: str, total: int) -> None:
        _all_done(self.admin.create_partitions([NewPartitions(name, total)], operation_timeout=_SECONDS))
        wait_until(lambda: len(self.ends(name)) == total, f"{total} partitions of {name}", seconds=_SECONDS)

    def allow(self, user: str, name: str) -> None:
        """Allows a user to read and describe a topic, on a broker with an authorizer."""
        rights = [
            AclBinding(
                ResourceType.TOPIC,
                name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for operation in (AclOperation.READ, AclOperation.DESCRIBE)
        ]
        _all_done(self.admin.create_acls(rights))

    def delete_records(self, name: str, partition: int, before: int) -> None:
        """Deletes records as retention does: the log then starts at offset `before`."""
        _all_done(self.admin.delete_records([TopicPartition(name, partition, before)]))

    def produce(self, name: str, records: Iterable[Record], **settings: Any) -> int:
        """Produces records in the given order; returns their number after all are acknowledged."""
        producer = self._producer(settings)
        count = _send(producer, name, records)
        _flush(producer)
        return count

    def produce_values(self, name: str, values: Iterable[bytes | None], *, partition: int = 0, **settings: Any) -> int:
        """Produces records that have a value only."""
        return self.produce(name, (Record(value=value, partition=partition) for value in values), **settings)

    def transaction(self, name: str, records: Iterable[Record], *, commit: bool = True, **settings: Any) -> None:
        """Produces records in a transaction, which is committed or aborted; control records follow in both cases."""
        producer = self.open_transaction(name, records, **settings)
        if commit:
            producer.commit_transaction(_SECONDS)
        else:
            producer.abort_transaction(_SECONDS)

    def open_transaction(self, name: str, records: Iterable[Record], **settings: Any) -> Producer:
        """Produces records in a transaction that stays open; end it with the producer's commit_ or
        abort_transaction."""
        producer = self._producer({"transactional.id": f"test-{uuid.uuid4()}", **settings})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        _send(producer, name, records)
        _flush(producer)
        return producer

    def starts(self, name: str) -> dict[int, int]:
        """The beginning offset of each partition."""
        return self._offsets(name, OffsetSpec.earliest())

    def ends(self, name: str) -> dict[int, int]:
        """The log end offset of each partition (exclusive), including transaction markers and open transactions."""
        return self._offsets(name, OffsetSpec.latest())

    def committed(self, group: str, name: str) -> dict[int, int]:
        """The group's offsets in this topic, without partitions that have none."""
        partitions = [TopicPartition(name, partition) for partition in self.partitions(name)]
        found = self._of_group(group, lambda consumer: consumer.committed(partitions, timeout=_SECONDS))
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def commit(self, group: str, name: str, offsets: Mapping[int, int]) -> None:
        """Sets the offsets of a group without members."""
        positions = [TopicPartition(name, partition, offset) for partition, offset in offsets.items()]
        self._of_group(group, lambda consumer: consumer.commit(offsets=positions, asynchronous=False))

    def _of_group(self, group: str, ask: Callable[[Consumer], Sequence[TopicPartition]]) -> Sequence[TopicPartition]:
        """The reply of the group's coordinator, as soon as there is one.

        A consumer that never joins sends the request: librdkafka's admin client ends the process (a null pointer in its
        handling of OffsetFetch) if the coordinator is unavailable for a moment.
        """
        if group not in self._groups:
            self._groups[group] = Consumer({**self._properties, "group.id": group, "enable.auto.commit": False})
        end = time.monotonic() + _SECONDS
        while True:
            try:
                return ask(self._groups[group])
            except KafkaException as error:
                if error.args[0].code() not in _UNCOORDINATED or time.monotonic() > end:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def read(self, name: str, *, isolation: str = "read_committed") -> list[Message]:
        """All records of the topic that are visible at `isolation`, ordered by partition and offset."""
        settings = {
            **self._properties,
            "group.id": f"test-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
        consumer = Consumer(settings)
        try:
            return [message for partition in self.partitions(name) for message in _all_of(consumer, name, partition)]
        finally:
            consumer.close()

    def partitions(self, name: str) -> list[int]:
        return sorted(self.admin.list_topics(name, timeout=_SECONDS).topics[name].partitions)

    def _producer(self, settings: Mapping[str, Any]) -> Producer:
        # One request in flight, in order; the queue is large enough for the records of a test.
        defaults = {
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.max.bytes": 16 << 20,
            "queue.buffering.max.kbytes": 1 << 20,
            "queue.buffering.max.messages": 2_000_000,
        }
        return Producer({**self._properties, **defaults, **settings})

    def _offsets(self, name: str, spec: OffsetSpec) -> dict[int, int]:
        end = time.monotonic() + _SECONDS
        while True:
            request = {TopicPartition(name, partition): spec for partition in self.partitions(name)}
            try:
                answers = self.admin.list_offsets(request)
                return {place.partition: answer.result(_SECONDS).offset for place, answer in answers.items()}
            except KafkaException as error:
                if error.args[0].code() not in _LEADERLESS or time.monotonic() > end:
                    raise


def _send(producer: Producer, name: str, records: Iterable[Record]) -> int:
    count = 0
    for record in records:
        count += 1
        extra: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}
        if record.headers:
            extra["headers"] = list(record.headers)
        while True:
            try:
                producer.produce(name, record.value, record.key, record.partition, **extra)
                break
            except BufferError:  # the queue is full: deliver a part of it
                producer.poll(0.1)
    return count


def _flush(producer: Producer) -> None:
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} records were not acknowledged")


def _all_done(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(_SECONDS)


def _all_of(consumer: Consumer, name: str, partition: int) -> list[Message]:
    consumer.assign([TopicPartition(name, partition, 0)])
    found: list[Message] = []
    while True:
        message = consumer.poll(_SECONDS)
        error = message.error() if message else None
        if message is None or (error and error.code() != KafkaError._PARTITION_EOF):
            raise RuntimeError(f"reading {name}-{partition}: {error or 'no record within the timeout'}")
        if error:
            return found
        found.append(message)
