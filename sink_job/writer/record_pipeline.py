"""From a batch of Kafka records to encoded rows with paths: converter, null policy, partitioner, output format.

The tasks of a round, rebuilds, `verify --deep` and the simulator all use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Codes, Integers, Mask
from sink_job.codecs.converters import converter_for, transformed_converter, whole_value_converter
from sink_job.codecs.formats import row_encoder
from sink_job.codecs.record_fields import RecordFields
from sink_job.connect.schema import Schema, schema_id
from sink_job.converters.base import BatchSource, Converted, RowConverter, SchemaColumn, SchemaConverter, ValueConverter
from sink_job.converters.registered import RegisteredConverter, SchemaSettings
from sink_job.engine.types import ROW, payload
from sink_job.envelope.null_records import EnvelopeSchemas
from sink_job.formats.base import ObjectEncoder, RowEncoder
from sink_job.formats.compression import Compression, Uncompressed, compression_of
from sink_job.formats.datum_rows import ConcatenatedBlocks
from sink_job.partitioning.object_keys import MAX_KEY_BYTES, object_key, padded
from sink_job.partitioning.partitioner import PathColumns, PathPartitioner, SchemaNames
from sink_job.partitioning.tombstone_path import with_tombstones
from sink_job.records.batch import REJECTED_PATH, Rows
from sink_job.records.fields import Rejections
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.types import ObjectId
from sink_job.transforms.transform_list import TransformedBatch, TransformList
from sink_job.writer.batch_rows import BatchRows
from sink_job.writer.container_schemas import ContainerSchemas, without_schema
from sink_job.writer.null_values import NullPolicy, written_nulls
from sink_job.writer.projection import BatchProjection, ProjectionRules
from sink_job.writer.schema_stores import SchemaStores

if TYPE_CHECKING:
    from sink_job.envelope.envelope import Envelopes

MAX_REASON = 1000
"""Maximum length of the reason for a rejection. It can quote a schema or a value."""

MAX_DIGITS = 64
"""Maximum number of digits of an offset in a key: 19, or the maximum pad width."""


class RejectionReason(StrEnum):
    """The class of a data error."""

    INVALID_RECORD = "InvalidRecord"
    INVALID_PATH = "InvalidPath"
    NULL_VALUE = "NullValue"
    UNKNOWN_SCHEMA = "UnknownSchema"


class RejectedRow(NamedTuple):
    """A record that is a data error (docs/semantics.md, section 8): its row in the batch, its offset, and the
    reason."""

    row: int
    offset: int
    message: str
    reason: RejectionReason = RejectionReason.INVALID_RECORD


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch that is ready for rotation. `encoded` contains one row of the object's body for each of `rows`; the row
    of a rejected record is undefined. `errors` are ascending; with tolerance None the sink stops before the first one.
    `ignored` is the number of null values that the policy drops, `filtered` that of records that a Filter leaves out.

    `schemas` are the schemas of the records by their ids. `projection` writes rows under another schema; None if
    records are written as they came.

    `unresolved` are the schema ids that the driver has not resolved yet; the batch ends before the first record with
    one of them. `unknown` are the offsets of the rejected records whose schema id the registry does not know.
    `prefix_bytes`: see `RowEncoder`.
    `dropped_properties` is the number of the properties that the schemas of values lack and that are dropped."""

    rows: Rows
    encoded: pa.BinaryArray
    errors: list[RejectedRow]
    ignored: int
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    projection: BatchProjection | None = None
    prefix_bytes: int = 0
    unresolved: tuple[str, ...] = ()
    unknown: tuple[int, ...] = ()
    dropped_properties: int = 0
    filtered: int = 0


@dataclass(frozen=True)
class RecordPipeline:
    """The settings of a sink, applied to its records. What it knows of one batch is in the `PreparedBatch`."""

    object_settings: ObjectSettings
    rotation_policy: RotationPolicy
    partitioner: PathPartitioner
    converter: ValueConverter
    format: RowEncoder
    compression: Compression
    null_policy: NullPolicy
    fields: RecordFields
    stores: SchemaStores
    reads_headers: bool = False
    projection: ProjectionRules | None = None
    containers: ContainerSchemas | None = None
    envelopes: Envelopes | None = None
    transforms: TransformList | None = None

    @classmethod
    def of(
        cls, object_settings: ObjectSettings, errors: ErrorsSpec, stores: SchemaStores | None = None
    ) -> RecordPipeline:
        """`stores`: without them, the schemas of objects are those of this process, and a registry has none.

        Raises ValueError for settings that the spec should have rejected.
        """
        stores = stores or SchemaStores()
        schemas = SchemaSettings.of(object_settings, stores.registered)
        partitioner = PathPartitioner.of(object_settings)
        fields = RecordFields.of(object_settings, partitioner.fields, stores.registered)
        return cls(
            object_settings=object_settings,
            rotation_policy=RotationPolicy.of(object_settings),
            partitioner=partitioner,
            converter=_converter(object_settings, fields.of_value, schemas),
            format=row_encoder(object_settings.format),
            compression=Uncompressed()
            if object_settings.format.output.has_datums
            else compression_of(object_settings.format),
            null_policy=NullPolicy.of(object_settings, errors),
            fields=fields,
            stores=stores,
            reads_headers=schemas is not None and schemas.needs_headers,
            projection=_projection(object_settings, stores),
            containers=_containers(object_settings, stores),
            envelopes=_envelopes(object_settings),
            transforms=_transforms(object_settings, schemas),
        )

    def with_stores(self, stores: SchemaStores) -> RecordPipeline:
        """The same pipeline for a task with other stores. What was compiled is shared."""
        converter, registered = self.converter, stores.registered
        if isinstance(converter, RegisteredConverter) and registered is not None:
            converter = converter.with_table(registered)
        return replace(
            self,
            converter=converter,
            fields=self.fields if registered is None else self.fields.with_table(registered),
            stores=stores,
            transforms=self.transforms if self.transforms is None else self.transforms.with_table(registered),
            projection=_projection(self.object_settings, stores),
            containers=None if self.containers is None else _containers(self.object_settings, stores),
        )

    def keep_schemas(self, topic: str, opened: Iterable[ObjectId], schemas: Mapping[str, Schema]) -> None:
        """Stores the schemas of objects of `topic` that records open, if records are projected to them or the objects
        contain them, and the field ids in them. `schemas` are those of the records' batch. Raises the errors of the
        store."""
        if self.projection is None and self.containers is None:
            return
        ids = [each for each in dict.fromkeys(o.schema for o in opened) if each is not None]
        found = [schemas[each] if each in schemas else self.stores.objects.find(each) for each in ids]
        if not found:
            return
        if self.projection is not None:
            self.stores.objects.put_all(found)
        if self.containers is not None:
            self.containers.keep(topic, found)

    def keep_last_schema(self, schema: Schema) -> None:
        """Stores the schema that later records without a value have (`RotationState.last_schema`), if objects can be
        opened with it. Raises the errors of the store."""
        if self.projection is not None or self.containers is not None:
            self.stores.objects.put_all([schema])

    def prefetch_schemas(self, objects: Iterable[ObjectId]) -> None:
        """Reads the stored schemas of objects, if records are projected to them or the objects contain them. Raises the
        errors of the store."""
        if self.projection is not None or self.containers is not None:
            self.stores.objects.prefetch(each.schema for each in objects if each.schema is not None)

    def object_encoder(self, key: str, topic: str, object_schema: str | None) -> ObjectEncoder:
        """The encoder of the object `key` of `topic`. Raises as `ContainerSchemas.encoder`."""
        if self.containers is None:
            return ConcatenatedBlocks(self.compression)
        assert object_schema is not None, "records without a schema are rejected"
        return self.containers.encoder(key, topic, object_schema)

    @property
    def needs_clock(self) -> bool:
        """Whether paths depend on the round clock."""
        return self.partitioner.needs_clock

    def path_clock(self, previous: int | None, now: int) -> int | None:
        """The clock to record for the paths of a round at clock `now`, in milliseconds; None where no path depends on
        the clock. It stays at `previous`, the topic-partition's path clock so far, while that gives the same time path:
        the offset ranges of such rounds are recorded as one."""
        if not self.needs_clock:
            return None
        if previous is not None and self.partitioner.time_path(previous) == self.partitioner.time_path(now):
            return previous
        return now

    def key(self, tp: TopicPartition, path: str, first: int) -> str:
        """The key of the object of `tp` under `path` whose first offset is `first`."""
        return object_key(self.object_settings, tp.topic, path, tp.partition, first)

    def prepare(self, batch: pa.RecordBatch, now: int, tp: TopicPartition) -> PreparedBatch:
        """Converts a batch of `tp` and computes its paths; `now` is the round clock in ms.

        `batch` contains `offset: int64`, `value: binary` (or `row`), and the columns that `required_columns` names.
        """
        came = batch
        batch, converted = self._converted(batch, tp)
        if converted.unresolved:
            prepared = self.prepare(came.slice(0, converted.unresolved[0][0]), now, tp)
            ids = dict.fromkeys((*(each for _, each in converted.unresolved), *prepared.unresolved))
            return replace(prepared, unresolved=tuple(ids))
        offsets = arrow_columns.numbers(batch.column("offset"))
        given = self._rows_of(batch, tp, converted)
        rejected, ignored = self.null_policy.apply(converted)
        found = self._schemas(batch, tp, converted, self.null_policy.skipped(converted, rejected))
        schemas, rejected = found.schemas, [*rejected, *found.rejected]
        if self.containers is not None:
            rejected = [*rejected, *without_schema(schemas, self.null_policy.skipped(converted, rejected))]
        projection, rejected = self._projection_of(given, found, rejected)
        paths = self._paths(batch, now, tp, converted, rejected)
        codes = paths.codes
        without_path = [*paths.rejected, *self._too_long(tp, paths.paths, codes, offsets)]
        rejected = [*rejected, *without_path]
        encoded = given.encoded()
        distinct = [] if schemas is None else schemas.schemas
        schema_ids = list(map(schema_id, distinct))
        return PreparedBatch(
            rows=Rows(
                offsets=offsets,
                codes=codes,
                paths=paths.paths,
                times=paths.times,
                sizes=np.diff(arrow_columns.bounds(encoded)).astype(np.int64) + self.format.prefix_bytes,
                schemas=None if schemas is None else schemas.codes,
                schema_ids=schema_ids,
                nulls=found.nulls,
                closes=None if projection is None else projection.closes,
                projected_sizes=None if projection is None else projection.sizes,
            ),
            encoded=encoded,
            errors=_rejected_rows(rejected, offsets, self.null_policy.without_written(converted), without_path),
            ignored=ignored,
            schemas=dict(zip(schema_ids, distinct, strict=True)),
            projection=projection,
            prefix_bytes=self.format.prefix_bytes,
            unknown=tuple(offsets[converted.unknown].tolist()),
            dropped_properties=converted.dropped_properties,
            filtered=0 if converted.filtered is None else int(converted.filtered.sum()),
        )

    def _converted(self, batch: pa.RecordBatch, tp: TopicPartition) -> tuple[pa.RecordBatch, Converted]:
        """The batch with its values transformed, and what the converter makes of them."""
        source = self._source(batch, tp)
        transformed = None if self.transforms is None else self.transforms.apply(batch, tp, source)
        batch = batch if transformed is None else transformed.batch
        converted = _after(transformed, _converted(self.converter, batch, source))
        return batch, self.fields.add(converted, batch, tp)

    def _source(self, batch: pa.RecordBatch, tp: TopicPartition) -> BatchSource:
        return BatchSource(tp.topic, batch.column("headers") if self.reads_headers else None)

    def unresolved(self, batch: pa.RecordBatch, tp: TopicPartition) -> tuple[str, ...]:
        """The schema ids in a batch of `tp` that the driver has not resolved yet. It prepares no record."""
        reader = (None if self.transforms is None else self.transforms.reader) or self.converter
        of_values = _unresolved(reader, batch, self._source(batch, tp))
        return (*of_values, *self.fields.unresolved(batch, tp))

    def _rows_of(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted) -> BatchRows:
        heads = None if self.envelopes is None else self.envelopes.heads(batch, tp, converted)
        return BatchRows(batch, self._source(batch, tp), converted, self.converter, self.format, self.envelopes, heads)

    def _projection_of(
        self, given: BatchRows, found: EnvelopeSchemas, rejected: Rejections
    ) -> tuple[BatchProjection | None, Rejections]:
        """How rows are written under other schemas, and all rejections so far. A record without a value needs no
        version of its schema."""
        if self.projection is None or found.schemas is None:
            return None, rejected
        skip = self.null_policy.skipped(given.converted, rejected)
        versioned = skip if found.without_value is None else skip | found.without_value
        rejected = [*rejected, *self.projection.rejections(found.schemas, versioned)]
        skip = self.null_policy.skipped(given.converted, rejected)
        return self.projection.batch(found.schemas, skip, given.projected, self.format.prefix_bytes), rejected

    def _schemas(self, batch: pa.RecordBatch, tp: TopicPartition, converted: Converted, skip: Mask) -> EnvelopeSchemas:
        """The schemas of the records, and those that are rejected for them: an envelope has a schema of its own."""
        if self.envelopes is None:
            return EnvelopeSchemas(converted.schemas, [])
        return self.envelopes.schemas(batch, tp, converted, skip)

    def _paths(
        self, batch: pa.RecordBatch, now: int, tp: TopicPartition, converted: Converted, rejected: Rejections
    ) -> PathColumns:
        skip: Mask | None = None
        if rejected or converted.nulls is not None or converted.filtered is not None:
            skip = self.null_policy.skipped(converted, rejected)
        apart = None if skip is None else self.null_policy.apart(converted, skip)
        if apart is not None and skip is not None:
            skip = skip | apart
        needs_timestamp = self.partitioner.needs_timestamp or apart is not None
        timestamps = arrow_columns.numbers(batch.column("timestamp")) if needs_timestamp else None
        found = self.partitioner.partition(
            len(batch),
            now,
            partition=tp.partition,
            timestamps=timestamps,
            fields=converted.fields,
            schema_names=_schema_names(converted.schemas),
            skip=skip,
        )
        if apart is None or self.null_policy.path is None or timestamps is None:
            return found
        return with_tombstones(found, self.null_policy.path, apart, timestamps)

    def _too_long(self, tp: TopicPartition, paths: list[str], codes: Codes, offsets: Integers) -> Rejections:
        """Rejects the records that would be the first of an object whose key is longer than S3 allows."""
        digits_of_0 = len(padded(self.object_settings, 0))
        available = MAX_KEY_BYTES - len(self.key(tp, "", 0).encode()) + digits_of_0
        rejected: Rejections = []
        for code, path in enumerate(paths):
            if len(path) * 4 + MAX_DIGITS <= available:
                continue
            digits = available - len(path.encode())
            if digits_of_0 > digits:
                rows = np.flatnonzero(codes == code)
            elif digits < MAX_DIGITS:
                rows = np.flatnonzero((codes == code) & (offsets >= 10**digits))
            else:
                continue
            codes[rows] = REJECTED_PATH
            rejected += [(row, f"its object's key would be longer than {MAX_KEY_BYTES} bytes") for row in rows.tolist()]
        return rejected


def _converted(converter: ValueConverter, batch: pa.RecordBatch, source: BatchSource) -> Converted:
    if ROW in batch.schema.names and isinstance(converter, RowConverter):
        return converter.convert_rows(batch.column(ROW), source)
    return converter.convert(batch.column("value"), source)


def _unresolved(
    reader: ValueConverter | SchemaConverter, batch: pa.RecordBatch, source: BatchSource
) -> tuple[str, ...]:
    return reader.unresolved(payload(batch), source) if isinstance(reader, SchemaConverter) else ()


def _after(transformed: TransformedBatch | None, converted: Converted) -> Converted:
    """The converted values of a transformed batch, with what transforms have found out about the values that came. The
    records that they leave out or reject have none."""
    if transformed is None:
        return converted
    if transformed.unresolved or transformed.unknown or transformed.dropped_properties:
        converted = replace(
            converted,
            unresolved=transformed.unresolved,
            unknown=transformed.unknown,
            dropped_properties=transformed.dropped_properties,
        )
    if not (hidden := transformed.hidden).any():
        return converted
    nulls = None if converted.nulls is None else converted.nulls & ~hidden
    return replace(
        converted,
        nulls=nulls if nulls is not None and nulls.any() else None,
        rejected=sorted([*converted.rejected, *transformed.rejected]),
        filtered=transformed.filtered if transformed.filtered.any() else None,
    )


def _rejected_rows(
    rejected: Rejections, offsets: Integers, converted: Converted, without_path: Rejections
) -> list[RejectedRow]:
    """The rejected records, ascending. `without_path` are those of them that have no path."""
    if not rejected:
        return []
    reasons = dict.fromkeys((row for row, _ in without_path), RejectionReason.INVALID_PATH)
    nulls = () if converted.nulls is None else np.flatnonzero(converted.nulls).tolist()
    reasons |= dict.fromkeys(nulls, RejectionReason.NULL_VALUE)
    reasons |= dict.fromkeys(converted.unknown, RejectionReason.UNKNOWN_SCHEMA)
    return [
        RejectedRow(row, int(offsets[row]), _shortened(message), reasons.get(row, RejectionReason.INVALID_RECORD))
        for row, message in sorted(rejected)
    ]


def _projection(object_settings: ObjectSettings, stores: SchemaStores) -> ProjectionRules | None:
    mode, nulls = object_settings.schema_compatibility, written_nulls(object_settings)
    # A record without a value has another row under the schema of a record with one.
    is_projected = mode.projects or (object_settings.format.output.has_datums and nulls is not None and nulls.follow)
    return ProjectionRules(mode, stores.objects) if is_projected and object_settings.has_schemas else None


def _containers(object_settings: ObjectSettings, stores: SchemaStores) -> ContainerSchemas | None:
    return ContainerSchemas(object_settings.format, stores) if object_settings.format.output.has_datums else None


def _schema_names(schemas: SchemaColumn | None) -> SchemaNames | None:
    return None if schemas is None else SchemaNames(schemas.codes, [each.name for each in schemas.schemas])


def _shortened(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…"


def _converter(
    object_settings: ObjectSettings, fields: tuple[str, ...], schemas: SchemaSettings | None
) -> ValueConverter:
    settings = object_settings.format
    if object_settings.transforms_registered and schemas is not None:
        return transformed_converter(fields, settings.output, schemas)
    return converter_for(settings.converter, fields, output=settings.output, schemas=schemas)


def _transforms(object_settings: ObjectSettings, schemas: SchemaSettings | None) -> TransformList | None:
    specs, converter = object_settings.transforms, object_settings.format.converter
    if not specs:
        return None
    if schemas is None or not object_settings.transforms_registered:
        return TransformList(specs, converter)
    return TransformList(specs, converter, whole_value_converter(converter, schemas))


def _envelopes(object_settings: ObjectSettings) -> Envelopes | None:
    """The envelope of a sink; None if its objects contain values alone, which most do."""
    if not object_settings.format.envelope:
        return None
    from sink_job.envelope.envelope import envelopes

    return envelopes(object_settings.format, written_nulls(object_settings))
