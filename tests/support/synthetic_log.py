"""A driver over a synthetic log, whose records are a function of their offsets: real rounds, ledger and S3 client, no
JVM.

A test can kill a process that runs it at any point and start it again: the consumer group is a file, and the clock is
constant by default.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from sink_job.api.errors import DataLoss, TopicNotFound
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.engine.kafka_admin import GroupMember, TopicInfo
from sink_job.engine.types import Columns, ProcessorFactory, Range
from sink_job.ledger.ownership import Owner
from sink_job.s3 import RetryPolicy, S3Settings

BATCH_RECORDS = 7
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
CLOCK_MS = 1_700_000_000_000

NULL_COLUMNS = {"key": pa.binary(), "headers": HEADERS}
"""The columns that a batch has if a task asks for them and the log has none."""


@dataclass(frozen=True)
class SyntheticLog:
    """Records `0 … records - 1` of each partition of a topic, except the offsets in `gaps`; those at `tombstones` have
    no value.

    Values have about `value_bytes` bytes. `other_topics` maps further topics with the same records to their ids.
    """

    topic: str = "log"
    partitions: int = 1
    records: int = 100
    value_bytes: int = 100
    paths: int = 1
    gaps: frozenset[int] = frozenset()
    tombstones: frozenset[int] = frozenset()
    starts_at: int = 0
    topic_id: str = "topic-id"
    other_topics: Mapping[str, str] = field(default_factory=dict)

    @property
    def topics(self) -> dict[str, str]:
        """The topics and their ids."""
        return {self.topic: self.topic_id, **self.other_topics}

    def value(self, partition: int, offset: int) -> bytes:
        head = json.dumps({"partition": partition, "offset": offset, "kind": f"k{offset % self.paths}"})[:-1]
        pad = "x" * (self.value_bytes - len(head) - 10)
        return f'{head}, "pad": "{pad}"}}'.encode()

    def _value(self, partition: int, offset: int) -> bytes | None:
        return None if offset in self.tombstones else self.value(partition, offset)

    def end(self, partition: int) -> int:
        """The log end offset of a partition (exclusive); tests override it."""
        return self.records

    def timestamp(self, offset: int) -> int:
        return 1_700_000_000_000 + offset * 60_000

    def batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[pa.RecordBatch]:
        offsets = [offset for offset in range(start, end) if offset not in self.gaps]
        for first in range(0, len(offsets), BATCH_RECORDS):
            chosen = offsets[first : first + BATCH_RECORDS]
            yield pa.RecordBatch.from_pydict(
                {
                    "offset": pa.array(chosen, pa.int64()),
                    "value": pa.array([self._value(tp.partition, o) for o in chosen], pa.binary()),
                    "timestamp": pa.array([self.timestamp(o) for o in chosen], pa.int64()),
                }
            )


@dataclass
class InlineEngine:
    """Runs a round's tasks in this process, one after another."""

    log: SyntheticLog
    cancelled: bool = field(default=False)

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        for tp, r in ranges.items():
            if r.start < self.log.starts_at:
                raise DataLoss(f"{tp}: offsets from {r.start} are no longer in Kafka")
        share = factory()
        results = {tp: share(tp, inputs[tp], self._read(tp, r, columns)) for tp, r in ranges.items()}
        results |= {tp: share(tp, inputs[tp], iter(())) for tp in idle}
        share.close()
        return results

    def _read(self, tp: TopicPartition, r: Range, columns: Columns) -> Iterator[pa.RecordBatch]:
        """The batches of a range with the columns that the task asks for, and no others."""
        names = {"offset", "value", *(name for name, asked in columns._asdict().items() if asked)}
        for batch in self.log.batches(tp, r.start, r.end):
            absent = {name: kind for name, kind in NULL_COLUMNS.items() if name in names - {*batch.schema.names}}
            asked = batch.select([name for name in batch.schema.names if name in names])
            for name, kind in absent.items():
                asked = asked.append_column(name, pa.nulls(len(batch), kind))
            yield asked

    def cancel(self) -> None:
        self.cancelled = True


class FileConsumerGroup:
    """A Kafka admin client for the topics of a synthetic log, with the consumer group in a file."""

    def __init__(self, log: SyntheticLog, path: Path) -> None:
        self.log = log
        self.path = path

    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, n) for topic in self.log.topics for n in range(self.log.partitions)]

    def _expect(self, topics: Iterable[str]) -> None:
        if missing := sorted(set(topics) - {tp.topic for tp in self._partitions()}):
            raise TopicNotFound(f"topic {', '.join(missing)} does not exist")

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        self._expect(tp.topic for tp in partitions)
        return {tp: self.log.end(tp.partition) for tp in self._partitions() if tp in partitions}

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self._expect(tp.topic for tp in partitions)
        return {tp: self.log.starts_at for tp in self._partitions() if tp in partitions}

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        self._expect(names or ())
        return {topic: TopicInfo(topic_id, self.log.partitions) for topic, topic_id in self.log.topics.items()}

    def offsets_for_times(self, partitions: Sequence[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        later = [o for o in range(self.log.starts_at, self.log.records) if self.log.timestamp(o) >= ms]
        return {tp: min(later, default=self.log.end(tp.partition)) for tp in self._partitions() if tp in partitions}

    def cluster_id(self) -> str:
        return "function"

    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
    ) -> dict[TopicPartition, int]:
        stored, metadata_of = self._read(self.path), self._read(self._metadata)
        known = {tp: stored[str(tp)] for tp in partitions if str(tp) in stored}
        return {
            tp: o
            for tp, o in known.items()
            if not metadata or f"{metadata_of.get(str(tp))},".startswith(f"{metadata},")
        }

    def group_metadata(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        metadata_of = self._read(self._metadata)
        return {tp: metadata_of[str(tp)] for tp in partitions if str(tp) in metadata_of}

    members = 0

    def group_members(self, group: str) -> int:
        return self.members

    active: Sequence[GroupMember] = ()

    def active_groups(self, topics: Sequence[str]) -> Sequence[GroupMember]:
        return [each for each in self.active if each.topic in topics]

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        self._expect(tp.topic for tp in offsets)
        self._add(self._metadata, {str(tp): metadata for tp in offsets})
        self._add(self.path, {str(tp): offset for tp, offset in offsets.items()})

    @property
    def _metadata(self) -> Path:
        return self.path.with_suffix(".metadata")

    @staticmethod
    def _read(path: Path) -> dict[str, Any]:
        stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return stored

    def _add(self, path: Path, values: Mapping[str, Any]) -> None:
        fresh = path.with_suffix(f"{path.suffix}.new")
        fresh.write_text(json.dumps(self._read(path) | dict(values)))
        fresh.rename(path)

    def log_sizes(self, topics: Sequence[str]) -> None:
        return None


def loopback_settings(endpoint: str, bucket: str, credentials: Path) -> S3Settings:
    """Settings for a server on the loopback address, with 5 s of retries."""
    return S3Settings(
        bucket=bucket,
        region="us-east-1",
        endpoint=endpoint,
        path_style=True,
        credentials_dir=credentials,
        retry=RetryPolicy(max_elapsed_s=5, first_s=0.02, cap_s=0.2),
    )


@lru_cache(maxsize=64)
def sink_of_text(manifest: str) -> Sink:
    """The sink of a manifest. It is immutable, so all drivers and commands of a manifest share it: to read one takes a
    tenth of the CPU time of a small run."""
    return load_sink(manifest)


def new_coordinator(
    manifest: str,
    log: SyntheticLog,
    s3: S3Settings,
    group: Path,
    *,
    goal: StopCondition,
    clock: Callable[[], int] | None = None,
    context: Mapping[str, Any] | None = None,
) -> Coordinator:
    """A driver of `manifest` over `log`; `clock` returns ms; by default it is constant."""
    sink = sink_of_text(manifest)
    clock = clock or (lambda: CLOCK_MS)
    return Coordinator(
        sink,
        CoordinatorContext(
            s3=s3,
            admin=FileConsumerGroup(log, group),
            engine=InlineEngine(log),
            clock=clock,
            owner=Owner("function", sink.namespace, sink.name, sink.sink_id),
            attempt=uuid.uuid4().hex,
            **(context or {}),
        ),
        goal,
        Progress(sink, clock),
    )
