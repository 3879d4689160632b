"""Deliberate defects of dead-letter objects, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from sink_job.api.spec import Sink
from sink_job.arrow.arrays import Indices
from sink_job.coordinator import committer
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.dead_letters import producer
from sink_job.coordinator.dead_letters.producer import DeadLetterProducer
from sink_job.engine.dead_letter_topic import DeadLetterTopic
from sink_job.ledger.state import LedgerState, SourceRange
from sink_job.ledger.store import Ledger
from sink_job.writer.dead_letter_object import DeadLetterObject
from sink_job.writer.dead_letters import DeadLetterLines, DeadLetterSources
from sink_job.writer.record_pipeline import RejectedRow
from sink_job.writer.row_slices import RowSlice

Patches = Sequence[AbstractContextManager[Any]]


def clocks_of_dead_letters_forgotten() -> Patches:
    """The source ranges of a dead-letter object have the clock of its first round."""

    def extend(
        self: DeadLetterSources, previous: tuple[SourceRange, ...], clock: int, breaks: Sequence[int]
    ) -> tuple[SourceRange, ...]:
        ranges = [*previous, *self._ranges]
        return (SourceRange(ranges[0].start, ranges[-1].end, ranges[0].clock),)

    return [patch.object(DeadLetterSources, "extend", extend)]


def accepted_records_rebuilt_as_dead_letters() -> Patches:
    """A rebuild takes all records of the source ranges of a dead-letter object."""

    def of_object(
        self: DeadLetterLines,
        batch: pa.RecordBatch,
        rejected: Sequence[RejectedRow],
        clock: int,
        sources: Sequence[SourceRange],
    ) -> tuple[Indices, RowSlice] | None:
        offsets = batch.column("offset").to_numpy()
        chosen = [
            RejectedRow(row, int(offsets[row]), "rejected")
            for source in sources
            if source.clock == clock
            for row in range(*np.searchsorted(offsets, (source.start, source.end)).tolist())
        ]
        return (np.array([each.row for each in chosen], np.intp), self.of(batch, chosen, clock)) if chosen else None

    return [patch.object(DeadLetterLines, "of_object", of_object)]


def dead_letters_stay_open() -> Patches:
    """A dead-letter object does not close at the end of a round without other open objects."""
    return [patch.object(DeadLetterObject, "is_due", lambda self, *, alone: False)]


def waiting_dead_letters_forgotten() -> Patches:
    """Rejected records after the last accepted one of a round are not written."""
    original = DeadLetterObject.take_before

    def take_before(self: DeadLetterObject, offset: int | None) -> list[RowSlice]:
        return [] if offset is None else original(self, offset)

    return [patch.object(DeadLetterObject, "take_before", take_before)]


def missing_dead_letters_not_produced() -> Patches:
    """A driver assumes that everything which the ledger has listed before its start is in the topic."""

    def number(self: DeadLetterProducer, topic: str, state: LedgerState) -> int | None:
        return self._numbers.setdefault(topic, state.number)

    return [patch.object(DeadLetterProducer, "_number", number)]


def own_transactional_id_of_each_driver() -> Patches:
    """A driver does not fence the producer of an earlier one."""
    original = producer.dead_letter_topic

    def dead_letter_topic(sink: Sink, context: CoordinatorContext, ledger: Ledger) -> DeadLetterTopic:
        def named(name: str, transactions: bool) -> DeadLetterTopic:
            assert context.dead_letter_topic is not None
            return context.dead_letter_topic(f"{name}-{context.attempt}", transactions)

        return original(sink, replace(context, dead_letter_topic=named), ledger)

    return [patch.object(producer, "dead_letter_topic", dead_letter_topic)]


def expired_number_not_searched() -> Patches:
    """A driver without a committed number assumes that nothing is in the topic."""
    return [patch.object(DeadLetterProducer, "_search", lambda self, topic, objects: frozenset())]


def dead_letters_acknowledged_beside_lost_objects() -> Patches:
    """The record of a rebuild acknowledges dead-letter objects whose records are not in the topic."""
    return [patch.object(committer, "objects_for_topics", lambda state: {})]


TOPIC_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        missing_dead_letters_not_produced,
        own_transactional_id_of_each_driver,
        expired_number_not_searched,
        dead_letters_acknowledged_beside_lost_objects,
    )
}

DEAD_LETTER_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        clocks_of_dead_letters_forgotten,
        accepted_records_rebuilt_as_dead_letters,
        dead_letters_stay_open,
        waiting_dead_letters_forgotten,
    )
} | TOPIC_MUTATIONS
