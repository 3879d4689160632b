"""The transforms of a sink, applied to the values of a batch: each to the whole column before the next one.

A value is read when the first transform needs it, and written once. A record that no transform changes stays byte for
byte as it came.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.enums import ConverterType, InsertSource, TransformType
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Mask
from sink_job.connect.errors import VALUE_ERRORS
from sink_job.converters.base import BatchSource, SchemaConverter, SchemaTable
from sink_job.converters.registered import RegisteredConverter
from sink_job.engine.types import payload
from sink_job.records.fields import Rejections
from sink_job.transforms.base import FILTERED, RecordOrigin, Transform
from sink_job.transforms.decoded_values import UNREADABLE, DecodedValues, ReadValues
from sink_job.transforms.envelopes import EnvelopeValues
from sink_job.transforms.factory import transform_of
from sink_job.transforms.json_values import json_text
from sink_job.transforms.predicates import RecordPredicate
from sink_job.transforms.typed_values import TypedValue


@dataclass(frozen=True, slots=True)
class TransformedBatch:
    """A batch with its values transformed. `filtered` is a mask of the records that a Filter leaves out, `rejected` are
    those that a transform cannot handle; the values of both are null.

    For values with the schema of a registry, `rejected` has also those that cannot be decoded; `unresolved`, `unknown`
    and `dropped_properties` are those of `Converted`."""

    batch: pa.RecordBatch
    filtered: Mask
    rejected: Rejections
    unresolved: list[tuple[int, str]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    dropped_properties: int = 0

    @property
    def hidden(self) -> Mask:
        """A mask of the records that the converter must not see."""
        mask = self.filtered.copy()
        mask[[row for row, _ in self.rejected]] = True
        return mask


@dataclass(frozen=True, slots=True)
class _ListedTransform:
    """One transform. Without `transform` it is a Filter. `name` is for messages."""

    name: str
    predicate: RecordPredicate | None
    transform: Transform | None
    is_filter_without_value: bool


class TransformList:
    """The transforms of a sink, in their order."""

    def __init__(
        self,
        specs: Sequence[TransformSpec],
        converter: ConverterType = ConverterType.JSON,
        decoded: RegisteredConverter | None = None,
    ) -> None:
        """`converter`: that of values. `decoded` reads values with the schema of a registry or of the manifest; without
        it, and with another converter than Json and ConnectJson, transforms are Filters that read no field."""
        is_json = converter in (ConverterType.JSON, ConverterType.CONNECT_JSON) or decoded is not None
        reads = any(each.type is not TransformType.FILTER or _reads(each) for each in specs)
        self._envelopes = EnvelopeValues() if reads and converter is ConverterType.CONNECT_JSON else None
        self._decoded = None if decoded is None else DecodedValues(decoded)
        self._steps = [
            _ListedTransform(
                f"transforms[{number}] ({spec.type})",
                None if spec.when is None else RecordPredicate(spec.when, is_json=is_json),
                transform_of(spec),
                spec.type is TransformType.FILTER and not _reads(spec),
            )
            for number, spec in enumerate(specs)
        ]

    def with_table(self, table: SchemaTable | None) -> TransformList:
        """The same transforms with the schemas of `table`; None changes nothing."""
        if self._decoded is None or table is None:
            return self
        changed = copy.copy(self)
        changed._decoded = self._decoded.with_table(table)
        return changed

    @property
    def reader(self) -> SchemaConverter | None:
        """What reads values with the schema of a registry; None if the sink's converter reads them."""
        return None if self._decoded is None else self._decoded.converter

    def apply(self, batch: pa.RecordBatch, tp: TopicPartition, source: BatchSource | None = None) -> TransformedBatch:
        """Transforms the values of a batch of `tp`. `source` is that of the batch: values with the schema of a registry
        need it."""
        filters = [step.predicate for step in self._steps if step.is_filter_without_value]
        if self._decoded is None and len(filters) == len(self._steps):
            return _filtered(batch, tp, filters)
        values = self._values(batch, source or BatchSource(tp.topic))
        column = _TransformedColumn(batch, tp, values)
        for step in self._steps:
            column.apply(step)
        return column.transformed()

    def _values(self, batch: pa.RecordBatch, source: BatchSource) -> ReadValues:
        if self._decoded is not None:
            return self._decoded.read(payload(batch), source)
        texts, envelopes = payload(batch).to_pylist(), self._envelopes
        write = json_text if envelopes is None else envelopes.write
        return ReadValues([None if each is None else _read(each, envelopes) for each in texts], write, texts)


def _reads(spec: TransformSpec) -> bool:
    """Whether the condition of a transform depends on the value."""
    return spec.when is not None and (spec.when.field is not None or spec.when.tombstone is not None)


def _filtered(batch: pa.RecordBatch, tp: TopicPartition, filters: Sequence[RecordPredicate | None]) -> TransformedBatch:
    """A batch without the values of the records that Filters leave out, none of which reads a value."""
    headers = batch.column("headers") if "headers" in batch.schema.names else None
    mask = np.zeros(len(batch), np.bool_)
    for each in filters:
        mask |= True if each is None else each.without_value(tp.topic, headers, len(batch))
    if mask.any():
        values = pc.if_else(arrow_columns.booleans(mask), pa.scalar(None, pa.binary()), batch.column("value"))
        batch = batch.set_column(batch.schema.names.index("value"), "value", values)
    return TransformedBatch(batch, mask, [])


def needs_timestamp(specs: Sequence[TransformSpec]) -> bool:
    """Whether transforms need the column `timestamp`."""
    return any(each.type is TransformType.INSERT and each.source is InsertSource.TIMESTAMP for each in specs)


def needs_headers(specs: Sequence[TransformSpec]) -> bool:
    """Whether transforms need the column `headers`."""
    return any(each.when is not None and each.when.header is not None for each in specs)


def _read(text: bytes, envelopes: EnvelopeValues | None) -> object:
    if envelopes is None:
        return msgspec.Raw(text)
    try:
        return envelopes.read(text)
    except (*VALUE_ERRORS, RecursionError):
        return UNREADABLE


def _changed(transform: Transform, value: object, origin: RecordOrigin) -> object:
    return transform.typed(value, origin) if isinstance(value, TypedValue) else transform.transform(value, origin)


def _reason(error: Exception) -> str:
    return "the value is nested too deeply" if isinstance(error, RecursionError) else str(error) or "it is malformed"


class _TransformedColumn:
    """The values of a batch while they are transformed."""

    def __init__(self, batch: pa.RecordBatch, tp: TopicPartition, read: ReadValues) -> None:
        self._batch = batch
        self._tp = tp
        self._read = read
        self._values = list(read.values)
        self._rows = list(range(len(self._values)))
        self._offsets = arrow_columns.numbers(batch.column("offset"))
        names = batch.schema.names
        self._timestamps = arrow_columns.numbers(batch.column("timestamp")) if "timestamp" in names else None
        self._headers: pa.ListArray | None = batch.column("headers") if "headers" in names else None
        self._filtered = np.zeros(len(self._values), np.bool_)
        self._rejected: dict[int, str] = {}

    def apply(self, step: _ListedTransform) -> None:
        """Applies a transform to the rows that are neither filtered nor rejected."""
        common = np.ones(len(self._values), np.bool_)
        if step.predicate is not None:
            common = step.predicate.common(self._tp.topic, self._headers, len(self._values))
        rows = []
        for row in self._rows:
            value = self._values[row]
            if value is UNREADABLE and not step.is_filter_without_value:
                rows.append(row)
                continue
            try:
                if step.predicate is None or step.predicate.applies(value, common=bool(common[row])):
                    if step.transform is None:
                        self._filtered[row] = True
                        continue
                    origin = self._origin(row)
                    changed = _changed(step.transform, value, origin)
                    if changed is FILTERED:
                        self._filtered[row] = True
                        continue
                    self._values[row] = changed
            except (*VALUE_ERRORS, RecursionError) as error:
                self._rejected[row] = f"{step.name}: {_reason(error)}"
                continue
            rows.append(row)
        self._rows = rows

    def transformed(self) -> TransformedBatch:
        texts: list[bytes | None] = [None] * len(self._values)
        for row in self._rows:
            value = self._values[row]
            if value is UNREADABLE and row in self._read.reasons:
                self._rejected[row] = self._read.reasons[row]
            elif self._read.texts is not None and value is self._read.values[row]:
                texts[row] = self._read.texts[row]
            elif value is not None and value is not UNREADABLE:
                texts[row] = self._written(row, value)
        values = arrow_columns.binaries(texts)
        batch = self._batch.set_column(self._batch.schema.names.index("value"), "value", values)
        unknown = [row for row in self._read.unknown if row in self._rejected]
        rejected = sorted(self._rejected.items())
        return TransformedBatch(
            batch, self._filtered, rejected, self._read.unresolved, unknown, self._read.dropped_properties
        )

    def _written(self, row: int, value: object) -> bytes | None:
        try:
            return self._read.write(value)
        except (*VALUE_ERRORS, RecursionError) as error:
            self._rejected[row] = f"transforms: {_reason(error)}"
            return None

    def _origin(self, row: int) -> RecordOrigin:
        timestamp = None if self._timestamps is None else int(self._timestamps[row])
        found = None if timestamp is None or timestamp < 0 else timestamp
        return RecordOrigin(self._tp.topic, self._tp.partition, int(self._offsets[row]), found)
