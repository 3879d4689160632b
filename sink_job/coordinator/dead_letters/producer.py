"""Produces the records of closed dead-letter objects to their topic, each once (docs/adr/0047-dead-letter-topic.md).

The ledger lists an object first; then its records are produced in a Kafka transaction, which also commits the number of
the ledger's newest record for a group of its own; then the ledger acknowledges the object. All objects that were listed
up to the committed number are in the topic, so the next driver knows what is missing.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Final

from sink_job.api.enums import DeadLetterDelivery
from sink_job.api.errors import TopicNotFound, TransientError
from sink_job.api.spec import Sink
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.dead_letters.records import RecordFormat, first_rejected, lines_of
from sink_job.coordinator.group_offsets import COMMIT_INTERVAL_MS
from sink_job.engine.dead_letter_topic import CommittedNumber, DeadLetterTopic, ProducerFenced
from sink_job.ledger.dead_letters import objects_for_topics
from sink_job.ledger.state import ClosedObject, LedgerState
from sink_job.ledger.store import Ledger
from sink_job.s3 import NotFound, S3Client

MAX_FENCED: Final = 5
"""Maximum number of attempts of a driver that owns the ledger and whose producer is fenced."""

CLOCK_MARGIN_MS: Final = 300_000
"""How far the clocks of the broker and of the driver may differ."""

_log = logging.getLogger(__name__)


class DeadLetterProducer:
    """The producer of one driver that has claimed the ledger."""

    def __init__(self, sink: Sink, context: CoordinatorContext, s3: S3Client, ledger: Ledger) -> None:
        self._sink = sink
        self._context = context
        self._s3 = s3
        self._ledger = ledger
        self._clock = context.clock
        self._started_for: str | None = None
        self._numbers: dict[str, int | None] = {}
        self._committed_at = self._clock()

    @cached_property
    def _topics(self) -> DeadLetterTopic:
        return dead_letter_topic(self._sink, self._context, self._ledger)

    def start(self, state: LedgerState) -> None:
        """Starts the producer, if one is needed: it fences that of an earlier driver, and ends its transaction.
        Commits the current number if none is committed and everything is in the topic."""
        topic = self._sink.spec.errors.dead_letters.topic
        if topic is not None:
            self._unless_fenced(topic, state, partial(self._begin, topic, state))

    def produce(self, state: LedgerState) -> None:
        """Produces what is missing of the closed dead-letter objects. All of them are visible.

        Raises LedgerFenced if another driver has claimed the ledger, TransientError, and the errors of the topic."""
        for topic, objects in objects_for_topics(state).items():
            try:
                self._unless_fenced(topic, state, partial(self._produce, topic, objects, state))
            except TopicNotFound:
                if topic == self._sink.spec.errors.dead_letters.topic:
                    raise
                raise TopicNotFound(
                    f"topic {topic}, the former spec.errors.deadLetters.topic, does not exist, and the dead letters in "
                    f"{len(objects)} objects, {objects[0].key} first, may be missing in it. Create it again and start "
                    "the sink: it produces them, and does not need the topic afterwards."
                ) from None

    def refresh(self, state: LedgerState) -> None:
        """Commits the current number every `COMMIT_INTERVAL_MS`, before Kafka expires it."""
        topic = self._sink.spec.errors.dead_letters.topic
        is_due = abs(self._clock() - self._committed_at) >= COMMIT_INTERVAL_MS
        if topic is not None and is_due and not objects_for_topics(state).get(topic):
            self._ledger.check_head(state)
            self._unless_fenced(topic, state, partial(self._commit_number, topic, state))

    def close(self) -> None:
        """Ends the connections."""
        if self._started_for is not None:
            self._topics.close()

    def _unless_fenced(self, topic: str, state: LedgerState, commit: Callable[[], None]) -> None:
        """Commits a transaction; starts the producer again while it is fenced and this driver owns the ledger: a driver
        that was suspended before it started its own producer has fenced this one."""
        for _ in range(MAX_FENCED):
            try:
                if self._started_for != topic:
                    self._start(topic)
                return commit()
            except ProducerFenced:
                self._started_for = None
                self._ledger.check_head(state)
            except Exception:
                self._started_for = None  # a producer is not used after an error
                raise
        raise TransientError(
            f"the transactional id of sink {self._sink.sink_id} for spec.errors.deadLetters.topic was used by another "
            f"producer {MAX_FENCED} times in a row, or a transaction took longer than Kafka allows. Check that no "
            "other program uses it; with very many dead letters at a time set spec.errors.deadLetters.delivery to "
            "AtLeastOnce."
        )

    def _begin(self, topic: str, state: LedgerState) -> None:
        if not objects_for_topics(state).get(topic) and self._number(topic, state) is None:
            self._commit_number(topic, state)

    def _start(self, topic: str) -> None:
        """Starts a producer whose requests have the size that the topic allows."""
        self._topics.check(topic)
        self._topics.start()
        self._started_for = topic
        self._numbers = {}

    def _produce(self, topic: str, objects: Sequence[ClosedObject], state: LedgerState) -> None:
        number = self._number(topic, state)
        missing = [o for o in objects if number is None or o.record > number]
        if not missing:
            return
        topics, dead_letters = self._topics, self._sink.spec.errors.dead_letters
        found = RecordFormat(
            self._sink.sink_id,
            self._sink.spec.format.converter,
            errors=dead_letters.headers,
            max_bytes=topics.check(topic),
        )
        produced = self._search(topic, missing) if number is None else frozenset()
        topics.produce(topic, found.batches(self._lines(missing), produced), self._commit(state))
        self._committed(topic, state)

    def _search(self, topic: str, objects: Sequence[ClosedObject]) -> frozenset[str]:
        """The ids of this sink that are in the topic, from the first record of these objects on."""
        since = max(0, first_rejected(self._lines(objects)) - CLOCK_MARGIN_MS)
        _log.warning(
            "topic %s: no number of the ledger is committed with its dead letters (it may have expired): searching it "
            "for the dead letters of %d objects",
            topic,
            len(objects),
        )
        return frozenset(self._topics.search(topic, f"{self._sink.sink_id}/", since))

    def _lines(self, objects: Sequence[ClosedObject]) -> Iterator[bytes]:
        for o in objects:
            try:
                yield from lines_of(self._s3.stream(o.key))
            except NotFound:
                raise TransientError(
                    f"{self._s3.url_of(o.key)} was deleted before its records were in the dead-letter topic: the "
                    "next driver writes it again. Check which program deletes it."
                ) from None

    def _commit_number(self, topic: str, state: LedgerState) -> None:
        """Commits the current number without records: everything is in the topic."""
        number = self._number(topic, state)
        if number is None or number <= state.number:
            self._topics.produce(topic, (), self._commit(state))
        self._committed(topic, state)

    def _committed(self, topic: str, state: LedgerState) -> None:
        self._numbers[topic] = max(state.number, self._numbers.get(topic) or 0)
        self._committed_at = self._clock()

    def _number(self, topic: str, state: LedgerState) -> int | None:
        """The committed number. It is read after the start of the producer: no earlier producer changes it after that.
        None if there is none of this ledger."""
        if topic not in self._numbers:
            found = self._topics.committed(topic)
            self._numbers[topic] = found.number if found is not None and self._is_own(found, state) else None
        return self._numbers[topic]

    def _commit(self, state: LedgerState) -> CommittedNumber:
        return CommittedNumber(
            state.number, f"ledger {self._ledger.url}, claim {state.epoch}, attempt {self._ledger.attempt}"
        )

    def _is_own(self, found: CommittedNumber, state: LedgerState) -> bool:
        """Whether a driver of this ledger has committed the number: it is that of another one if a ledger was deleted.
        Claims are never deleted (P4)."""
        head, _, attempt = found.metadata.rpartition(", attempt ")
        url, _, claim = head.rpartition(", claim ")
        if url != f"ledger {self._ledger.url}" or not claim.isdigit():
            return False
        if int(claim) == state.epoch:
            return attempt == self._ledger.attempt
        try:
            return self._ledger.record(int(claim)).attempt == attempt
        except NotFound:
            return False


def dead_letter_topic(sink: Sink, context: CoordinatorContext, ledger: Ledger) -> DeadLetterTopic:
    """A producer of this sink, which is not started. Its name, the transactional id, does not change as long as the
    ledger is the same: so a later driver fences each earlier one."""
    assert context.dead_letter_topic is not None, "a driver has a producer"
    digest = hashlib.sha256(ledger.url.encode()).hexdigest()[:8]
    exactly_once = sink.spec.errors.dead_letters.delivery is DeadLetterDelivery.EXACTLY_ONCE
    return context.dead_letter_topic(f"s3sink-{sink.sink_id}-{digest}", exactly_once)


def check_dead_letter_topic(sink: Sink, context: CoordinatorContext, ledger: Ledger) -> None:
    """Checks the topic of the manifest before the driver claims the ledger. Raises ConfigurationError."""
    topic = sink.spec.errors.dead_letters.topic
    if topic is not None:
        dead_letter_topic(sink, context, ledger).check(topic)
