"""Schedules rebuilds of objects whose upload or staged remainder is lost (P2, P6)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from sink_job.api.errors import TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS
from sink_job.coordinator.task_dispatcher import TaskDispatcher, object_settings
from sink_job.ledger.data_loss import RebuildOutcome, with_open
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, OpenObject, PartitionState
from sink_job.partitioning.object_keys import object_key
from sink_job.tasks.rebuild import MissingRecords, RebuildInput

K = TypeVar("K")
V = TypeVar("V")

_log = logging.getLogger(__name__)


class Rebuilder:
    """Rebuilds lost objects of one sink. Each method raises DataLoss when Kafka no longer holds their records, and
    TransientError when the new uploads disappear again. With `onDataLoss: Continue` it rebuilds each object from the
    records that Kafka still holds, and returns the lost records."""

    def __init__(self, tasks: TaskDispatcher) -> None:
        self._dispatcher = tasks
        self._consecutive: Counter[TopicPartition] = Counter()

    def closed(self, objects: Sequence[ClosedObject], state: LedgerState, now: int) -> RebuildOutcome:
        """The objects under new uploads, with the same keys and bytes. An object that has lost records gets the key of
        its first remaining record; an object without any remaining record is not rebuilt."""
        rebuilt: list[ClosedObject] = []
        lost: list[LostObject] = []
        for settings, group in _grouped(objects, lambda o: o.settings).items():
            inputs = {
                tp: RebuildInput(closed=tuple(mine))
                for tp, mine in _grouped(group, lambda o: o.topic_partition).items()
            }
            results = self._dispatcher.rebuild(inputs, state, now=now, settings=settings)
            rebuilt += [o for result in results.values() for o in result.closed]
            lost += self._lost_objects({tp: result.missing for tp, result in results.items()}, state, settings)
        return RebuildOutcome(rebuilt, lost)

    def open(
        self, lost: Mapping[TopicPartition, str], state: LedgerState, now: int
    ) -> tuple[dict[TopicPartition, PartitionState], list[LostObject]]:
        """The states of these topic-partitions, with their open objects under new uploads.

        The caller aborts the previous uploads (`open_uploads`) after a record has replaced them, not before: this
        driver may be fenced without knowing it, and the new driver continues those uploads.
        """
        self._consecutive.update(lost.keys())
        for tp, why in lost.items():
            if self._consecutive[tp] > MAX_REBUILD_ATTEMPTS:
                raise TransientError(
                    f"{tp}: {why}: its open objects were rebuilt {MAX_REBUILD_ATTEMPTS} times, and each time the next "
                    "round found them lost. Check whether a lifecycle rule or another program deletes from the "
                    "ledger's folder."
                )
            _log.warning("%s: %s: rebuilding its open objects from Kafka", tp, why)
        before = {tp: state.partitions[str(tp)] for tp in lost}
        rebuilt: dict[TopicPartition, list[OpenObject]] = {tp: [] for tp in before}
        lost_objects: list[LostObject] = []
        for settings in sorted({o.settings for p in before.values() for o in p.open}):
            mine = {tp: tuple(o for o in p.open if o.settings == settings) for tp, p in before.items()}
            inputs = {tp: RebuildInput(open=objects) for tp, objects in mine.items() if objects}
            results = self._dispatcher.rebuild(inputs, state, now=now, settings=settings)
            for tp, result in results.items():
                rebuilt[tp] += result.open
            lost_objects += self._lost_objects({tp: result.missing for tp, result in results.items()}, state, settings)
        return {tp: with_open(p, rebuilt[tp]) for tp, p in before.items()}, lost_objects

    def _lost_objects(
        self, missing: Mapping[TopicPartition, Sequence[MissingRecords]], state: LedgerState, settings: int
    ) -> Iterator[LostObject]:
        """Logs and returns the lost records of the objects of these settings."""
        rules = object_settings(state, settings)
        for tp, each in ((tp, each) for tp, several in sorted(missing.items()) for each in several):
            key = object_key(rules, tp.topic, each.path, tp.partition, each.first)
            lost = each.expected - each.found
            _log.warning(
                "%s: Kafka no longer holds %d of the %d records of %s (offsets %d to %d), an unpublished object that "
                "has to be rebuilt: these records are lost, and the sink continues without them (onDataLoss: Continue)",
                tp,
                lost.count,
                each.expected.count,
                key,
                each.first,
                each.last,
            )
            yield LostObject(tp.topic, tp.partition, key, each.path, each.first, each.last, lost)

    def written(self, partitions: Iterable[TopicPartition]) -> None:
        """Resets the count of consecutive rebuilds of topic-partitions that a round has written."""
        for tp in partitions:
            del self._consecutive[tp]


def _grouped(values: Sequence[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    groups: dict[K, list[V]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
