"""The parts of a driver that has claimed the ledger of a sink: no server, no rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec

from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.ownership import Owner
from sink_job.ledger.state import (
    ClosedObject,
    Extent,
    LedgerState,
    OffsetChecksum,
    OpenObject,
    PartitionState,
    Record,
)
from sink_job.ledger.store import Ledger
from sink_job.ledger.takeover import take_over
from sink_job.ledger.transitions import diff
from sink_job.rotation.types import OpenObjectState, RotationState
from sink_job.s3 import S3Client
from tests.support.memory_s3 import MemoryS3
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, SyntheticLog

TP = TopicPartition("log", 0)
OTHER = TopicPartition("log", 1)


class ClaimedSink:
    """A sink of a synthetic log whose ledger is claimed, by default with the group `group`."""

    def __init__(self, folder: Path, log: SyntheticLog, **given: Any) -> None:
        self.sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=5, **given))
        self.object_settings = self.sink.object_settings()
        self.memory = MemoryS3()
        self.s3: S3Client = cast("Any", self.memory)
        self.kafka = FileConsumerGroup(log, folder / "group.json")
        self.discovery = TopicDiscovery(self.sink, self.kafka)
        self.root = ledger_root(self.s3, self.sink.spec.s3.topics_dir, self.sink.sink_id)
        self.owner = Owner("function", self.sink.namespace, self.sink.name, self.sink.sink_id)
        self.ledger = Ledger(self.s3, self.root, "attempt")

    def claim(self, *starts: TopicPartition, start: int = 0, by: str = "attempt") -> LedgerState:
        """The state after a claim by the process `by`, with the topic-partitions `starts` from `start` on."""
        new = {str(tp): diff(None, PartitionState.start(start)) for tp in starts}

        def record(state: LedgerState) -> Record:
            number = state.number + 1
            settings = self.object_settings.model_dump_json()
            return Record(number, number, by, "claim", clock=CLOCK_MS, settings=settings, partitions=new)

        return take_over(Ledger(self.s3, self.root, by), record)


def with_partitions(state: LedgerState, partitions: dict[TopicPartition, PartitionState]) -> LedgerState:
    return msgspec.structs.replace(state, partitions={str(tp): p for tp, p in partitions.items()})


def read_up_to(offset: int, *objects: OpenObject, committable: int | None = None) -> PartitionState:
    """A topic-partition whose next offset is `offset`, with these open objects."""
    committable = min((o.first for o in objects), default=offset) if committable is None else committable
    rotation = RotationState(next=offset, committable=committable, open_records=sum(o.count for o in objects))
    return PartitionState(rotation, rotation_start=0, settings=1, open=objects)


def open_object(first: int, last: int, *, path: str = "p", settings: int = 1) -> OpenObject:
    count = last - first + 1
    state = OpenObjectState(path=path, first=first, last=last, count=count, size=count, opened_at=CLOCK_MS)
    return OpenObject(
        state, settings=settings, offsets=OffsetChecksum(count, 7), blocks=(Extent("staging/1", 0, count, 0),)
    )


def closed_object(tp: TopicPartition, first: int, last: int, *, settings: int = 1) -> ClosedObject:
    return ClosedObject(
        key=f"topics/{tp}/{first}",
        topic=tp.topic,
        partition=tp.partition,
        path="p",
        first=first,
        last=last,
        bytes=10,
        crc=1,
        upload=f"upload-of-{first}",
        parts=(),
        sources=(),
        offsets=OffsetChecksum(last - first + 1, 7),
        settings=settings,
    )
