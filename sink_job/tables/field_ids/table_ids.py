"""The field ids of the columns of a table, by the paths of the ledger (`sink_job.connect.field_ids`). Pure.

Only names count: types that do not fit are found by the registration of the first object. Ids from
`FIRST_PATH_COLUMN` on are those of columns that only paths have; the ledger never has them. New fields get ids below
`FIRST_BESIDE_LEDGER`: those from there on are given to columns that only Avro objects have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from sink_job.api.errors import TableIncompatible
from sink_job.connect.field_ids import ELEMENT, KEY, VALUE, path_of
from sink_job.ledger.schemas.field_ids import FieldIdsSeed, SeedTable
from sink_job.tables.avro_objects.table_names import FIRST_BESIDE_LEDGER
from sink_job.tables.partitions.object_partitions import FIRST_PATH_COLUMN

MAX_PATHS: Final = 8 << 20
"""Maximum number of characters of all paths. A path repeats the names of the columns that contain it."""


@dataclass(frozen=True)
class TableIds:
    """The ids of a table: by path those of its columns, `dropped` those of columns that it had, and the first one for
    new fields."""

    table: SeedTable
    ids: Mapping[str, int]
    dropped: frozenset[int]
    next: int


def table_ids(name: str, metadata: TableMetadata) -> TableIds:
    """The ids of the table `name`. Raises TableIncompatible if the ledger cannot have them."""
    ids: dict[str, int] = {}
    length = 0
    for path, number in _paths(metadata.schema().fields, ""):
        length += len(path)
        if number < 1:
            raise _unusable(name, f"column {path[:300]} has the field id {number}, and ids begin at 1")
        if length > MAX_PATHS:
            raise _unusable(name, f"the paths of its columns have more than {MAX_PATHS:,} characters")
        if number < FIRST_PATH_COLUMN:
            ids[path] = number
    ever = {number for schema in metadata.schemas for number in schema.field_ids if number < FIRST_PATH_COLUMN}
    used = (number for number in (*ever, metadata.last_column_id) if number < FIRST_BESIDE_LEDGER)
    following = max(1, *used) + 1
    if following >= FIRST_BESIDE_LEDGER:
        raise _unusable(name, f"its next field id is {following:,}, and those from there on have other uses")
    return TableIds(
        table=SeedTable(
            name, str(metadata.table_uuid), 0 if metadata.format_version == 1 else metadata.last_sequence_number
        ),
        ids=ids,
        dropped=frozenset(ever - {*ids.values()}),
        next=following,
    )


def seed_of(tables: Sequence[TableIds]) -> FieldIdsSeed:
    """The ids with which objects can be in all of `tables`. Raises TableIncompatible if there are none."""
    ids: dict[str, int] = {}
    owners: dict[int, tuple[str, str]] = {}
    for each in tables:
        name = each.table.name
        for path, number in each.ids.items():
            other, owner = owners.setdefault(number, (path, name))
            if other != path:
                raise _different(owner, name, f"the id {number} is that of {other} and of {path}")
            if ids.setdefault(path, number) != number:
                raise _different(owners[ids[path]][1], name, f"column {path} has the ids {ids[path]} and {number}")
    for each in tables:
        for number in sorted(each.dropped & owners.keys()):
            path, owner = owners[number]
            raise _different(owner, each.table.name, f"the second has dropped a column with the id {number} of {path}")
    return FieldIdsSeed(ids, max(each.next for each in tables), tuple(each.table for each in tables))


def _unusable(name: str, reason: str) -> TableIncompatible:
    return TableIncompatible(
        f"the field ids of the table {name} cannot be those of a topic: {reason}. Use another name in spec.tables"
    )


def _different(one: str, other: str, reason: str) -> TableIncompatible:
    return TableIncompatible(
        f"the tables {one} and {other} have different field ids: {reason}. No object can be in both: remove one of "
        "them from spec.tables, or use another name for it"
    )


def _paths(fields: Sequence[NestedField], parent: str) -> Iterator[tuple[str, int]]:
    for each in fields:
        yield from _path(each, path_of(parent, each.name))


def _path(field: NestedField, path: str) -> Iterator[tuple[str, int]]:
    yield path, field.field_id
    kind: IcebergType = field.field_type
    if isinstance(kind, StructType):
        yield from _paths(kind.fields, path)
    elif isinstance(kind, ListType):
        yield from _path(kind.element_field, path_of(path, ELEMENT))
    elif isinstance(kind, MapType):
        yield from _path(kind.key_field, path_of(path, KEY))
        yield from _path(kind.value_field, path_of(path, VALUE))
