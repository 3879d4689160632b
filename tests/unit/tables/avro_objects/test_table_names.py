"""The field ids that a table has for the names of Avro objects, and its name mapping after the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType, NestedField, StringType

from sink_job.api.errors import TableIncompatible
from sink_job.tables.avro_objects.name_mapping import PROPERTY
from sink_job.tables.avro_objects.row_columns import RowColumns, has_names_alone
from sink_job.tables.files import ObjectFooter
from sink_job.tables.partitions.object_partitions import FIRST_PATH_COLUMN
from sink_job.tables.plan import dropped_columns
from tests.unit.tables.avro_objects.avro_tables import NESTED, avro, fields, ids_of, metadata, names_of, parquet_of


class Added(NamedTuple):
    """The columns of a table with those of objects, the objects, and the properties that the commit sets."""

    schema: Schema
    footers: Sequence[ObjectFooter]
    properties: Mapping[str, str]
    by_name: bool


def columns(
    table: TableMetadata | None, *footers: ObjectFooter, ids: Mapping[str, int] | None = None, is_own: bool = True
) -> Added:
    dropped = () if table is None else dropped_columns(table)
    given = (ids or {}) if has_names_alone(footers) else None
    rows = RowColumns(table, dropped, given, is_own=is_own and table is not None)
    for each in footers:
        rows.add(each)
    return Added(rows.schema, rows.resolved(footers), rows.properties, rows.by_name)


def mapping(found: Added) -> dict[int, list[str]]:
    """The names at the top of the mapping, by field id."""
    read: list[dict[str, Any]] = msgspec.json.decode(found.properties[PROPERTY])
    return {each["field-id"]: each["names"] for each in read}


def after(found: Added, *before: Schema) -> TableMetadata:
    """The table after the commit."""
    return metadata(*before, found.schema, mapping=found.properties.get(PROPERTY))


def test_a_new_table_has_ids_in_the_order_of_the_schema() -> None:
    found = columns(None, avro(*NESTED.fields))
    assert found.schema.fields == NESTED.fields
    assert found.by_name
    tree = msgspec.json.decode(found.properties[PROPERTY])
    assert tree[2] == {
        "names": ["prices"],
        "field-id": 6,
        "fields": [{"names": ["key"], "field-id": 7}, {"names": ["value"], "field-id": 8}],
    }


def test_later_objects_have_the_ids_of_the_names_and_new_names_the_next_ones() -> None:
    found = columns(metadata(fields(a=1, b=2)), avro("b", "c"), avro("d", "a", "c"))
    assert names_of(found.footers) == [{"b": 2, "c": 3}, {"d": 4, "a": 1, "c": 3}]
    assert ids_of(found.schema) == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert mapping(found) == {1: ["a"], 2: ["b"], 3: ["c"], 4: ["d"]}


def test_a_commit_without_new_names_does_not_set_the_mapping() -> None:
    first = columns(None, avro("a"))
    again = columns(after(first), avro("a"))
    assert (again.properties, again.by_name) == ({}, True)


def test_a_table_of_parquet_objects_alone_gets_no_mapping() -> None:
    found = columns(metadata(fields(a=1)), parquet_of(fields(a=1, b=2)))
    assert (found.properties, found.by_name) == ({}, False)


def test_columns_of_parquet_objects_are_added_to_a_mapping() -> None:
    table = metadata(fields(a=1), mapping='[{"field-id":1,"names":["a"]}]')
    assert mapping(columns(table, parquet_of(fields(a=1, b=2)))) == {1: ["a"], 2: ["b"]}


def test_a_renamed_column_keeps_the_names_of_the_objects_before() -> None:
    table = metadata(fields(a=1), fields(b=1), mapping='[{"field-id":1,"names":["a"]}]')
    found = columns(table, avro("a"))
    assert names_of(found.footers) == [{"a": 1}]
    assert ids_of(found.schema) == {"b": 1}
    assert mapping(found) == {1: ["a", "b"]}


@pytest.mark.parametrize("mapped", [None, '[{"field-id":1,"names":["a"]}]'], ids=["by its history", "by the mapping"])
def test_a_dropped_column_stays_dropped(mapped: str | None) -> None:
    schemas = (fields(a=1, b=2), fields(b=2)) if mapped is None else (fields(b=2),)
    found = columns(metadata(*schemas, mapping=mapped), avro("a", "b"))
    assert ids_of(found.schema) == {"b": 2}
    assert mapping(found)[1] == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        '[{"field-id":1,"names":["x"],"fields":[{"field-id":2,"names":["b"]}]}]',
        '[{"names":["x"],"fields":[{"field-id":2,"names":["b"]}]}]',
    ],
    ids=["in another column", "in a column without an id"],
)
def test_a_mapping_with_the_id_of_a_column_elsewhere_is_rejected(text: str) -> None:
    """Readers would make null of the values, since the mapping cannot have the id twice."""
    with pytest.raises(
        TableIncompatible, match=r"column b of .* field id 2, and its property .* has this id elsewhere"
    ):
        columns(metadata(fields(a=1, b=2), mapping=text), avro("a", "b"))


def test_the_mapping_decides_about_a_name_that_another_program_has_given_to_another_column() -> None:
    table = metadata(fields(a=1), fields(a=9), mapping='[{"field-id":1,"names":["b"]},{"field-id":9,"names":["a"]}]')
    found = columns(table, avro("a"))
    assert names_of(found.footers) == [{"a": 9}]
    assert found.properties == {}


def test_a_name_of_two_columns_is_rejected_without_a_mapping() -> None:
    with pytest.raises(TableIncompatible, match=r"column a of s3://b/a\.avro: the table had its name for .* ids 1, 9"):
        columns(metadata(fields(a=1), fields(a=9)), avro("a"))


def test_a_name_without_a_field_id_in_the_mapping_is_rejected() -> None:
    with pytest.raises(TableIncompatible, match="has its name without a field id"):
        columns(metadata(fields(a=1), mapping='[{"names":["c"]}]'), avro("c"))


def test_a_name_of_a_column_of_paths_is_rejected() -> None:
    paths = Schema(*fields(a=1).fields, NestedField(FIRST_PATH_COLUMN, "year", StringType(), required=False))
    with pytest.raises(TableIncompatible, match="a column of this name from the paths of objects"):
        columns(metadata(paths), avro("year"))
    found = columns(metadata(paths), avro("a", "new"))
    assert ids_of(found.schema) == {"a": 1, "new": 2, "year": FIRST_PATH_COLUMN}
    assert mapping(found) == {1: ["a"], 2: ["new"]}


def test_a_column_whose_name_avro_does_not_allow_is_not_taken_for_another_one() -> None:
    table = metadata(fields(**{"flight-no": 1}))
    with pytest.raises(TableIncompatible, match="the column flight-no, whose name is flight_no in Avro"):
        columns(table, avro("flight_no"))
    text = '[{"field-id":1,"names":["flight-no","flight_no"]}]'
    found = columns(metadata(fields(**{"flight-no": 1}), mapping=text), avro("flight_no"))
    assert names_of(found.footers) == [{"flight_no": 1}]


def test_columns_of_another_program_have_their_present_names_alone() -> None:
    table = metadata(fields(a=7), fields(b=7))
    found = columns(table, avro("a", "b"), is_own=False)
    assert names_of(found.footers) == [{"a": 8, "b": 7}]


def test_the_ids_of_the_ledger_are_those_of_columns_of_parquet_objects() -> None:
    """Also after a user has renamed one, and for columns of Parquet objects that come later."""
    ids = {"a": 1, "s": 2, "s.x": 3, "later": 4}
    inner = NestedField(2, "s", fields(x=3).as_struct(), required=False)
    table = metadata(fields(b=1, s=(2, fields(x=3).as_struct())))
    found = columns(table, avro("a", inner, "later", "other"), ids=ids)
    assert names_of(found.footers) == [{"a": 1, "s": 2, "s.x": 3, "later": 4, "other": 500_000}]
    assert columns(after(found), parquet_of(fields(a=1, later=4)), ids=ids).properties == {}


def test_parquet_and_avro_objects_of_one_commit_have_the_same_columns() -> None:
    ids = {"a": 1, "b": 2}
    for footers in ((avro("b", "a"), parquet_of(fields(a=1, b=2))), (parquet_of(fields(a=1, b=2)), avro("b", "a"))):
        found = columns(None, *footers, ids=ids)
        assert sorted(map(str, names_of(found.footers))) == ["{'a': 1, 'b': 2}"] * 2


@pytest.mark.parametrize(
    ("parquet", "reason"),
    [
        (fields(b=1), "column b of s3://b/a.parquet has the field id 1, and the table has this id for the column a"),
        (
            fields(a=2),
            "column a of s3://b/a.parquet has the field id 2, and the table has this name for the field id 1",
        ),
    ],
)
def test_a_parquet_object_with_other_ids_than_a_table_of_avro_objects_is_rejected(parquet: Schema, reason: str) -> None:
    table = after(columns(None, avro("a")))
    with pytest.raises(TableIncompatible) as error:
        columns(table, parquet_of(parquet))
    assert reason in str(error.value)


def test_an_object_with_another_type_is_rejected() -> None:
    with pytest.raises(TableIncompatible, match=r"column a does not fit the table: it has the type long.*string"):
        columns(metadata(fields(a=(1, StringType()))), avro("a"))


NAMES = st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True)


@given(st.lists(st.tuples(NAMES, st.sampled_from(["none", "rename", "drop"]), st.sampled_from("abcde")), max_size=8))
def test_a_name_has_the_same_field_id_in_all_commits(steps: list[tuple[list[str], str, str]]) -> None:
    """Another program renames and drops columns in between, as Iceberg's clients do. A name that it has not given to
    another column keeps its id, and each id has one name of objects."""
    schemas: list[Schema] = []
    text: str | None = None
    known: dict[str, int] = {}
    for names, change, name in steps:
        table = metadata(*schemas, mapping=text) if schemas else None
        found = columns(table, avro(*names))
        text = found.properties.get(PROPERTY, text)
        ids = names_of(found.footers)[0]
        assert {**ids, **known} == {**known, **ids}
        known |= ids
        assert len(set(known.values())) == len(known)
        schemas.append(found.schema)
        schemas.append(_changed(found.schema, change, name))


def _changed(schema: Schema, change: str, name: str) -> Schema:
    match change:
        case "rename":
            taken = {each.name for each in schema.fields}
            new = f"user_{name}"
            kept = [
                NestedField(each.field_id, new, LongType(), required=False)
                if each.name == name and new not in taken
                else each
                for each in schema.fields
            ]
            return Schema(*kept)
        case "drop" if len(schema.fields) > 1:
            return Schema(*(each for each in schema.fields if each.name != name))
    return schema
