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
        for (tp, settings), group in _grouped(objects, lambda o: (o.topic_partition, o.settings)).items():
            wanted = RebuildInput(named=tuple(group))
            rebuilt += self._tasks.rebuild(tp, wanted, state, now=now, settings=settings).named
        return rebuilt

    def open(self, lost: Mapping[TopicPartition, str], state: State, now: int) -> dict[TopicPartition, PartitionState]:
        """The states of these partitions, their open objects under new uploads.

        What is left of the old uploads may go when a record has replaced them, not before: a driver may be fenced and
        not know, and then the new one works with them (`uploads`).
        """
        return {tp: self._open(tp, why, state, now) for tp, why in lost.items()}

    def uploads(self, partitions: Mapping[TopicPartition, PartitionState], state: State) -> list[tuple[str, str]]:
        """Key and upload of the open objects that have one; `state` holds their settings."""
        return [
            (self._tasks.pipeline(state, o.settings).key(tp, o.path, o.first), o.upload)
            for tp, p in partitions.items()
            for o in p.open
            if o.upload
        ]

    def _open(self, tp: TopicPartition, why: str, state: State, now: int) -> PartitionState:
        _log.warning("%s: %s: rebuilding its open objects from Kafka", tp, why)
        before = state.partitions[str(tp)]
        fresh: dict[str, OpenObject] = {}
        for settings, group in _grouped(before.open, lambda o: o.settings).items():
            wanted = RebuildInput(open=tuple(group))
            result = self._tasks.rebuild(tp, wanted, state, now=now, settings=settings)
            fresh |= {o.path: o for o in result.open}
        return msgspec.structs.replace(before, open=tuple(fresh[o.path] for o in before.open))


def _grouped(values: Sequence[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    groups: dict[K, list[V]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
