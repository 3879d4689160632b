"""The columns of a table over objects of several schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    StringType,
    StructType,
)

from sink_job.api.errors import TableIncompatible
from sink_job.tables.schema_union import scalar_types, union


def field(number: int, name: str, kind: IcebergType | None = None) -> NestedField:
    return NestedField(number, name, kind or LongType(), required=False)


def joined(old: list[NestedField], new: list[NestedField], dropped: tuple[int, ...] = ()) -> tuple[NestedField, ...]:
    return union(Schema(*old), Schema(*new), dropped, "s3://b/key").fields


def nested(inner: IcebergType) -> list[IcebergType]:
    return [
        StructType(field(2, "x", inner)),
        ListType(2, inner, element_required=False),
        MapType(2, StringType(), 3, inner, value_required=False),
    ]


def test_new_columns_come_after_those_of_the_table() -> None:
    assert joined([field(1, "a")], [field(3, "c"), field(1, "a"), field(2, "b")]) == (
        field(1, "a"),
        field(3, "c"),
        field(2, "b"),
    )


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (IntegerType(), LongType()),
        (FloatType(), DoubleType()),
        (DecimalType(5, 2), DecimalType(9, 2)),
        (StructType(field(2, "x", IntegerType())), StructType(field(2, "x"), field(3, "y"))),
        *zip(nested(IntegerType()), nested(LongType()), strict=True),
    ],
    ids=str,
)
def test_types_become_wider_and_never_narrower(narrow: IcebergType, wide: IcebergType) -> None:
    one, other = [field(1, "a", narrow)], [field(1, "a", wide)]
    assert joined(one, other) == joined(other, one) == tuple(other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LongType(), StringType()),
        (LongType(), DoubleType()),
        (DecimalType(9, 2), DecimalType(9, 3)),
        (LongType(), StructType(field(2, "x"))),
        (StructType(field(2, "x")), ListType(2, LongType(), element_required=False)),
        (ListType(2, LongType(), element_required=False), ListType(3, LongType(), element_required=False)),
        *zip(nested(StringType()), nested(LongType()), strict=True),
    ],
    ids=str,
)
def test_another_type_of_a_column_names_it(old: IcebergType, new: IcebergType) -> None:
    with pytest.raises(TableIncompatible, match=r"s3://b/key: column a.* does not fit the table"):
        joined([field(1, "a", old)], [field(1, "a", new)])


def test_a_column_that_was_dropped_from_the_table_stays_dropped() -> None:
    assert joined([field(1, "a")], [field(1, "a"), field(2, "b")], dropped=(2,)) == (field(1, "a"),)


def test_a_column_that_was_renamed_in_the_table_keeps_its_new_name() -> None:
    assert joined([field(1, "renamed")], [field(1, "a")]) == (field(1, "renamed"),)


def test_an_equal_id_with_a_name_that_the_column_never_had_is_rejected() -> None:
    with pytest.raises(TableIncompatible, match="has the name b for its field id 1"):
        union(Schema(field(1, "b")), Schema(field(1, "a")), (), "s3://b/key", {1: ["b"]})
    old, new = (Schema(field(1, "a", StructType(field(2, name)))) for name in ("x", "y"))
    with pytest.raises(TableIncompatible, match="has the name x for its field id 2"):
        union(old, new, (), "s3://b/key", {1: ["a"], 2: ["x"]})


def test_the_id_of_a_dropped_column_with_another_name_is_rejected() -> None:
    old, new = Schema(field(1, "a")), Schema(field(1, "a"), field(2, "b"))
    with pytest.raises(TableIncompatible, match=r"column b .* had its field id 2 for the dropped column other"):
        union(old, new, {2}, "s3://b/key", {2: ["other"]})


def test_a_name_in_another_case_is_rejected_before_the_first_objects() -> None:
    with pytest.raises(TableIncompatible, match=r"column Kind .*: the table has the column kind, and engines do not"):
        union(Schema(field(1, "kind")), Schema(field(2, "Kind")), (), "s3://b/key", is_own=False)
    assert joined([field(1, "kind")], [field(2, "Kind")]) == (field(1, "kind"), field(2, "Kind"))


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (NestedField(1, "a", LongType(), required=True), "a"),
        (field(1, "a", StructType(NestedField(2, "x", LongType(), required=True))), "a.x"),
        (field(1, "a", ListType(2, LongType(), element_required=True)), "a.element"),
        (field(1, "a", MapType(2, StringType(), 3, LongType(), value_required=True)), "a.value"),
    ],
    ids=str,
)
def test_a_required_column_of_the_table_is_rejected(column: NestedField, name: str) -> None:
    with pytest.raises(TableIncompatible, match=f"requires values of the column {name},"):
        joined([column], [field(9, "other")])


def test_a_name_with_another_id_is_rejected() -> None:
    with pytest.raises(TableIncompatible, match="a column of this name with the field id 1, not 2"):
        joined([field(1, "a")], [field(2, "a")])


def test_an_id_at_another_place_is_rejected() -> None:
    with pytest.raises(TableIncompatible, match="has its field id 2 elsewhere"):
        joined([field(1, "a", StructType(field(2, "x")))], [field(2, "x")])


COLUMNS = st.dictionaries(st.integers(1, 6), st.sampled_from([IntegerType(), LongType()]), min_size=1)


def _fields(columns: Any) -> list[NestedField]:
    return [field(number, f"c{number}", kind) for number, kind in columns.items()]


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_the_columns_do_not_depend_on_the_order_of_objects(objects: list[Any]) -> None:
    def total(order: list[Any]) -> set[NestedField]:
        found = Schema()
        for columns in order:
            found = union(found, Schema(*_fields(columns)), (), "")
        return set(found.fields)

    assert total(objects) == total(objects[::-1])


def test_scalar_types_are_those_of_columns_without_fields_of_their_own() -> None:
    schema = Schema(field(1, "a"), field(4, "s", StructType(field(2, "x", IntegerType()))))
    assert scalar_types(schema) == {1: LongType(), 2: IntegerType()}
