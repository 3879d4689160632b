"""Data files of Iceberg, from the footers of Parquet objects.

A footer is one read at the end of an object, which also proves that the object is there. Its numbers must be those of
the ledger. Bounds of a column are written only if each row group has them: readers skip files by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import MetricModeTypes, StatisticsCollector, StatsAggregator, compute_statistics_plan
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import NotFound, S3Client
from sink_job.tables.parquet_schema import ParquetColumns, columns_of
from sink_job.tables.schema_union import retyped, scalar_types
from sink_job.verify.parquet_footers import InvalidFooter, footer_of

_COUNTED: Final = (MetricModeTypes.NONE, MetricModeTypes.COUNTS)
"""Modes without bounds."""


@dataclass(frozen=True)
class ObjectFooter:
    """The footer of an object and its columns."""

    object: ClosedObject
    metadata: pq.FileMetaData
    columns: ParquetColumns


def read_footer(s3: S3Client, o: ClosedObject) -> ObjectFooter:
    """The footer of `o`. Raises TableNotRegistered if the object does not exist or is not as the ledger says,
    TableIncompatible for columns that no table can have, and the errors of the store."""
    where = f"s3://{s3.bucket}/{o.key}"
    try:
        metadata = footer_of(s3, o)
    except NotFound:
        raise TableNotRegistered(
            f"{where} does not exist any more, or is shorter than the ledger says, and is not in the table yet. "
            "Restore it (s3sink repair), then register again"
        ) from None
    except InvalidFooter as error:
        raise TableNotRegistered(f"{where} is not as the ledger says: {error}. s3sink verify says more") from None
    if metadata.num_rows != o.offsets.count:
        raise TableNotRegistered(
            f"{where} has {metadata.num_rows:,} records, and the ledger says {o.offsets.count:,}. "
            "s3sink verify says more"
        )
    return ObjectFooter(o, metadata, columns_of(metadata, where))


def data_file(bucket: str, footer: ObjectFooter, table: Schema, properties: dict[str, str]) -> DataFile:
    """The entry of an object in a manifest of an unpartitioned table with these columns and properties."""
    columns = Schema(*retyped(footer.columns.schema.fields, scalar_types(table)))
    plan = compute_statistics_plan(columns, properties)
    leaves = enumerate(footer.columns.leaves)
    found = [_ColumnStatistics(footer.metadata, number, plan[field]) for number, field in leaves]
    groups = (footer.metadata.row_group(number) for number in range(footer.metadata.num_row_groups))
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=object_url(bucket, footer.object.key),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=footer.object.offsets.count,
        file_size_in_bytes=footer.object.bytes,
        column_sizes={each.field: each.size for each in found},
        value_counts={each.field: each.values for each in found},
        null_value_counts={each.field: each.nulls for each in found if each.nulls is not None},
        nan_value_counts={},
        lower_bounds={each.field: each.lower for each in found if each.lower is not None},
        upper_bounds={each.field: each.upper for each in found if each.upper is not None},
        key_metadata=None,
        split_offsets=sorted(_start(group.column(0)) for group in groups),
        equality_ids=None,
        sort_order_id=None,
    )


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
        for each in bounded:
            found.update_min(each.min)
            found.update_max(each.max)
        self.lower, self.upper = found.min_as_bytes(), found.max_as_bytes()
