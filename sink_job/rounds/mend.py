"""What to do when uploads or leftovers are gone: the objects are made again, and named anew (P2, P6)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from sink_job.api.types import TopicPartition
from sink_job.rounds.rebuild import RebuildInput
from sink_job.rounds.state import NamedObject, OpenObject, PartitionState, State
from sink_job.rounds.tasks import Tasks

K = TypeVar("K")
V = TypeVar("V")

_log = logging.getLogger(__name__)


class Mender:
    """Makes one sink's lost objects again. Each method raises DataLoss when Kafka no longer holds their records."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def named(self, objects: Sequence[NamedObject], state: State, now: int) -> list[NamedObject]:
        """The objects under new uploads, same keys, same bytes."""
        rebuilt: list[NamedObject] = []
        for settings, group in _grouped(objects, lambda o: o.settings).items():
            wanted = {
                tp: RebuildInput(named=tuple(mine)) for tp, mine in _grouped(group, lambda o: o.topic_partition).items()
            }
            results = self._tasks.rebuild(wanted, state, now=now, settings=settings)
            rebuilt += [o for result in results.values() for o in result.named]
        return rebuilt

    def open(self, lost: Mapping[TopicPartition, str], state: State, now: int) -> dict[TopicPartition, PartitionState]:
        """The states of these partitions, their open objects under new uploads.

        What is left of the old uploads may go when a record has replaced them, not before: a driver may be fenced and
        not know, and then the new one works with them (`uploads`).
        """
        for tp, why in lost.items():
            _log.warning("%s: %s: rebuilding its open objects from Kafka", tp, why)
        before = {tp: state.partitions[str(tp)] for tp in lost}
        fresh: dict[tuple[TopicPartition, str], OpenObject] = {}
        for settings in sorted({o.settings for p in before.values() for o in p.open}):
            mine = {tp: tuple(o for o in p.open if o.settings == settings) for tp, p in before.items()}
            wanted = {tp: RebuildInput(open=objects) for tp, objects in mine.items() if objects}
            for tp, result in self._tasks.rebuild(wanted, state, now=now, settings=settings).items():
                fresh |= {(tp, o.path): o for o in result.open}
        return {
            tp: msgspec.structs.replace(p, open=tuple(fresh[tp, o.path] for o in p.open)) for tp, p in before.items()
        }

    def uploads(self, partitions: Mapping[TopicPartition, PartitionState], state: State) -> list[tuple[str, str]]:
        """Key and upload of the open objects that have one; `state` holds their settings."""
        return [
            (self._tasks.pipeline(state, o.settings).key(tp, o.path, o.first), o.upload)
            for tp, p in partitions.items()
            for o in p.open
            if o.upload
        ]


def _grouped(values: Sequence[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    groups: dict[K, list[V]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
