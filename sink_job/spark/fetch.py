"""How much a consumer may fetch at once: the more topic-partitions are read, the less. Pure.

Spark keeps consumers from round to round, by group id and topic-partition, and fails a round whose consumer parameters
differ from those of the consumer it kept. So there are few sizes, and each has a group id of its own: with another size
come other consumers. Those of the size before are closed once they have been idle for
`spark.kafka.consumer.cache.timeout`; until then both are in the heap, which is why the size changes twice at most.

The group id is a key here and nothing more: consumers that are given their partitions and seek to their offsets join no
group, ask for no committed offsets, and need no ACL on a group.
"""

from __future__ import annotations

from collections.abc import Iterable

from sink_job.api.topic_partition import TopicPartition

SIZES = (4 << 20, 2 << 20, 1 << 20)
"""Bytes, the largest first. A smaller one costs as many requests as it saves memory."""

CONSUMER_BYTES = 128 << 20
"""What the consumers may hold of the heap."""

_HELD = 2  # fetches a consumer may hold: one that is being read, one that has arrived behind it


def fetch_bytes(partitions: int) -> int:
    """What a fetch may bring where `partitions` topic-partitions have a consumer each."""
    fitting = (size for size in SIZES if _HELD * size * partitions <= CONSUMER_BYTES)
    return next(fitting, SIZES[-1])


def pool_group(group_id: str, size: int) -> str:
    """The group id of the consumers that fetch `size` bytes at once."""
    return f"{group_id}-fetch-{size >> 20}m"


class FetchSize:
    """The size for one engine: it shrinks as more topic-partitions have been read, and never grows again."""

    def __init__(self) -> None:
        self._read: set[TopicPartition] = set()

    def reading(self, partitions: Iterable[TopicPartition]) -> int:
        """The size for a round that reads `partitions`. All that were read before count too: their consumers may still
        be kept."""
        self._read.update(partitions)
        return fetch_bytes(len(self._read))
