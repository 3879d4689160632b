"""The field ids of the columns of Avro objects, which have none: the table has them by name. Pure.

A name has the id that readers find: that of the table's name mapping, otherwise that of the column with this name now
or before. A further name gets the next id. The same commit that adds such a column, or its first object, sets the
mapping, so that readers and later registrations find the same. Parquet objects keep the ids of the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from sink_job.api.errors import TableIncompatible
from sink_job.avro.names import avro_name
from sink_job.connect.field_ids import FieldIds, path_of
from sink_job.tables.avro_objects.name_mapping import PROPERTY, NameMapping
from sink_job.tables.files import ObjectFooter
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.partitions.object_partitions import FIRST_PATH_COLUMN

FIRST_BESIDE_LEDGER: Final = 500_000
"""The first id of a column that only Avro objects have, in a table of a topic with Parquet objects: the ledger gives
the ids before to columns of these."""


@dataclass(frozen=True)
class _Place:
    """A column that contains others: its id in the table, its path by the names of the object, the one with dots, and
    the columns that the table has in it."""

    number: int | None
    path: str
    shown: str
    columns: Collection[NestedField]

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The ids of the columns by name."""
        return {each.name: each.field_id for each in self.columns}

    @cached_property
    def alike(self) -> Mapping[str, Sequence[str]]:
        """The names of the columns by what Avro makes of them, if that is another name."""
        found: dict[str, list[str]] = defaultdict(list)
        for each in self.columns:
            if (name := avro_name(each.name)) != each.name:
                found[name].append(each.name)
        return found


class TableNames:
    """The names of a table. `ids` are those of the ledger for the topic. `is_own`: the sink has registered objects in
    the table, so its columns with ids of the ledger are those of the topic, and its former names are names of objects.
    """

    def __init__(self, table: TableMetadata | None, ids: FieldIds, *, is_own: bool) -> None:
        """Raises TableIncompatible for a mapping that cannot be read."""
        schemas = [] if table is None else table.schemas
        text = None if table is None else table.properties.get(PROPERTY)
        self._before = text
        self._mapping = NameMapping() if text is None else NameMapping.parse(text)
        self._ids = ids
        self._former: dict[tuple[int | None, str], set[int]] = defaultdict(set)
        for schema in schemas if is_own else [] if table is None else [table.schema()]:
            for parent, field in _with_parents(schema.fields):
                self._former[parent, field.name].add(field.field_id)
        self._of_ledger = {each.field_id for _, each in all_columns(schemas)} if is_own and text is None else set[int]()
        self._used = {each.field_id for _, each in all_columns(schemas)} | self._mapping.ids
        last = 0 if table is None else table.last_column_id
        first = FIRST_BESIDE_LEDGER if ids else 1
        taken = (each for each in (*self._used, *ids.values(), last) if each < FIRST_PATH_COLUMN)
        self._last = max(first - 1, *taken, 0)
        self._has_avro = False
        self.mapped = self._mapping.ids
        """The ids that the mapping had before. A column with one of them that the table lacks was dropped."""

    def names(self, number: int) -> Sequence[str]:
        """The names of a column in the mapping; none if it is not there."""
        return self._mapping.names(number)

    def copy(self) -> TableNames:
        """The same names, for a change that may be thrown away."""
        found = copy(self)
        found._mapping, found._used, found._of_ledger = deepcopy(self._mapping), {*self._used}, {*self._of_ledger}
        return found

    def columns(self, footer: ObjectFooter, table: Schema, where: str) -> ObjectColumns:
        """The columns of an object with the ids of the table. `table`: its columns with those of objects before.
        Raises TableIncompatible for a name that is not clear."""
        columns, fields = footer.columns, footer.columns.schema.fields
        if columns.by_name:
            self._has_avro = True
            found = self._fields(fields, _Place(None, "", "", table.fields), table, where)
            return replace(columns, schema=Schema(*found), by_name=False)
        for parent, field in _with_parents(fields):
            self._check(parent, field, where)
            if self._before is None:
                self._of_ledger.add(field.field_id)
            self._used.add(field.field_id)
        return columns

    def property(self, table: Schema) -> Mapping[str, str]:
        """The mapping, if it is new or has more names. `table`: the columns after the commit."""
        if self._before is None and not self._has_avro:
            return {}
        for parent, field in _with_parents(table.fields):
            if field.field_id < FIRST_PATH_COLUMN:
                self._mapping.add(parent, field.name, field.field_id)
        if self._before is None:
            for (parent, name), numbers in self._former.items():
                if len(numbers) == 1 and min(numbers) < FIRST_PATH_COLUMN:
                    self._mapping.add(parent, name, min(numbers))
        text = self._mapping.text
        known = None if self._before is None else NameMapping.parse(self._before).text
        return {} if text == known else {PROPERTY: text}

    def _fields(self, fields: Iterable[NestedField], place: _Place, table: Schema, where: str) -> list[NestedField]:
        return [self._field(each, place, table, where) for each in fields]

    def _field(self, field: NestedField, place: _Place, table: Schema, where: str) -> NestedField:
        shown = f"{place.shown}.{field.name}" if place.shown else field.name
        path = path_of(place.path, field.name)
        number = self._number(field, place, path, f"column {shown} of {where}")
        self._mapping.add(place.number, field.name, number)
        mapped = self._mapping.find(place.number, field.name)
        if mapped is None or mapped.number != number:
            raise TableIncompatible(
                f"column {shown} of {where}: the table has it with the field id {number}, and its property {PROPERTY} "
                "has this id elsewhere, so no reader would find the values: correct the property"
            )
        inner = _Place(number, path, shown, _columns_in(table, number))
        return field.model_copy(
            update={"field_id": number, "field_type": self._type(field.field_type, inner, table, where)}
        )

    def _type(self, kind: IcebergType, place: _Place, table: Schema, where: str) -> IcebergType:
        match kind:
            case StructType():
                return StructType(*self._fields(kind.fields, place, table, where))
            case ListType():
                element = self._field(kind.element_field, place, table, where)
                return ListType(element.field_id, element.field_type, element_required=False)
            case MapType():
                key = self._field(kind.key_field, place, table, where)
                value = self._field(kind.value_field, place, table, where)
                return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value_required=False)
        return kind

    def _number(self, field: NestedField, place: _Place, path: str, what: str) -> int:
        mapped = self._mapping.find(place.number, field.name)
        if mapped is not None:
            if mapped.number is None:
                raise TableIncompatible(
                    f"{what}: the property {PROPERTY} of the table has its name without a field id, so no reader reads "
                    "it. Give it one, or remove the name"
                )
            return mapped.number
        of_ledger = self._ids.get(path)
        if of_ledger in self._of_ledger:
            return of_ledger
        known = self._known(field, place, what)
        if known is not None:
            return known
        if of_ledger is not None and of_ledger not in self._used:
            self._used.add(of_ledger)
            return of_ledger
        self._last += 1
        self._used.add(self._last)
        return self._last

    def _known(self, field: NestedField, place: _Place, what: str) -> int | None:
        """The id of the column with the name of the field, now or before."""
        now = {place.ids[field.name]} if field.name in place.ids else set[int]()
        found = now | self._former.get((place.number, field.name), set())
        if len(found) > 1:
            raise TableIncompatible(
                f"{what}: the table had its name for several columns, with the field ids "
                f"{', '.join(map(str, sorted(found)))}. Set the property {PROPERTY} of the table, which decides"
            )
        if found and min(found) >= FIRST_PATH_COLUMN:
            raise TableIncompatible(
                f"{what}: the table has a column of this name from the paths of objects. Use another name in "
                "spec.tables, or partitioning None"
            )
        alike = place.alike.get(field.name, ())
        if alike and not found:
            raise TableIncompatible(
                f"{what}: the table has the column {alike[0]}, whose name is {field.name} in Avro. If it is the same "
                f"one, add {field.name} to its names in the property {PROPERTY} of the table; otherwise add a column "
                f"{field.name} to the table"
            )
        return min(found, default=None)

    def _check(self, parent: int | None, field: NestedField, where: str) -> None:
        """A column of a Parquet object is the one that the table has with its id. In a table with Avro objects, whose
        ids are not those of the ledger, its name has to be known."""
        number = field.field_id
        mapped, names = self._mapping.find(parent, field.name), self._mapping.names(number)
        if mapped is not None and mapped.number != number:
            has = f"this name for the field id {mapped.number}"
        elif names and field.name not in names and number not in self._former[parent, field.name]:
            has = f"this id for the column {names[0]}"
        else:
            return
        raise TableIncompatible(
            f"column {field.name} of {where} has the field id {number}, and the table has {has}: its columns got their "
            "ids from Avro objects. Use another name in spec.tables for a table of Parquet objects"
        )


def _columns_in(table: Schema, number: int) -> Collection[NestedField]:
    """The columns in a column of the table."""
    try:
        return _inner(table.find_type(number))
    except ValueError:  # a new one
        return ()


def _inner(kind: IcebergType) -> Collection[NestedField]:
    match kind:
        case StructType():
            return kind.fields
        case ListType():
            return (kind.element_field,)
        case MapType():
            return (kind.key_field, kind.value_field)
    return ()


def _with_parents(fields: Iterable[NestedField], parent: int | None = None) -> Iterator[tuple[int | None, NestedField]]:
    """All columns, each with the id of the one that contains it, and before those that it contains."""
    for each in fields:
        yield parent, each
        yield from _with_parents(_inner(each.field_type), each.field_id)


def all_columns(schemas: Iterable[Schema]) -> Iterator[tuple[int | None, NestedField]]:
    """The columns of several schemas at any depth, each with the id of the one that contains it."""
    return (found for schema in schemas for found in _with_parents(schema.fields))
