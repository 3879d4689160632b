"""Unknown objects that may reach over a new start: a key says where its object begins, not where it ends."""

from __future__ import annotations

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetChecksum, PartitionState
from sink_job.maintenance.existing_objects import may_overlap
from sink_job.partitioning.object_keys import ObjectName
from sink_job.verify.audit import GenerationAudit

TP = TopicPartition("log", 0)


def known(first: int, path: str = "a") -> ClosedObject:
    return ClosedObject(
        key=f"{path}/{first}", topic="log", partition=0, path=path, first=first, last=first + 9, bytes=1, crc=1,
        upload="u", parts=(), sources=(), offsets=OffsetChecksum(), settings=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "start", "others", "told"),
    [
        (25, 28, [], True),
        (25, 25, [], False),
        (25, 28, [ObjectName("log", "a", 0, 28)], False),
        (25, 28, [ObjectName("log", "b", 0, 28)], True),
        (25, 28, [ObjectName("log", "a", 1, 28)], True),
        (5, 28, [], False),
        (5, 8, [], True),
    ],
    ids=[
        "behind all that was copied",
        "at the start, where it is in the way anyhow",
        "ended by the next one of its path",
        "not ended by one of another path",
        "not ended by one of another partition",
        "from before the sink, which went on behind it",
        "from before the sink, and the start goes back there too",
    ],
)
def test_an_unknown_object_may_reach_over_a_start(first: int, start: int, others: list[ObjectName], told: bool) -> None:
    name = ObjectName("log", "a", 0, first)
    strange = {str(n): each for n, each in enumerate([name, *others])}
    objects = {"a/10": known(10)}
    lists = GenerationAudit(
        LedgerState(partitions={"log-0": PartitionState(20, 20, 20)}), list(objects.values()), [], {TP: 10}
    )
    assert may_overlap(name, objects, strange, [lists], {TP: start}) is told
