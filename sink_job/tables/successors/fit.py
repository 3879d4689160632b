"""Which objects fit a table, and where the table is left: at the first record with an object that does not. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyiceberg.schema import Schema
from pyiceberg.table import Table

from sink_job.api.errors import TableIncompatible
from sink_job.connect.field_ids import FieldIds
from sink_job.tables.avro_objects.row_columns import RowColumns
from sink_job.tables.files import ObjectFooter
from sink_job.tables.schema_union import union


class Fit(NamedTuple):
    """`footers` are those of the objects that fit, up to and with record `left_at` if that is not None: the record that
    acknowledges the first object that does not. `error` is that of the object."""

    footers: Sequence[ObjectFooter]
    left_at: int | None = None
    error: TableIncompatible | None = None


def fit(rows: RowColumns, footers: Sequence[ObjectFooter]) -> Fit:
    """Adds the columns of the objects that fit. `footers` are in the order of the records that acknowledge the
    objects."""
    errors: dict[int, TableIncompatible | None] = {}
    kept: list[ObjectFooter] = []
    left_at: int | None = None
    first: TableIncompatible | None = None
    for footer in footers:
        o, key = footer.object, id(footer.columns)
        if left_at is not None and o.acknowledged != left_at:
            break
        if key not in errors:
            try:
                rows.add(footer)
                errors[key] = None
            except TableIncompatible as error:
                errors[key] = error
        if errors[key] is None:
            kept.append(footer)
        elif left_at is None:
            left_at, first = o.acknowledged, errors[key]
    return Fit(kept, left_at, first)


def fits_new_table(fits: Fit, footers: Sequence[ObjectFooter], ids: FieldIds | None) -> bool:
    """Whether each object of the record that is not kept fits a table without columns."""
    inside = {each.object.key for each in fits.footers}
    others = [each for each in footers if each.object.acknowledged == fits.left_at and each.object.key not in inside]
    for footer in {id(each.columns): each for each in others}.values():
        try:
            RowColumns(None, (), ids).add(footer)
        except TableIncompatible:
            return False
    return True


def check_optional(schema: Schema, where: str) -> None:
    """Raises TableIncompatible for a table with required columns: its owner has made them."""
    if schema.fields:
        union(schema, schema, (), where)


def is_new_table_better(table: Table | None, fits: Fit, footers: Sequence[ObjectFooter], ids: FieldIds | None) -> bool:
    """Whether the table may be left: its columns are optional, and a new table can have each object that does not fit.
    `ids` are those of the ledger, if an object has names alone."""
    if table is not None:
        check_optional(table.schema(), ".".join(table.name()))
    return fits_new_table(fits, footers, ids)
