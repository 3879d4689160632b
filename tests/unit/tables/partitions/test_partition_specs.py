"""The partition specs that a commit adds."""

from __future__ import annotations

from typing import Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import NestedField, StringType, TimestampType

from sink_job.tables.partitions.object_partitions import ObjectPartition, PartitionValue
from sink_job.tables.partitions.partition_specs import SpecChange, spec_change

SCHEMA = Schema(
    NestedField(1, "a", StringType(), required=False),
    NestedField(2, "b", StringType(), required=False),
    NestedField(3, "at", TimestampType(), required=False),
)
IDENTITY: IdentityTransform[Any] = IdentityTransform()


def of(*sources: int) -> ObjectPartition:
    """The partition of an object with identity fields of these columns."""
    names = {1: "a", 2: "b"}
    return ObjectPartition(tuple(PartitionValue(each, IDENTITY, names[each], "x") for each in sources))


def table(*specs: tuple[int, ...], default: int = 0, schema: Schema = SCHEMA) -> TableMetadata:
    """A table with specs of identity fields of these columns. The id of a field is that of its column and 999."""
    found = new_table_metadata(schema, PartitionSpec(), UNSORTED_SORT_ORDER, "s3://lake/t", {})
    names = {1: "a", 2: "b"}
    made = [
        PartitionSpec(*(PartitionField(s, 999 + s, IDENTITY, names[s]) for s in sources), spec_id=number)
        for number, sources in enumerate(specs)
    ]
    last = max((field.field_id for spec in made for field in spec.fields), default=999)
    return found.model_copy(update={"partition_specs": made, "default_spec_id": default, "last_partition_id": last})


def fields(change: SpecChange) -> list[tuple[int, list[tuple[int, int]]]]:
    """The id of each added spec, and the column and id of its fields."""
    return [(each.spec_id, [(f.source_id, f.field_id) for f in each.fields]) for each in change.added]


def test_a_new_table_has_the_spec_of_its_newest_object_as_the_first_and_default_one() -> None:
    change = spec_change(None, SCHEMA, [of(1), of(), of(1, 2)])
    assert fields(change) == [(0, [(1, 1000), (2, 1001)]), (1, [(1, 1000)]), (2, [])]
    assert (change.default, list(change.of)) == (0, [1, 2, 0])


def test_a_field_has_the_same_id_in_all_specs() -> None:
    change = spec_change(table((1,)), SCHEMA, [of(1), of(2, 1)])
    assert fields(change) == [(1, [(2, 1001), (1, 1000)])]
    assert (change.default, list(change.of)) == (1, [0, 1])


def test_another_transform_of_a_column_is_another_field() -> None:
    day = ObjectPartition((PartitionValue(3, DayTransform(), "at_day", 5),))
    assert fields(spec_change(table((1,)), SCHEMA, [day])) == [(1, [(3, 1001)])]


def test_a_known_spec_is_used_again() -> None:
    change = spec_change(table((1,), (), default=1), SCHEMA, [of(1), of(1)])
    assert (change.added, change.default, list(change.of)) == ((), 0, [0, 0])


def test_the_default_spec_stays_while_an_object_has_it() -> None:
    change = spec_change(table((1,), (), default=0), SCHEMA, [of(1), of()])
    assert (change.default, list(change.of)) == (0, [0, 1])


def test_each_commit_that_adds_specs_changes_the_default_spec() -> None:
    """Commits at the same time that add specs with known fields would otherwise both be accepted, with one id."""
    before = table((1,), (2,), default=1)
    assert spec_change(before, SCHEMA, [of(1, 2), of(2)]).default == 2
    assert spec_change(before, SCHEMA, [of(2), of(2, 1)]).default == 2


def test_a_partition_field_does_not_have_the_name_of_another_column() -> None:
    """Column a was renamed to b, and its partition field has the name a; then another column a was added."""
    renamed = Schema(
        NestedField(1, "b", StringType(), required=False), NestedField(9, "a", StringType(), required=False)
    )
    others = ObjectPartition(
        (PartitionValue(1, IDENTITY, "b", "x"), PartitionValue(9, IDENTITY, "a", "x")),
    )
    change = spec_change(table((1,)), renamed, [others])
    assert [(f.field_id, f.name) for f in change.added[0].fields] == [(1000, "b"), (1001, "a")]
