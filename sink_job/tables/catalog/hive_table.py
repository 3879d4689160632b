"""Tables of Iceberg as Hive's metastore has them: parameters, and columns for Hive's readers.

The parameter `metadata_location` is the table; all else is for readers of the metastore, as Iceberg's own catalog
writes it. What other programs have set stays.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from copy import copy
from typing import Any, Final

from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.catalog.hive import HIVE_PRIMITIVE_TYPES, SchemaToHiveConverter
from pyiceberg.schema import Schema, visit
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import (
    DecimalType,
    NestedField,
    PrimitiveType,
    TimestampNanoType,
    TimestamptzNanoType,
    TimestamptzType,
)

from sink_job.api.errors import TableIncompatible

LOCATION: Final = "metadata_location"
"""The parameter with the location of the table's metadata, on which a commit depends."""
MAX_PARAMETER: Final = 32_672
"""Maximum length of a parameter's value, as in Iceberg's own catalog."""
_MAX_NAME: Final = 256
_MAX_COLUMN: Final = 767
_MAX_COMMENT: Final = 256
_PURGE: Final = "external.table.purge"
_NAME_IN_TYPE: Final = re.compile(r"[\w. $]+")
"""Names of fields that Hive's parser of types reads."""
_OWN: Final = frozenset(
    ("EXTERNAL", "table_type", LOCATION, "previous_metadata_location", "storage_handler", "transactional", _PURGE)
)
"""Parameters that properties of a table do not set."""
_STATISTICS: Final = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}


def location_in(table: Any) -> str:
    """Where the metadata of a table is. Raises TableIncompatible for a table that is not Iceberg's."""
    parameters: Mapping[str, str] = table.parameters or {}
    kind = parameters.get("table_type", "")
    location = parameters.get(LOCATION)
    if kind.lower() != "iceberg" or not location:
        raise TableIncompatible(
            f"{table.dbName}.{table.tableName} is no table of Iceberg (table_type {kind[:100]!r}, {LOCATION} "
            f"{(location or '')[:300]!r}): use another name"
        )
    return location


def new_table(database: str, name: str, metadata: TableMetadata, location: str) -> Any:
    """The table for `create_table`; `location` is that of its metadata."""
    now = int(time.time())
    storage = StorageDescriptor(
        cols=_columns(metadata.schema()),
        location=metadata.location,
        inputFormat="org.apache.hadoop.mapred.FileInputFormat",
        outputFormat="org.apache.hadoop.mapred.FileOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    return HiveTable(
        tableName=name,
        dbName=database,
        owner="s3sink",
        createTime=now,
        lastAccessTime=now,
        sd=storage,
        partitionKeys=[],
        parameters={
            **_parameters(metadata),
            "EXTERNAL": "TRUE",
            "table_type": "ICEBERG",
            LOCATION: location,
        },
        tableType="EXTERNAL_TABLE",
    )


def changed_table(found: Any, before: TableMetadata, after: TableMetadata, location: str) -> Any:
    """The table `found` after a commit from `before` to `after`, whose metadata is at `location`."""
    parameters = dict(found.parameters)
    for name in (*(each for each in before.properties if each not in _OWN), *_parameters(before)):
        parameters.pop(name, None)
    parameters |= _parameters(after)
    parameters |= {"previous_metadata_location": found.parameters[LOCATION], LOCATION: location}
    storage = copy(found.sd) if found.sd is not None else StorageDescriptor()
    storage.cols, storage.location = _columns(after.schema()), after.location
    table = copy(found)
    table.parameters, table.sd = parameters, storage
    return table


def with_columns_of(table: Any, found: Any) -> Any:
    """The table with the columns that it has as `found`."""
    storage = copy(table.sd)
    storage.cols = found.sd.cols
    kept = copy(table)
    kept.sd = storage
    return kept


class _NotInHive(Exception):
    """Hive has no such type."""


def _columns(schema: Schema) -> list[Any]:
    """The columns that Hive can have: their names differ in lower case, and a type that it cannot express is a
    string."""
    columns: dict[str, Any] = {}
    for each in schema.fields:
        if len(each.name) <= _MAX_COLUMN:
            found = FieldSchema(each.name, _type_of(each), each.doc and each.doc[:_MAX_COMMENT])
            columns.setdefault(each.name.lower(), found)
    return list(columns.values())


def _type_of(field: NestedField) -> str:
    try:
        text: str = visit(field.field_type, _HiveTypes(hive2_compatible=True))
    except _NotInHive:
        return "string"
    return text if len(text) <= MAX_PARAMETER else "string"


class _HiveTypes(SchemaToHiveConverter):
    """Hive's names of types: those that all versions can parse."""

    def field(self, field: NestedField, field_result: str) -> str:
        if not _NAME_IN_TYPE.fullmatch(field.name):
            raise _NotInHive
        return super().field(field, field_result)

    def primitive(self, primitive: PrimitiveType) -> str:
        if isinstance(primitive, DecimalType | TimestamptzType):
            return super().primitive(primitive)
        if isinstance(primitive, TimestampNanoType | TimestamptzNanoType):
            return "timestamp"
        return HIVE_PRIMITIVE_TYPES.get(type(primitive), "string")


def _parameters(metadata: TableMetadata) -> dict[str, str]:
    """The parameters of a table that follow from its metadata: properties, statistics and the current snapshot."""
    found = {name: value for name, value in metadata.properties.items() if name not in _OWN}
    if "gc.enabled" in found:
        found[_PURGE] = found.pop("gc.enabled")
    found["uuid"] = str(metadata.table_uuid)
    found["snapshot-count"] = str(len(metadata.snapshots))
    snapshot = metadata.current_snapshot()
    if snapshot is not None:
        summary = dict(snapshot.summary.additional_properties) if snapshot.summary is not None else {}
        found["current-snapshot-id"] = str(snapshot.snapshot_id)
        found["current-snapshot-timestamp-ms"] = str(snapshot.timestamp_ms)
        found["current-snapshot-summary"] = json.dumps(summary)
        found |= {name: summary[total] for name, total in _STATISTICS.items() if total in summary}
    found["current-schema"] = metadata.schema().model_dump_json()
    if metadata.spec().fields:
        found["default-partition-spec"] = metadata.spec().model_dump_json()
    for order in metadata.sort_orders:
        if order.order_id == metadata.default_sort_order_id and order.fields:
            found["default-sort-order"] = order.model_dump_json()
    return {name: value for name, value in found.items() if _fits(name, value)}


def _fits(name: str, value: str) -> bool:
    """Whether the metastore's database can have a parameter; the table's metadata has it in any case."""
    return len(name) <= _MAX_NAME and len(value) <= MAX_PARAMETER and "\0" not in name + value
