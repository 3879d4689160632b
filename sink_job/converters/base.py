"""The interface of a converter, its result, and helpers of converters for unstructured values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Codes, Mask
from sink_job.connect.schema import RegisteredSchema, Schema
from sink_job.records.fields import MISSING, Rejections


class SchemaTable(Protocol):
    """The schemas that the driver has resolved. A worker asks no registry."""

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """The schema with the id `schema_id` in the records of `topic`; None if the driver has not resolved it yet.

        Raises UnknownSchema if the registry does not know the id.
        """
        ...


@runtime_checkable
class PrefetchingTable(Protocol):
    """A `SchemaTable` that reads schemas from a store."""

    def prefetch(self, topic: str, schema_ids: Collection[str]) -> None:
        """Reads in parallel what `find` needs for these ids. Raises the errors of the store."""
        ...


@dataclass(frozen=True, slots=True)
class BatchSource:
    """The source of a batch: its topic, and if the converter needs them, the records' headers as
    `list<struct<key: string, value: binary>>`."""

    topic: str
    headers: pa.ListArray | None = None


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """The schema of each row: `codes` is its index in `schemas`, -1 for a row without a schema. No two of `schemas` are
    equal."""

    codes: Codes
    schemas: list[Schema]


@dataclass(frozen=True, slots=True)
class Converted:
    """The converted values of a batch.

    `values`: the bytes for the format, one per row, none of them null. A null or rejected row has an undefined value.
    `nulls`: a mask of the rows without a value; None if every row has one.
    `rejected`: (row, reason) of each rejected row, ascending.
    `fields`: for each requested field one value per row, MISSING where the record lacks the field.
    `lines`: each value followed by a newline, if the converter has computed that; else None.
    `rows`: the rows of the output, if the converter was given rows and changes none; `values` are then undefined.
    `schemas`: the schema of each row; None for a converter without schemas.
    `unresolved`: ids of schemas that the driver has not resolved yet, ascending by their first row. Rows from the first
    such row on are undefined.
    `unknown`: the rejected rows whose schema id the registry does not know, ascending.
    `keys`: the converted keys, if their converter has read them; null where a value is null or rejected.
    `dropped_properties`: the number of properties of values that their schemas lack and that are dropped.
    `filtered`: a mask of the rows that transforms leave out, which are neither null nor rejected; None without any.
    """

    values: pa.BinaryArray
    nulls: Mask | None = None
    rejected: Rejections = field(default_factory=list)
    fields: dict[str, list[object]] = field(default_factory=dict)
    lines: pa.BinaryArray | None = None
    rows: pa.BinaryArray | None = None
    schemas: SchemaColumn | None = None
    unresolved: list[tuple[int, str]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    keys: Converted | None = None
    dropped_properties: int = 0
    filtered: Mask | None = None


class ValueConverter(Protocol):
    """Converts the values of a batch."""

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        """Converts `values` of `source`. A null is a Kafka tombstone."""
        ...


@runtime_checkable
class RowConverter(Protocol):
    """A converter of values that can be rows of the output as they are."""

    def convert_rows(self, rows: pa.BinaryArray, source: BatchSource) -> Converted:
        """As `convert`, for values that are followed by the output's separator. A null is a Kafka tombstone."""
        ...


@runtime_checkable
class SchemaConverter(Protocol):
    """A converter whose records have schemas of a registry."""

    def unresolved(self, values: pa.BinaryArray, source: BatchSource) -> tuple[str, ...]:
        """The distinct schema ids of the records that the driver has not resolved yet. Decodes no value."""
        ...


def null_mask(values: pa.BinaryArray) -> Mask | None:
    """A mask of the null rows; None if there are none."""
    return arrow_columns.truths(values.is_null()) if values.null_count else None


def no_fields(fields: tuple[str, ...], n: int) -> dict[str, list[object]]:
    """The fields of `n` unstructured values: MISSING in every row."""
    return {name: [MISSING] * n for name in fields}
