"""The partition specs of a table, and those that a commit adds for the partitions of its objects. Pure.

A file has the spec with exactly the fields of its partition. A field with the same column and transform has the same id
in all specs, as Iceberg requires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, Transform

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableIncompatible
from sink_job.tables.partitions.object_partitions import ObjectPartition

_Key = tuple[tuple[int, str], ...]

_OWN: Final[Mapping[TablePartitioning, tuple[type[Transform], ...]]] = {  # type: ignore[type-arg]
    TablePartitioning.PATH: (IdentityTransform,),
    TablePartitioning.HIDDEN: (HourTransform, DayTransform),
    TablePartitioning.NONE: (),
}
"""The transforms of the default spec that a registration replaces."""


@dataclass(frozen=True)
class SpecChange:
    """The specs that a commit adds, with their ids, the id of the default spec after it, and the spec id of each
    partition."""

    added: tuple[PartitionSpec, ...]
    default: int
    of: Sequence[int]


def check_default_spec(table: TableMetadata, partitioning: TablePartitioning) -> None:
    """Raises TableIncompatible for a table with partition fields that a registration does not make: the default spec
    belongs to its owner then."""
    others = [each for each in table.spec().fields if not isinstance(each.transform, _OWN[partitioning])]
    if others:
        raise TableIncompatible(
            f"the table is partitioned by {', '.join(each.name for each in others)}, which partitioning {partitioning} "
            "does not make. Use another name in spec.tables, or remove these partition fields"
        )


def spec_change(table: TableMetadata | None, schema: Schema, partitions: Sequence[ObjectPartition]) -> SpecChange:
    """The specs for `partitions`. `schema`: the columns of the table after the commit; `table`: None if
    it does not exist yet.

    The default spec stays if an object has it and no spec is added. Otherwise it is that of the newest object, or the
    last one that is added: of commits at the same time that add specs, the catalog accepts one.
    """
    if table is not None and not partitions:
        return SpecChange((), table.default_spec_id, ())
    known = {} if table is None else {_key_of(each): each for each in reversed(table.partition_specs)}
    by_key = {_key(each): each for each in partitions}
    ordered = [key for key in by_key if key not in known]
    newest = _key(partitions[-1])
    first = ordered if table is not None else sorted(ordered, key=lambda key: key != newest)
    ids = _FieldIds(table, schema)
    number = -1 if table is None else max(each.spec_id for each in table.partition_specs)
    added: dict[_Key, PartitionSpec] = {}
    for key in first:
        number += 1
        added[key] = ids.spec(by_key[key], number)
    specs = {**known, **added}
    of = [specs[_key(each)].spec_id for each in partitions]
    return SpecChange(tuple(added.values()), _default(table, specs, list(added), newest, of), of)


def _default(
    table: TableMetadata | None, specs: Mapping[_Key, PartitionSpec], added: Sequence[_Key], newest: _Key, of: list[int]
) -> int:
    if table is None or newest in added:
        return specs[newest].spec_id
    if added:
        return specs[added[-1]].spec_id
    return table.default_spec_id if table.default_spec_id in of else specs[newest].spec_id


class _FieldIds:
    """Partition fields with the ids that the table has for them, or new ones."""

    def __init__(self, table: TableMetadata | None, schema: Schema) -> None:
        self._schema = schema
        specs = () if table is None else table.partition_specs
        self._known = {_field_key(field): field for spec in reversed(specs) for field in spec.fields}
        last = None if table is None else table.last_partition_id
        used = [each.field_id for each in self._known.values()]
        self._last = max([PARTITION_FIELD_ID_START - 1, *used, *(() if last is None else (last,))])

    def spec(self, partition: ObjectPartition, number: int) -> PartitionSpec:
        fields: list[PartitionField] = []
        for value in partition.values:
            key = (value.source, str(value.transform))
            known = self._known.get(key)
            if known is None:
                self._last += 1
                known = PartitionField(value.source, self._last, value.transform, value.name)
                self._known[key] = known
            elif not self._is_free(known.name, value.source, fields):
                known = PartitionField(value.source, known.field_id, value.transform, value.name)
            fields.append(known)
        return PartitionSpec(*fields, spec_id=number)

    def _is_free(self, name: str, source: int, fields: Sequence[PartitionField]) -> bool:
        """Whether a partition field may still have the name of a column that was renamed."""
        owner = self._schema.find_field(name).field_id if name in self._schema.column_names else source
        return owner == source and name not in {each.name for each in fields}


def _key(partition: ObjectPartition) -> _Key:
    return tuple((each.source, str(each.transform)) for each in partition.values)


def _key_of(spec: PartitionSpec) -> _Key:
    return tuple(map(_field_key, spec.fields))


def _field_key(field: PartitionField) -> tuple[int, str]:
    return field.source_id, str(field.transform)
