"""The interface to the producer of dead letters, implemented in `sink_job.kafka` with the JVM's client and by tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

ID_HEADER = "s3sink.id"
"""The header that identifies a dead letter: sink, topic, partition and offset of its record."""


class DeadLetter(NamedTuple):
    """A record for a dead-letter topic; `timestamp` is in ms."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def id(self) -> str:
        """Its `ID_HEADER`; empty without one."""
        return next(((value or b"").decode() for name, value in reversed(self.headers) if name == ID_HEADER), "")


class CommittedNumber(NamedTuple):
    """The number of a record of the ledger that a producer has committed, and the metadata of that commit."""

    number: int
    metadata: str


class ProducerFenced(Exception):
    """A producer with the same transactional id was started after this one."""


class DeadLetterTopic(Protocol):
    """A producer. `sink_job.kafka.dead_letter_topic` documents each method."""

    def check(self, topic: str) -> int: ...
    def start(self) -> None: ...
    def committed(self, topic: str) -> CommittedNumber | None: ...
    def produce(self, topic: str, batches: Iterable[Sequence[DeadLetter]], commit: CommittedNumber) -> None: ...
    def search(self, topic: str, prefix: str, since: int) -> set[str]: ...
    def close(self) -> None: ...
