"""The partition of each object in a table (`spec.tables[].partitioning`). Pure.

A partition value is a promise about all rows of an object, by which readers skip it. So it comes from the exact bounds
of the object's footer, or from its path for a column that no row has: of such a column, readers take the value of the
partition. A field that the bounds do not prove is left out of the object's partition spec (Path), or stops the
registration (Hidden).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pyiceberg.manifest import FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform
from pyiceberg.types import NestedField, StringType, StructType

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableIncompatible, TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.tables.files import ObjectFooter
from sink_job.tables.partitions.exact_bounds import ExactBounds
from sink_job.tables.partitions.object_paths import PathLayout, path_values

FIRST_PATH_COLUMN: Final = 1_000_000
"""Columns that only paths have get field ids from here on. Those of the ledger are smaller."""

_Transform = IdentityTransform[Any] | HourTransform[Any] | DayTransform[Any]


class PartitionValue(NamedTuple):
    """A partition field of an object: the id of its column, the transform, its name if it is new, and the value."""

    source: int
    transform: _Transform
    name: str
    value: Any


@dataclass(frozen=True)
class ObjectPartition:
    """The partition of an object. `without` are the names in its path that have no field, with the reasons."""

    values: tuple[PartitionValue, ...] = ()
    without: Mapping[str, str] | None = None


class RowColumn(NamedTuple):
    """A column of the rows, and whether it is nested."""

    field: NestedField
    is_nested: bool


def row_column(fields: Iterable[NestedField], name: str, *, is_nested: bool = False) -> RowColumn | None:
    """The column with this name, with dots for columns in structs; None if there is none."""
    for each in fields:
        if each.name == name:
            return RowColumn(each, is_nested)
        if isinstance(each.field_type, StructType) and name.startswith(f"{each.name}."):
            rest = name.removeprefix(f"{each.name}.")
            if (found := row_column(each.field_type.fields, rest, is_nested=True)) is not None:
                return found
    return None


class Partitioner:
    """Decides the partition of objects. `layouts` are those of the claims with the objects' settings."""

    def __init__(self, partitioning: TablePartitioning, layouts: Mapping[int, PathLayout]) -> None:
        self.partitioning = partitioning
        self._layouts = layouts

    def columns(self, o: ClosedObject, own: Schema) -> Collection[int]:
        """The ids of the columns whose exact bounds are needed; `own` are the columns of the object."""
        match self.partitioning:
            case TablePartitioning.PATH:
                layout = self._layout(o)
                names = [layout.column(name) for name in path_values(o.path, layout)]
            case TablePartitioning.HIDDEN:
                time = self._layout(o).time
                names = [] if time is None else [time.name]
            case _:
                names = []
        found = (row_column(own.fields, name) for name in names)
        return [each.field.field_id for each in found if each is not None]

    def with_path_columns(
        self, table: TableMetadata | None, schema: Schema, footers: Sequence[ObjectFooter]
    ) -> tuple[Schema, Mapping[str, int]]:
        """The columns of the table and those that only the paths of objects have; and the ids of the latter by name.
        `schema`: the columns of the table with those of the rows. Raises TableIncompatible for a name whose column has
        another type."""
        known = {} if table is None else path_columns(table)
        if self.partitioning is not TablePartitioning.PATH:
            return schema, known
        last = FIRST_PATH_COLUMN - 1 if table is None else max(table.last_column_id, FIRST_PATH_COLUMN - 1)
        taken = {name.lower() for name in schema.column_names}
        added: list[NestedField] = []
        for name in dict.fromkeys(name for each in footers for name in self._path_names(each)):
            if name not in known and name.lower() not in taken:
                last += 1
                added.append(NestedField(last, name, StringType(), required=False))
                known = {**known, name: last}
                taken.add(name.lower())
        if not added:
            return schema, known
        identifiers = schema.identifier_field_ids
        return Schema(*schema.fields, *added, schema_id=schema.schema_id, identifier_field_ids=identifiers), known

    def partition(self, footer: ObjectFooter, schema: Schema, paths: Mapping[str, int]) -> ObjectPartition:
        """The partition of an object in a table with the columns `schema`, and the ids `paths` of columns that only
        paths have. Raises TableIncompatible if the object has none (Hidden)."""
        match self.partitioning:
            case TablePartitioning.PATH:
                return self._by_path(footer, schema, paths)
            case TablePartitioning.HIDDEN:
                return ObjectPartition((self._by_time(footer, schema),))
            case _:
                return ObjectPartition()

    def path_texts(self, o: ClosedObject) -> Mapping[str, str]:
        """The names in the path of an object, and their texts."""
        return path_values(o.path, self._layout(o))

    def _path_names(self, footer: ObjectFooter) -> list[str]:
        """The names in the path of an object that are no columns of its rows."""
        layout, own = self._layout(footer.object), footer.columns.schema.fields
        names = path_values(footer.object.path, layout)
        return [name for name in names if row_column(own, layout.column(name)) is None]

    def _by_path(self, footer: ObjectFooter, schema: Schema, paths: Mapping[str, int]) -> ObjectPartition:
        layout = self._layout(footer.object)
        values: list[PartitionValue] = []
        without: dict[str, str] = {}
        for name, text in path_values(footer.object.path, layout).items():
            column = row_column(footer.columns.schema.fields, layout.column(name))
            if column is not None:
                found = _proven(column, footer, schema)
            elif name in paths:
                found = _of_path(paths[name], text, schema)
            else:
                found = "the table has a column of this name, and the rows of the object have not"
            if isinstance(found, PartitionValue) and found.source not in {each.source for each in values}:
                values.append(found)
            elif isinstance(found, str):
                without[name] = found
        return ObjectPartition(tuple(values), without)

    def _by_time(self, footer: ObjectFooter, schema: Schema) -> PartitionValue:
        where = footer.fields["file_path"]
        time = self._layout(footer.object).time
        if time is None:
            raise TableIncompatible(
                f"{where}: partitioning Hidden needs a path with a time that is a column of the rows, and this object "
                "was written without one. Use Path or None, and another name if the table has objects already"
            )
        transform: HourTransform[Any] | DayTransform[Any] = HourTransform() if time.is_hourly else DayTransform()
        own = row_column(footer.columns.schema.fields, time.name)
        column = own or row_column(schema.fields, time.name)  # rows without the column have null, as after a tombstone
        reason = _time_reason(column, footer, schema, transform, is_own=own is not None)
        if reason is not None:
            raise TableIncompatible(
                f"{where}: partitioning Hidden needs one {transform.root} of column {time.name} (UTC) in an object: "
                f"{reason}. Use None, or Path with another name"
            )
        assert column is not None, "a reason has named a column that does not exist"
        number = column.field.field_id
        name = f"{schema.find_column_name(number)}_{transform.root}"
        while name in schema.column_names:
            name += "_"
        value = transform.transform(schema.find_type(number))(footer.bounds[number].low) if own is not None else None
        return PartitionValue(number, transform, name, value)

    def _layout(self, o: ClosedObject) -> PathLayout:
        found = self._layouts.get(o.settings)
        if found is None:
            raise TableNotRegistered(
                f"record {o.settings:,} of the ledger, a claim with the settings of {o.key}, was deleted: its path "
                "cannot be read. Restore that object (bucket versioning)"
            )
        return found


def path_columns(table: TableMetadata) -> dict[str, int]:
    """The ids of the columns that only paths have, by the name that they got, also of those that were dropped."""
    found: dict[str, int] = {}
    for schema in table.schemas:
        for each in schema.fields:
            if each.field_id >= FIRST_PATH_COLUMN:
                found.setdefault(each.name, each.field_id)
    return found


def _proven(column: RowColumn, footer: ObjectFooter, schema: Schema) -> PartitionValue | str:
    """The value of all rows, or why there is none."""
    number = column.field.field_id
    name = schema.find_column_name(number)
    if name is None:
        return "the column was dropped from the table"
    bounds: ExactBounds | None = footer.bounds.get(number)
    if bounds is None:
        return _no_bounds(footer)
    if not bounds.is_single:
        return "the rows have several values"
    if bounds.low is None and column.is_nested:
        return "a nested column without values"  # readers would make a struct of a null
    return PartitionValue(number, IdentityTransform(), name, bounds.low)


def _no_bounds(footer: ObjectFooter) -> str:
    is_avro = footer.fields.get("file_format") is FileFormat.AVRO
    return "an Avro object has no bounds of columns" if is_avro else "the footer has no bounds of the column"


def _of_path(number: int, text: str, schema: Schema) -> PartitionValue | str:
    """The text in the path."""
    name = schema.find_column_name(number)
    if name is None:
        return "the column was dropped from the table"
    if not isinstance(schema.find_type(number), StringType):
        raise TableIncompatible(
            f"column {name} has the type {schema.find_type(number)}, and the paths of objects have texts for it. Use "
            "another name in spec.tables, or partitioning None"
        )
    return PartitionValue(number, IdentityTransform(), name, text)


def _time_reason(
    column: RowColumn | None,
    footer: ObjectFooter,
    schema: Schema,
    transform: HourTransform[Any] | DayTransform[Any],
    *,
    is_own: bool,
) -> str | None:
    """Why the bounds of a column do not prove one hour or day; None if they do. `is_own`: the object has the column."""
    if column is None:
        return "its rows have no such column"
    number = column.field.field_id
    if schema.find_column_name(number) is None:
        return "the column was dropped from the table"
    kind = column.field.field_type
    if not transform.can_transform(kind):
        return f"the column has the type {kind}"
    if not is_own:
        return None
    bounds = footer.bounds.get(number)
    if bounds is None:
        return _no_bounds(footer)
    if bounds.low is None:
        return None
    if bounds.has_nulls:
        return "some rows have no value"
    of = transform.transform(kind)
    return None if of(bounds.low) == of(bounds.high) else "its rows have several, by the bounds in its footer"
