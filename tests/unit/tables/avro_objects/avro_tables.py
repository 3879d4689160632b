"""Tables with name mappings, and objects of Avro and Parquet as registrations read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.manifest import FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import (
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from sink_job.tables.avro_objects.name_mapping import PROPERTY
from sink_job.tables.files import ObjectFooter
from sink_job.tables.parquet_schema import ObjectColumns
from tests.unit.tables.parquet_objects import listed


def fields(**columns: int | tuple[int, IcebergType]) -> Schema:
    """Columns by name: the field id, and the type if it is not long."""
    pairs = {name: (of, LongType()) if isinstance(of, int) else of for name, of in columns.items()}
    return Schema(*(NestedField(number, name, kind, required=False) for name, (number, kind) in pairs.items()))


NESTED = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(
        2,
        "at",
        StructType(
            NestedField(3, "lat", LongType(), required=False),
            NestedField(4, "tags", ListType(5, StringType(), element_required=False), required=False),
        ),
        required=False,
    ),
    NestedField(6, "prices", MapType(7, StringType(), 8, LongType(), value_required=False), required=False),
)


def metadata(*schemas: Schema, mapping: str | None = None, last: int | None = None) -> TableMetadata:
    """A table that has had these columns; the last ones are the present ones."""
    numbered = [each.model_copy(update={"schema_id": number}) for number, each in enumerate(schemas)]
    given = {
        "location": "s3://lake/t",
        "last-column-id": last or max(each.highest_field_id for each in schemas),
        "schemas": numbered,
        "current-schema-id": len(schemas) - 1,
        "partition-specs": [UNPARTITIONED_PARTITION_SPEC],
        "sort-orders": [UNSORTED_SORT_ORDER],
        "properties": {} if mapping is None else {PROPERTY: mapping},
    }
    return TableMetadataV2.model_validate(given)


def avro(*names: str | NestedField) -> ObjectFooter:
    """An Avro object with columns of longs, or these ones."""
    given = [
        NestedField(number, each, LongType(), required=False) if isinstance(each, str) else each
        for number, each in enumerate(names, 1)
    ]
    return _footer(ObjectColumns(Schema(*given), (), by_name=True), "s3://b/a.avro", FileFormat.AVRO)


def parquet_of(schema: Schema) -> ObjectFooter:
    """A Parquet object with these columns."""
    return _footer(ObjectColumns(schema, ()), "s3://b/a.parquet", FileFormat.PARQUET)


def _footer(columns: ObjectColumns, path: str, file_format: FileFormat) -> ObjectFooter:
    return ObjectFooter(listed("k", b"", 1), columns, {"file_path": path, "file_format": file_format})


def ids_of(schema: Schema) -> Mapping[str, int]:
    """The ids of all columns, by their names with dots."""
    return {schema.find_column_name(number) or "": number for number in sorted(schema.field_ids)}


def names_of(footers: Sequence[ObjectFooter]) -> list[Mapping[str, int]]:
    return [ids_of(each.columns.schema) for each in footers]
