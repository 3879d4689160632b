"""The columns of a table with those of the objects of a commit, by field ids or by name. Pure but for the ids of the
ledger, which are read only for Avro objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from sink_job.connect.field_ids import FieldIds
from sink_job.tables.avro_objects.name_mapping import PROPERTY
from sink_job.tables.avro_objects.table_names import TableNames
from sink_job.tables.files import ObjectFooter
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.schema_union import union


@dataclass(frozen=True)
class RowColumns:
    """The objects with the field ids of the table, its columns after the commit, and the properties that the commit
    sets. `by_name`: some objects have no field ids, so the columns must be as they were loaded."""

    footers: Sequence[ObjectFooter]
    schema: Schema
    properties: Mapping[str, str] = field(default_factory=dict)
    by_name: bool = False


def row_columns(
    table: TableMetadata | None,
    footers: Sequence[ObjectFooter],
    dropped: Collection[int],
    ids: Callable[[], FieldIds],
    *,
    is_own: bool,
) -> RowColumns:
    """`table`: None if it does not exist yet; `dropped` are the ids of columns that it had. `ids` reads those of the
    ledger. `is_own`: the sink has registered objects in the table; otherwise columns with equal ids need equal names,
    since the ids of a table that others have made may be equal by chance. Raises TableIncompatible."""
    found = Schema() if table is None else table.schema()
    named = () if table is None or is_own else found.field_ids
    by_name = any(each.columns.by_name for each in footers)
    is_mapped = table is not None and PROPERTY in table.properties
    names = TableNames(table, ids() if by_name else {}, is_own=is_own) if by_name or is_mapped else None
    if names is not None:
        dropped = {*dropped, *(names.mapped - found.field_ids)}
    known: dict[int, ObjectColumns] = {}
    for footer in {id(each.columns): each for each in footers}.values():
        where, columns = footer.fields["file_path"], footer.columns
        if names is not None:
            columns = names.columns(footer, found, where)
        found = union(found, columns.schema, dropped, where, () if footer.columns.by_name else named)
        known[id(footer.columns)] = columns
    if names is None:
        return RowColumns(footers, found)
    resolved = [replace(each, columns=known[id(each.columns)]) for each in footers]
    return RowColumns(resolved, found, names.property(found), by_name)
