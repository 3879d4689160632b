"""A warning about records of different schemas in turn, which close an object for each change: with 20,000 such records
a topic-partition has 20,000 objects, as with the S3 connector of Kafka Connect."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject

MAX_CHANGES: Final = 100
"""Changes of schema of a topic-partition in one round that need no warning."""
_ADVICE: Final = {
    SchemaCompatibility.NONE: "Set spec.schemaCompatibility to Separate, which has an object for each schema, or to "
    "Backward, which writes records of older versions under the newer one",
    SchemaCompatibility.BACKWARD: "Versions of different subjects and widened types cannot be projected. Set "
    "spec.schemaCompatibility to Separate, which has an object for each schema",
}
_log = logging.getLogger(__name__)


class SchemaChangeWarnings:
    """Warns of topic-partitions whose objects are closed by changes of schema, once for each in a driver."""

    def __init__(self, compatibility: SchemaCompatibility) -> None:
        self._compatibility = compatibility
        self._reported: set[TopicPartition] = set()

    def round_recorded(self, closed: Iterable[ClosedObject]) -> None:
        """`closed` are the objects that a round has closed."""
        if self._compatibility is SchemaCompatibility.SEPARATE:
            return
        advice = _ADVICE.get(self._compatibility, _ADVICE[SchemaCompatibility.BACKWARD])
        for tp, changes in schema_changes(closed).items():
            if changes > MAX_CHANGES and tp not in self._reported:
                self._reported.add(tp)
                _log.warning(
                    "%s: the schema changed between %d objects of one round, so they are small. Records of different "
                    "schemas are in turn in this topic-partition, and spec.schemaCompatibility is %s. %s",
                    tp,
                    changes,
                    self._compatibility.value,
                    advice,
                )


def schema_changes(closed: Iterable[ClosedObject]) -> Counter[TopicPartition]:
    """The number of objects of each topic-partition that follow one at the same path with another schema, by their
    first offsets."""
    changes: Counter[TopicPartition] = Counter()
    in_order = sorted(closed, key=lambda closed: (closed.topic, closed.partition, closed.path, closed.first))
    for previous, following in pairwise(in_order):
        same_path = (previous.topic_partition, previous.path) == (following.topic_partition, following.path)
        if same_path and previous.schema != following.schema:
            changes[following.topic_partition] += 1
    return changes
