"""The columns of a table that holds objects of several schemas, matched by field ids. Pure.

New columns are added, int, float and decimals become wider; nothing is removed or renamed. A column that a user has
dropped or renamed stays so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

from sink_job.api.errors import TableIncompatible

_WIDER: Final = {(IntegerType(), LongType()), (FloatType(), DoubleType())}


NO_NAMES: Final[Mapping[int, Collection[str]]] = {}


def union(
    table: Schema,
    added: Schema,
    dropped: Collection[int],
    where: str,
    names: Mapping[int, Collection[str]] = NO_NAMES,
    *,
    is_own: bool = True,
) -> Schema:
    """The columns of `table` and those of `added`. `dropped` are ids of columns that the table had; they stay dropped.
    `names` are those that columns of `added` may have, by id; ids that are not in it may have any. `is_own`: the table
    has objects of the sink already; otherwise names must not differ in case alone.

    Raises TableIncompatible, with `where`, if a column has another type or place, or the name of another one, or if the
    table requires values.
    """
    if required := _required(table):
        raise TableIncompatible(
            f"{where}: the table requires values of the column {required[0]}, and objects may have none: make it "
            "optional"
        )
    fields = _Union(table, dropped, where, names, is_own=is_own).fields(table.fields, added.fields, "")
    try:
        found = Schema(*fields, schema_id=table.schema_id, identifier_field_ids=table.identifier_field_ids)
        _ = found.find_field(fields[0].field_id)  # PyIceberg checks names when it makes its index
    except ValueError as error:
        raise TableIncompatible(f"{where}: its columns cannot be in one table: {error}") from None
    return found


def scalar_types(schema: Schema) -> dict[int, IcebergType]:
    """The types of all columns that are neither structs nor lists nor maps, by id."""
    return {number: schema.find_type(number) for number in schema.field_ids if schema.find_type(number).is_primitive}


def _required(schema: Schema) -> list[str]:
    """The names of required columns at any depth. Keys of maps always are."""
    types = (schema.find_type(number) for number in schema.field_ids)
    keys = {each.key_id for each in types if isinstance(each, MapType)}
    found = (number for number in sorted(schema.field_ids - keys) if schema.find_field(number).required)
    return [schema.find_column_name(number) or str(number) for number in found]


class _Union:
    def __init__(
        self,
        table: Schema,
        dropped: Collection[int],
        where: str,
        names: Mapping[int, Collection[str]],
        *,
        is_own: bool,
    ) -> None:
        self._known = table.field_ids
        self._dropped = dropped
        self._where = where
        self._names = names
        self._is_own = is_own

    def fields(self, old: Iterable[NestedField], new: Iterable[NestedField], parent: str) -> list[NestedField]:
        merged = {each.field_id: each for each in old}
        names = {each.name: each.field_id for each in merged.values()}
        cases = {} if self._is_own else {each.lower(): each for each in names}
        for field in new:
            number = field.field_id
            path = f"{parent}.{field.name}" if parent else field.name
            if (present := merged.get(number)) is not None:
                if not self._has_name(field):
                    raise self._error(path, f"the table has the name {present.name} for its field id {number}")
                merged[number] = self._widened(present, field, path)
            elif number in self._dropped:
                if not self._has_name(field):
                    had = ", ".join(sorted(self._names[number]))
                    raise self._error(path, f"the table had its field id {number} for the dropped column {had}")
            elif number in self._known:
                raise self._error(path, f"the table has its field id {number} elsewhere")
            elif field.name in names:
                raise self._error(
                    path, f"the table has a column of this name with the field id {names[field.name]}, not {number}"
                )
            elif (other := cases.get(field.name.lower())) is not None:
                raise self._error(path, f"the table has the column {other}, and engines do not distinguish case")
            else:
                merged[number] = field
                names[field.name] = number
                if not self._is_own:
                    cases[field.name.lower()] = field.name
        return list(merged.values())

    def _has_name(self, field: NestedField) -> bool:
        return field.name in self._names.get(field.field_id, (field.name,))

    def _widened(self, old: NestedField, new: NestedField, path: str) -> NestedField:
        kind = self._type(old.field_type, new.field_type, path)
        return old if kind == old.field_type else old.model_copy(update={"field_type": kind})

    def _type(self, old: IcebergType, new: IcebergType, path: str) -> IcebergType:
        if isinstance(old, StructType) and isinstance(new, StructType):
            return StructType(*self.fields(old.fields, new.fields, path))
        if isinstance(old, ListType) and isinstance(new, ListType):
            (element,) = self._same(path, (old.element_field, new.element_field))
            return ListType(element.field_id, element.field_type, element_required=element.required)
        if isinstance(old, MapType) and isinstance(new, MapType):
            key, value = self._same(path, (old.key_field, new.key_field), (old.value_field, new.value_field))
            return MapType(
                key.field_id, key.field_type, value.field_id, value.field_type, value_required=value.required
            )
        if old == new or (new, old) in _WIDER:
            return old
        if (old, new) in _WIDER:
            return new
        if isinstance(old, DecimalType) and isinstance(new, DecimalType) and old.scale == new.scale:
            return new if new.precision > old.precision else old
        raise self._error(path, f"it has the type {new}, and the table has {old}")

    def _same(self, path: str, *pairs: tuple[NestedField, NestedField]) -> list[NestedField]:
        for old, new in pairs:
            if old.field_id != new.field_id:
                raise self._error(path, f"its {new.name} has the field id {new.field_id}, in the table {old.field_id}")
        return [self._widened(old, new, f"{path}.{new.name}") for old, new in pairs]

    def _error(self, path: str, reason: str) -> TableIncompatible:
        return TableIncompatible(
            f"{self._where}: column {path} does not fit the table: {reason}. Nothing was added; a table of another "
            "name can hold these objects"
        )
