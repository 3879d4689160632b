"""Data files of Iceberg, from the footers of Parquet objects. `avro_objects` has those of Avro objects.

A footer is one read at the end of an object, which also proves that the object is there. Its numbers must be those of
the ledger. Bounds of a column are written only if each row group has them: readers skip files by them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.io.pyarrow import MetricModeTypes, StatisticsCollector, StatsAggregator, compute_statistics_plan
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, PrimitiveType

from sink_job.api.errors import TableIncompatible, TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import NotFound, S3Client
from sink_job.tables.parquet_schema import ObjectColumns, columns_of
from sink_job.tables.partitions.exact_bounds import TIMES, ExactBounds, exact_bounds
from sink_job.tables.schema_union import scalar_types
from sink_job.verify.parquet_footers import InvalidFooter, footer_of, is_parquet

_COUNTED: Final = (MetricModeTypes.NONE, MetricModeTypes.COUNTS)
"""Modes without bounds."""


class ObjectGone(TableNotRegistered):
    """The store says that an object does not exist."""


Bounded = Callable[[ClosedObject, Schema], Collection[int]]


def _no_columns(o: ClosedObject, own: Schema) -> Collection[int]:
    return ()


@dataclass(frozen=True)
class ObjectFooter:
    """What a table needs of an object. `fields` are those of its entry in a manifest, of a Parquet object without
    `file_format`; bounds in it have the types of the object's columns. `bounds` are exact ones of the columns that its
    partition needs, by their ids; an Avro object has none."""

    object: ClosedObject
    columns: ObjectColumns
    fields: Mapping[str, Any]
    bounds: Mapping[int, ExactBounds] = field(default_factory=dict)


@dataclass(frozen=True)
class _KnownColumns:
    """Columns that objects share, and what is collected of each."""

    schema: pq.ParquetSchema
    columns: ObjectColumns
    plan: Mapping[int, StatisticsCollector]


class FooterReader:
    """Reads the footers of objects for a table with these properties. `bounded`: the ids of the columns of an object of
    which exact bounds are needed. Parsed footers and columns are large: objects share their columns, and no footer is
    kept. Thread-safe."""

    def __init__(self, s3: S3Client, properties: Mapping[str, str], bounded: Bounded = _no_columns) -> None:
        self._s3 = s3
        self._properties = dict(properties)
        self._bounded = bounded
        self._known: dict[str, list[_KnownColumns]] = {}

    def read(self, o: ClosedObject) -> ObjectFooter:
        """The footer of `o`. Raises ObjectGone if the object does not exist, TableNotRegistered if it is not as the
        ledger says, TableIncompatible for columns that no table can have, and the errors of the store."""
        where = f"s3://{self._s3.bucket}/{o.key}"
        metadata = self._metadata(o, where)
        known = self._columns(metadata, where)
        leaves = enumerate(known.columns.leaves)
        statistics = [_ColumnStatistics(metadata, number, known.plan[field]) for number, field in leaves]
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        fields = {
            "file_path": object_url(self._s3.bucket, o.key),
            "record_count": o.offsets.count,
            "file_size_in_bytes": o.bytes,
            "column_sizes": {each.field: each.size for each in statistics},
            "value_counts": {each.field: each.values for each in statistics},
            "null_value_counts": {each.field: each.nulls for each in statistics if each.nulls is not None},
            "lower_bounds": {each.field: each.lower for each in statistics if each.lower is not None},
            "upper_bounds": {each.field: each.upper for each in statistics if each.upper is not None},
            "split_offsets": sorted(_start(group.column(0)) for group in groups),
        }
        return ObjectFooter(o, known.columns, fields, self._bounds(o, metadata, known.columns))

    def _bounds(self, o: ClosedObject, metadata: pq.FileMetaData, columns: ObjectColumns) -> Mapping[int, ExactBounds]:
        found: dict[int, ExactBounds] = {}
        for number in self._bounded(o, columns.schema):
            if number in columns.leaves:
                kind = columns.schema.find_type(number)
                bounds = exact_bounds(metadata, columns.leaves.index(number), kind)
                if bounds is not None:
                    found[number] = bounds
        return found

    def _metadata(self, o: ClosedObject, where: str) -> pq.FileMetaData:
        if not is_parquet(o):
            raise TableNotRegistered(
                f"{where} is not a Parquet object: the sink had another format.output when it wrote it. Such a sink "
                "cannot be registered from its beginning"
            )
        try:
            metadata = footer_of(self._s3, o)
        except NotFound as error:
            if _is_gone(self._s3, o.key, error):
                raise ObjectGone(gone(where)) from None
            raise TableNotRegistered(f"{where} is shorter than the ledger says. s3sink verify says more") from None
        except InvalidFooter as error:
            raise TableNotRegistered(f"{where} is not as the ledger says: {error}. s3sink verify says more") from None
        if metadata.num_rows != o.offsets.count:
            raise TableNotRegistered(
                f"{where} has {metadata.num_rows:,} records, and the ledger says {o.offsets.count:,}. "
                "s3sink verify says more"
            )
        return metadata

    def _columns(self, metadata: pq.FileMetaData, where: str) -> _KnownColumns:
        """The columns of a footer: those of another object if they are equal."""
        key = metadata.schema.to_arrow_schema().to_string(show_field_metadata=True, truncate_metadata=False)
        for each in self._known.get(key, ()):
            if each.schema.equals(metadata.schema):
                return each
        columns = columns_of(metadata, where)
        try:
            plan = compute_statistics_plan(columns.schema, self._properties)
        except ValueError as error:
            raise TableIncompatible(f"the table has a property that cannot be read: {error}") from error
        found = _KnownColumns(metadata.schema, columns, plan)
        self._known.setdefault(key, []).append(found)
        return found


def gone(where: str) -> str:
    """The text of ObjectGone."""
    return (
        f"{where} does not exist any more, and is not in the table yet. Restore it (s3sink repair), then register "
        "again; or leave such objects out with onMissing: Skip in spec.tables"
    )


def _is_gone(s3: S3Client, key: str, error: NotFound) -> bool:
    """Whether an object does not exist, and not only the range that was read. An answer without a code of S3 may be
    that of a proxy, or of a bucket that does not exist."""
    if error.code in ("NoSuchKey", "InvalidRange"):
        return error.code == "NoSuchKey"
    return s3.head(key) is None


class DataFiles:
    """Makes the entries of objects in the manifests of a table with these columns."""

    def __init__(self, table: Schema) -> None:
        self._types = scalar_types(table)
        self._wider: dict[int, Mapping[int, tuple[IcebergType, IcebergType]]] = {}

    def file(self, footer: ObjectFooter, spec_id: int = 0, partition: Sequence[object] = ()) -> DataFile:
        """The entry of an object. Its bounds have the types of the table. `partition` are the values of the fields of
        its partition spec."""
        bounds = {name: self._widened(footer, footer.fields[name]) for name in ("lower_bounds", "upper_bounds")}
        found = DataFile.from_args(
            **{"file_format": FileFormat.PARQUET, **footer.fields, **bounds},
            content=DataFileContent.DATA,
            partition=Record(*partition),
            nan_value_counts={},
            key_metadata=None,
            equality_ids=None,
            sort_order_id=None,
        )
        found.spec_id = spec_id
        return found

    def _widened(self, footer: ObjectFooter, bounds: Mapping[int, bytes]) -> Mapping[int, bytes]:
        wider = self._wider_columns(footer.columns)
        if not wider:
            return bounds
        return {field: _recoded(value, *wider[field]) if field in wider else value for field, value in bounds.items()}

    def _wider_columns(self, columns: ObjectColumns) -> Mapping[int, tuple[IcebergType, IcebergType]]:
        """The types of the columns that the table has with a wider one, and these."""
        found = self._wider.get(id(columns))
        if found is None:
            own = scalar_types(columns.schema)
            found = {
                field: (kind, self._types[field]) for field, kind in own.items() if self._types.get(field, kind) != kind
            }
            self._wider[id(columns)] = found
        return found


def _recoded(value: bytes, own: IcebergType, table: IcebergType) -> bytes:
    """A bound with the type of the table."""
    assert isinstance(own, PrimitiveType), "bounds are of columns without fields of their own"
    assert isinstance(table, PrimitiveType), "a scalar type becomes a wider scalar type"
    return to_bytes(table, from_bytes(own, value))


def object_url(bucket: str, key: str) -> str:
    """The path of an object in a table. Raises TableNotRegistered for a key that readers of tables cut off."""
    if "?" in key or "#" in key:
        raise TableNotRegistered(
            f"s3://{bucket}/{key}: its key contains ? or #, from which on readers of tables cut off a path. Such an "
            "object cannot be in a table"
        )
    return f"s3://{bucket}/{key}"


def _start(column: pq.ColumnChunkMetaData) -> int:
    """The offset of a column of a row group in the object."""
    data: int = column.data_page_offset
    return min(column.dictionary_page_offset, data) if column.has_dictionary_page else data


class _ColumnStatistics:
    """The statistics of a column of Parquet over all row groups. `lower` and `upper`: None if a row group has none."""

    def __init__(self, metadata: pq.FileMetaData, number: int, collector: StatisticsCollector) -> None:
        chunks = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        statistics = [chunk.statistics for chunk in chunks if chunk.is_stats_set]
        self.field = collector.field_id
        self.size = sum(chunk.total_compressed_size for chunk in chunks)
        self.values = sum(chunk.num_values for chunk in chunks)
        is_complete = len(statistics) == len(chunks)
        self.nulls = self._nulls(statistics) if is_complete else None
        self.lower: bytes | None = None
        self.upper: bytes | None = None
        if is_complete and collector.mode.type not in _COUNTED:
            self._add_bounds(statistics, collector)

    def _nulls(self, statistics: Sequence[Any]) -> int | None:
        counts = [each.null_count for each in statistics if each.has_null_count]
        return sum(counts) if len(counts) == len(statistics) else None

    def _add_bounds(self, statistics: Sequence[Any], collector: StatisticsCollector) -> None:
        bounded = [each for each in statistics if each.has_min_max]
        if not bounded or any(not each.has_min_max and each.num_values for each in statistics):
            return  # a row group has values without bounds
        found = StatsAggregator(collector.iceberg_type, bounded[0].physical_type, collector.mode.length)
        is_time = isinstance(collector.iceberg_type, TIMES)  # Python has no years after 9999
        for each in bounded:
            found.update_min(each.min_raw if is_time else each.min)
            found.update_max(each.max_raw if is_time else each.max)
        self.lower, self.upper = found.min_as_bytes(), found.max_as_bytes()
