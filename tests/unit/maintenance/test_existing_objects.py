"""Untracked objects that may overlap a new start offset: a key contains the first offset, but not the last."""

from __future__ import annotations

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetChecksum, PartitionState
from sink_job.maintenance.existing_objects import may_overlap
from sink_job.partitioning.object_keys import ObjectName
from sink_job.rotation.types import RotationState
from sink_job.verify.audit_input import GenerationAudit

TP = TopicPartition("log", 0)


def closed(first: int, path: str = "a") -> ClosedObject:
    return ClosedObject(
        key=f"{path}/{first}", topic="log", partition=0, path=path, first=first, last=first + 9, bytes=1, crc=1,
        upload="u", parts=(), sources=(), offsets=OffsetChecksum(), settings=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "start", "others", "overlaps"),
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
        "after everything that was copied",
        "at the start offset, which is another conflict",
        "ended by the next object of its path",
        "not ended by an object of another path",
        "not ended by an object of another partition",
        "older than the sink, which started after it",
        "older than the sink, and the start offset is older, too",
    ],
)
def test_an_untracked_object_may_overlap_a_start_offset(
    first: int, start: int, others: list[ObjectName], overlaps: bool
) -> None:
    name = ObjectName("log", "a", 0, first)
    untracked = {str(n): each for n, each in enumerate([name, *others])}
    objects = {"a/10": closed(10)}
    generation = GenerationAudit(
        LedgerState(partitions={"log-0": PartitionState(RotationState.start(20), rotation_start=20)}),
        list(objects.values()),
        [],
        {TP: 10},
    )
    assert may_overlap(name, objects, untracked, [generation], {TP: start}) is overlaps
