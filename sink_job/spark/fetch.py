"""The fetch size of consumers, which decreases with the number of topic-partitions. Pure.

Spark caches consumers between rounds, by group id and topic-partition. A round fails if its consumer parameters differ
from those of the cached consumer. So there are few sizes, and each has its own group id: another size uses other
consumers. The consumers of the previous size are closed after an idle time of `spark.kafka.consumer.cache.timeout`.
Until then both are in the heap, so the size changes at most twice.

The group id is only a cache key. The consumers are assigned to their partitions and seek to their offsets. They join no
group, fetch no committed offsets, and need no ACL for a group.
"""

from __future__ import annotations

from collections.abc import Iterable

from sink_job.api.topic_partition import TopicPartition

SIZES = (4 << 20, 2 << 20, 1 << 20)
"""The possible fetch sizes in bytes, largest first. A smaller size needs less memory and more requests."""

CONSUMER_BYTES = 128 << 20
"""The maximum heap of all consumers, in bytes."""

_FETCHES_IN_MEMORY = 2  # per consumer: the fetch that is being read, and the next one


def fetch_bytes(partitions: int) -> int:
    """The fetch size in bytes for `partitions` topic-partitions, each with its own consumer."""
    fitting = (size for size in SIZES if _FETCHES_IN_MEMORY * size * partitions <= CONSUMER_BYTES)
    return next(fitting, SIZES[-1])


def pool_group(group_id: str, size: int) -> str:
    """The group id of the consumers with a fetch size of `size` bytes."""
    return f"{group_id}-fetch-{size >> 20}m"


class FetchSize:
    """The fetch size of an engine. It decreases with the number of topic-partitions read so far, and never
    increases."""

    def __init__(self) -> None:
        self._read: set[TopicPartition] = set()

    def reading(self, partitions: Iterable[TopicPartition]) -> int:
        """The size in bytes for a round that reads `partitions`.

        Topic-partitions of earlier rounds count as well, because their consumers may still be cached.
        """
        self._read.update(partitions)
        return fetch_bytes(len(self._read))
