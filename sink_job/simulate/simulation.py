"""What a sink's settings would do to given records: rounds without Kafka, S3 or Spark, by the job's own pipeline and
cutter.

A step of a simulation is one round: some topic-partitions get records, the others take part without any, and what the
round closed and left open is told. The planned end of a partition's round is the offset behind the last record
delivered to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.enums import Tolerance
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.partitioning import arrow_columns
from sink_job.partitioning.batch import Rows
from sink_job.partitioning.object_keys import path_elements
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.types import Append, OpenObjectState, RotationState, Step
from sink_job.writer.record_pipeline import RecordPipeline


class Delivered(NamedTuple):
    """A record as Kafka gives it: `value` None is a tombstone, `timestamp` -1 no time (else milliseconds)."""

    offset: int
    timestamp: int
    value: bytes | None


class SimulatedObject(msgspec.Struct, rename="camel", omit_defaults=True):
    """An object: its key, the directories of its path, and the records in it; `offsets` is None when not asked for."""

    key: str
    path: list[str]
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int
    offsets: list[int] | None = None


class SimulatedError(msgspec.Struct):
    """A data error (SEMANTICS section 8)."""

    topic: str
    partition: int
    offset: int
    message: str


class StepReport(msgspec.Struct):
    """What one round did: objects closed in the order of closing, and those left open in the order of opening, each for
    one topic-partition after the other; per topic-partition the offset that could be committed then, None as long as
    nothing can; and the records that are data errors."""

    closed: list[SimulatedObject]
    open: list[SimulatedObject]
    committable: dict[str, int | None]
    errors: list[SimulatedError]


class Simulation:
    """A sink's topic-partitions over the rounds that `write` makes."""

    def __init__(self, sink: Sink, *, offsets: bool = True) -> None:
        """`offsets`: whether each object's offsets are listed."""
        self._pipeline = RecordPipeline.of(sink.shaping(), sink.spec.errors)
        self._tolerant = sink.spec.errors.tolerance is Tolerance.ALL
        self._offsets = offsets
        self._partitions: dict[TopicPartition, _Partition] = {}

    def next_offset(self, tp: TopicPartition) -> int:
        """The first offset that may be delivered to `tp` next."""
        return self._partitions[tp].delivered_to if tp in self._partitions else 0

    def write(self, records: Mapping[TopicPartition, Sequence[Delivered]], now: int) -> StepReport:
        """One round at the clock `now` (milliseconds), with each partition's records in ascending order of offsets."""
        for tp, delivered in records.items():
            if tp not in self._partitions and delivered:
                self._partitions[tp] = _Partition(tp, self._pipeline, delivered[0].offset)
        report = StepReport([], [], {}, [])
        for tp, partition in sorted(self._partitions.items()):
            done = partition.round(records.get(tp, ()), now, tolerant=self._tolerant)
            report.closed += [self._object(tp, *cut) for cut in done.closed]
            report.open += [self._object(tp, *cut) for cut in partition.open()]
            report.committable[str(tp)] = partition.committable
            report.errors += [SimulatedError(tp.topic, tp.partition, *error) for error in done.errors]
        return report

    def _object(self, tp: TopicPartition, cut: OpenObjectState, offsets: list[int]) -> SimulatedObject:
        return SimulatedObject(
            key=self._pipeline.key(tp, cut.path, cut.first),
            path=path_elements(self._pipeline.shaping, cut.path),
            topic=tp.topic,
            partition=tp.partition,
            first_offset=cut.first,
            last_offset=cut.last,
            records=cut.count,
            offsets=offsets if self._offsets else None,
        )


class _Done(NamedTuple):
    """What a partition's round did: objects closed, with their offsets, and data errors as (offset, message)."""

    closed: list[tuple[OpenObjectState, list[int]]]
    errors: list[tuple[int, str]]


class _Partition:
    """One topic-partition: its cutter's state, and the offsets in its open objects.

    A data error that is not tolerated stops it for good, as it stops the sink: later records are not looked at.
    """

    def __init__(self, tp: TopicPartition, pipeline: RecordPipeline, start: int) -> None:
        self.delivered_to = start
        self.committable: int | None = None
        self._tp = tp
        self._pipeline = pipeline
        self._state = RotationState.start(start)
        self._offsets: dict[str, list[int]] = {}
        self._stopped = False

    def open(self) -> list[tuple[OpenObjectState, list[int]]]:
        """The open objects in the order of opening, with their offsets."""
        return [(cut, list(self._offsets[path])) for path, cut in self._state.open.items()]

    def round(self, records: Sequence[Delivered], now: int, *, tolerant: bool) -> _Done:
        done = _Done([], [])
        if records:
            self.delivered_to = records[-1].offset + 1
        if self._stopped:
            return done
        cutter = Rotator(self._pipeline.rotation_policy, self._state, now)
        self._take(cutter.open_round(), None, done)
        self._feed(cutter, records, now, done, tolerant=tolerant)
        if self._stopped:
            cutter.stop_at(done.errors[-1][0])
        else:
            self._take(cutter.close_round(self.delivered_to), None, done)
        self._state = cutter.state
        if self.committable is not None or done.closed or not self._state.open:
            self.committable = cutter.committable
        return done

    def _feed(self, cutter: Rotator, records: Sequence[Delivered], now: int, done: _Done, *, tolerant: bool) -> None:
        if not records:
            return
        prepared = self._pipeline.prepare(_batch(records), now, self._tp)
        rows, errors = prepared.rows, prepared.errors
        if errors and not tolerant:
            self._stopped = True
            rows, errors = rows.between(0, errors[0].row), errors[:1]
        done.errors.extend((error.offset, error.message) for error in errors)
        self._take(cutter.add(rows), rows, done)

    def _take(self, steps: Iterable[Step], rows: Rows | None, done: _Done) -> None:
        for step in steps:
            if not isinstance(step, Append):
                done.closed.extend((cut, self._offsets.pop(cut.path)) for cut in step.objects)
            elif rows is not None:
                self._offsets.setdefault(step.path, []).extend(rows.offsets[step.rows].tolist())


def _batch(records: Sequence[Delivered]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "offset": arrow_columns.integers(np.array([record.offset for record in records], np.int64)),
            "value": arrow_columns.binaries([record.value for record in records]),
            "timestamp": arrow_columns.integers(np.array([record.timestamp for record in records], np.int64)),
        }
    )
