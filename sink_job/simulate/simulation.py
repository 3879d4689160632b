"""Simulates rounds of a sink on given records, with the record pipeline and the rotator of the job.

A step of a simulation is one round. All known topic-partitions take part in it, with or without records. The report of
a step lists closed and open objects. The planned end of a topic-partition's round is the offset after its last
delivered record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.enums import ConverterType, TimestampType, Tolerance, TransformType
from sink_job.api.errors import InvalidSpec
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.partitioning.object_keys import path_elements
from sink_job.records.batch import Rows
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.types import Append, CloseReason, ObjectId, OpenObjectState, RotationState, Step
from sink_job.simulate.compatibility import RecordSchemas, with_schemas
from sink_job.simulate.value_schema import with_value_schema
from sink_job.writer.null_values import written_nulls
from sink_job.writer.record_pipeline import RecordPipeline


class Delivered(NamedTuple):
    """A record from Kafka. `value` None: a tombstone. `timestamp`: in ms; -1: no timestamp. `schema` is that of the
    value, as a converter with schemas would provide it. `headers`: names and values."""

    offset: int
    timestamp: int
    value: bytes | None
    schema: Schema | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class SimulatedObject(msgspec.Struct, rename="camel", omit_defaults=True):
    """An object: its key, the directories of its path, and its records.

    `first_offset` and `last_offset` are inclusive. `size`: bytes, encoded and uncompressed. `reason`: the setting that
    closed it, None while it is open. `offsets` is None if they are not listed.
    """

    key: str
    path: list[str]
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int
    size: int
    reason: str | None = None
    offsets: list[int] | None = None


class SimulatedError(msgspec.Struct):
    """A data error (docs/semantics.md, section 8)."""

    topic: str
    partition: int
    offset: int
    message: str


class StepReport(msgspec.Struct):
    """The result of one round, sorted by topic-partition.

    `closed`: objects in the order of closing. `open`: objects in the order of opening. `committable`: for each
    topic-partition the first offset not in a closed object, None before the first commit. `errors`: data errors.
    """

    closed: list[SimulatedObject]
    open: list[SimulatedObject]
    committable: dict[str, int | None]
    errors: list[SimulatedError]


class Simulation:
    """The topic-partitions of a sink over several rounds. Each call of `write` is one round."""

    def __init__(self, sink: Sink, *, offsets: bool = True, schema: RegisteredSchema | None = None) -> None:
        """`offsets`: list the offsets of each object. `schema` is that of `spec.format.schema`; None if there is none,
        or it is not known. Raises InvalidSpec for a transform that needs values with a schema."""
        _check_transforms(sink)
        pipeline = replace(RecordPipeline.of(_plain(sink.object_settings()), sink.spec.errors), containers=None)
        self._pipeline = with_value_schema(pipeline, sink.object_settings(), schema)
        self._schemas = RecordSchemas(sink.spec.schema_compatibility, written_nulls(sink.object_settings()))
        self._tolerant = sink.spec.errors.tolerance is Tolerance.ALL
        self._skips = sink.spec.errors.skipped_offsets()
        self._offsets = offsets
        self._partitions: dict[TopicPartition, _Partition] = {}

    def next_offset(self, tp: TopicPartition) -> int:
        """The lowest offset that the next record of `tp` may have."""
        return self._partitions[tp].delivered_to if tp in self._partitions else 0

    def write(self, records: Mapping[TopicPartition, Sequence[Delivered]], now: int) -> StepReport:
        """Runs one round at the time `now` (ms). `records` of a topic-partition are in ascending order of offsets."""
        for tp, delivered in records.items():
            if tp not in self._partitions and delivered:
                self._partitions[tp] = _Partition(tp, self._pipeline, self._schemas, delivered[0].offset)
        report = StepReport([], [], {}, [])
        for tp, partition in sorted(self._partitions.items()):
            skip = frozenset(self._skips.get(tp, ()))
            done = partition.round(records.get(tp, ()), now, tolerant=self._tolerant, skip=skip)
            report.closed += [self._object(tp, *each) for each in done.closed]
            report.open += [self._object(tp, *each) for each in partition.open()]
            report.committable[str(tp)] = partition.committable
            report.errors += [SimulatedError(tp.topic, tp.partition, *error) for error in done.errors]
        return report

    def _object(
        self, tp: TopicPartition, state: OpenObjectState, offsets: list[int], reason: CloseReason | None = None
    ) -> SimulatedObject:
        return SimulatedObject(
            key=self._pipeline.key(tp, state.path, state.first),
            path=path_elements(self._pipeline.object_settings, state.path),
            topic=tp.topic,
            partition=tp.partition,
            first_offset=state.first,
            last_offset=state.last,
            records=state.count,
            size=state.size,
            reason=None if reason is None else reason.value,
            offsets=offsets if self._offsets else None,
        )


class _RoundResult(NamedTuple):
    """The result of a partition's round: closed objects with their offsets and reasons, and data errors as (offset,
    message)."""

    closed: list[tuple[OpenObjectState, list[int], CloseReason]]
    errors: list[tuple[int, str]]


class _Partition:
    """One topic-partition: the state of its rotator, and the offsets in its open objects.

    A data error with `errors.tolerance: None` stops it permanently, like the sink. Later records are ignored.
    """

    def __init__(self, tp: TopicPartition, pipeline: RecordPipeline, schemas: RecordSchemas, start: int) -> None:
        self.delivered_to = start
        self.committable: int | None = None
        self._tp = tp
        self._pipeline = pipeline
        self._schemas = schemas
        self._state = RotationState.start(start)
        self._open: list[OpenObjectState] = []
        self._offsets: dict[ObjectId, list[int]] = {}
        self._stopped = False

    def open(self) -> list[tuple[OpenObjectState, list[int]]]:
        """The open objects in the order of opening, with their offsets."""
        return [(state, list(self._offsets[state.id])) for state in self._open]

    def round(
        self, records: Sequence[Delivered], now: int, *, tolerant: bool, skip: frozenset[int] = frozenset()
    ) -> _RoundResult:
        """Runs one round at the time `now` (ms), without the offsets `skip`."""
        done = _RoundResult([], [])
        if records:
            self.delivered_to = records[-1].offset + 1
        if self._stopped:
            return done
        rotator = Rotator(self._pipeline.rotation_policy, self._state, self._open, now)
        self._apply(rotator.open_round(), None, done)
        self._add(rotator, [each for each in records if each.offset not in skip], now, done, tolerant=tolerant)
        if self._stopped:
            rotator.stop_at(done.errors[-1][0])
        else:
            self._apply(rotator.close_round(self.delivered_to), None, done)
        self._state, self._open = rotator.state, list(rotator.open.values())
        if self.committable is not None or done.closed or not self._open:
            self.committable = rotator.committable
        return done

    def _add(
        self, rotator: Rotator, records: Sequence[Delivered], now: int, done: _RoundResult, *, tolerant: bool
    ) -> None:
        if not records:
            return
        schemas = [each.schema if each.value is not None else None for each in records]
        prepared = with_schemas(self._pipeline, schemas).prepare(_batch(records), now, self._tp)
        without_value = np.array([each.value is None for each in records], np.bool_)
        rows, errors = self._schemas.apply(prepared, schemas, without_value)
        if errors and not tolerant:
            self._stopped = True
            rows, errors = rows.between(0, errors[0].row), errors[:1]
        done.errors.extend((error.offset, error.message) for error in errors)
        self._apply(rotator.add(rows), rows, done)

    def _apply(self, steps: Iterable[Step], rows: Rows | None, done: _RoundResult) -> None:
        for step in steps:
            if not isinstance(step, Append):
                done.closed.extend((state, self._offsets.pop(state.id), step.reason) for state in step.objects)
            elif rows is not None:
                self._offsets.setdefault(step.target, []).extend(rows.offsets[step.rows].tolist())


def _check_transforms(sink: Sink) -> None:
    """Raises InvalidSpec for the transforms that values without a schema do not have."""
    errors = [
        f"spec.transforms[{number}] ({each.type}) needs values with a schema, and those of a simulation have none: "
        "leave it out, and simulate the values that it makes"
        for number, each in enumerate(sink.spec.transforms)
        if each.type is TransformType.UNWRAP or each.timestamp_type in _TYPED
    ]
    if errors:
        raise InvalidSpec(errors)


_TYPED: Final = (TimestampType.DATE, TimestampType.TIME, TimestampType.TIMESTAMP)


def _plain(object_settings: ObjectSettings) -> ObjectSettings:
    """The settings with the converters of simulated values and keys: one with a schema is given as JSON, the schema of
    a value beside it."""
    found = {"converter": object_settings.format.converter, "key_converter": object_settings.format.key_converter}
    plain = {name: ConverterType.JSON for name, each in found.items() if each is not None and each.has_schemas}
    if not plain and object_settings.bare_values is None:
        return object_settings
    return object_settings.model_copy(
        update={"format": object_settings.format.model_copy(update=plain), "wire_format": None, "bare_values": None}
    )


def _batch(records: Sequence[Delivered]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "offset": arrow_columns.integers(np.array([record.offset for record in records], np.int64)),
            "value": arrow_columns.binaries([record.value for record in records]),
            "timestamp": arrow_columns.integers(np.array([record.timestamp for record in records], np.int64)),
            "key": arrow_columns.binaries([record.key for record in records]),
            "headers": _header_column([record.headers for record in records]),
            "timestamp_type": pa.Array.from_buffers(pa.int8(), len(records), [None, pa.py_buffer(bytes(len(records)))]),
        }
    )


def _header_column(headers: Sequence[Sequence[tuple[str, bytes | None]]]) -> pa.ListArray:
    ends = np.cumsum([0, *map(len, headers)]).astype(np.int32)
    pairs = [pair for each in headers for pair in each]
    keys, values = arrow_columns.texts([key for key, _ in pairs]), arrow_columns.binaries([value for _, value in pairs])
    found = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends)]), found)
