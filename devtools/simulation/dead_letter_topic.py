"""A simulated dead-letter topic: producers that fence each other, transactions, and the numbers of their commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sink_job.api.errors import TopicNotFound
from sink_job.engine.dead_letter_topic import CommittedNumber, DeadLetter, ProducerFenced

Produced = Callable[[str, Sequence[DeadLetter]], None]


def _no_effect(topic: str, records: Sequence[DeadLetter]) -> None:
    pass


@dataclass
class SimulatedTopics:
    """The topics of a cluster and the group of each producer. `before` is called before each request, with its name.
    `on_produced` gets the records that a transaction has committed."""

    topics: set[str]
    before: Callable[[str], None] = lambda what: None
    after: Callable[[str], None] = lambda what: None
    on_produced: Produced = _no_effect
    max_bytes: int = 1 << 20
    records: dict[str, list[DeadLetter]] = field(default_factory=lambda: defaultdict(list))
    numbers: dict[tuple[str, str], CommittedNumber] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def producer(self, name: str, transactions: bool) -> SimulatedProducer:
        return SimulatedProducer(self, name, transactions)


class SimulatedProducer:
    """See `sink_job.kafka.dead_letter_topic.JavaDeadLetterTopic`."""

    def __init__(self, cluster: SimulatedTopics, name: str, transactions: bool) -> None:
        self._cluster = cluster
        self._name = name
        self._transactions = transactions
        self._epoch = 0

    def check(self, topic: str) -> int:
        self._cluster.before("check")
        if topic not in self._cluster.topics:
            raise TopicNotFound(f"spec.errors.deadLetters.topic: topic {topic} does not exist")
        return self._cluster.max_bytes

    def start(self) -> None:
        self._cluster.before("start")
        self._cluster.epochs[self._name] += 1
        self._epoch = self._cluster.epochs[self._name]
        self._cluster.after("start")

    def committed(self, topic: str) -> CommittedNumber | None:
        self._cluster.before("committed")
        return self._cluster.numbers.get((self._name, topic))

    def produce(self, topic: str, batches: Iterable[Sequence[DeadLetter]], commit: CommittedNumber) -> None:
        waiting: list[DeadLetter] = []
        for batch in batches:
            self._cluster.before("send")
            self._expect_epoch()
            if self._transactions:
                waiting += batch
            else:
                self._append(topic, batch)
        self._cluster.before("commit")
        self._expect_epoch()
        self._append(topic, waiting)
        self._cluster.numbers[self._name, topic] = commit
        self._cluster.after("commit")

    def _append(self, topic: str, records: Sequence[DeadLetter]) -> None:
        self._cluster.records[topic] += records
        self._cluster.on_produced(topic, records)

    def _expect_epoch(self) -> None:
        if self._transactions and self._epoch != self._cluster.epochs[self._name]:
            raise ProducerFenced("a newer producer has started")

    def search(self, topic: str, prefix: str, since: int) -> set[str]:
        self._cluster.before("search")
        found = (each.id for each in self._cluster.records[topic] if each.timestamp >= since)
        return {each for each in found if each.startswith(prefix)}

    def close(self) -> None:
        pass
