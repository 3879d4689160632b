"""The field ids of a table, as a topic takes them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import IcebergType, ListType, LongType, MapType, NestedField, StringType, StructType

from sink_job.api.errors import TableIncompatible
from sink_job.connect import schema as connect
from sink_job.connect.field_ids import field_paths
from sink_job.ledger.schemas.field_ids import FieldIdsSeed, SeedTable
from sink_job.tables.field_ids.table_ids import seed_of, table_ids

UUID = uuid.UUID(int=7)
TABLE = SeedTable("lake.log", str(UUID), 0)


def field(number: int, name: str, kind: IcebergType | None = None) -> NestedField:
    return NestedField(number, name, kind or LongType(), required=False)


def metadata(*fields: NestedField, before: tuple[Schema, ...] = (), last: int | None = None) -> TableMetadata:
    """A table with these columns. `before` are earlier schemas, `last` is the highest id that it ever had."""
    made = new_table_metadata(Schema(), PartitionSpec(), UNSORTED_SORT_ORDER, "s3://lake/t", {}, UUID)
    schemas = [*before, Schema(*fields, schema_id=len(before))]
    highest = max([0, *(each.highest_field_id for each in schemas if each.fields)])
    changed: dict[str, Any] = {"schemas": schemas, "current_schema_id": len(before), "last_column_id": last or highest}
    return made.model_copy(update=changed)


def seed(*fields: NestedField, **given: Any) -> FieldIdsSeed:
    return seed_of([table_ids("lake.log", metadata(*fields, **given))])


def test_nested_types_have_the_paths_of_the_ledger() -> None:
    found = seed(
        field(4, "at", StructType(field(9, "lat"), field(10, "lon"))),
        field(2, "tags", ListType(5, StructType(field(11, "name", StringType())), element_required=False)),
        field(3, "prices", MapType(6, StringType(), 7, ListType(8, LongType(), False), value_required=False)),
        field(1, "a.b\\c"),
    )
    assert found.ids == {
        "at": 4,
        "at.lat": 9,
        "at.lon": 10,
        "tags": 2,
        "tags.element": 5,
        "tags.element.name": 11,
        "prices": 3,
        "prices.key": 6,
        "prices.value": 7,
        "prices.value.element": 8,
        "a\\.b\\\\c": 1,
    }
    assert (found.next, found.tables) == (12, (TABLE,))


SCHEMAS = st.recursive(
    st.just(connect.Schema(connect.SchemaType.INT64)),
    lambda inner: st.one_of(
        st.builds(lambda each: connect.Schema(connect.SchemaType.ARRAY, values=each), inner),
        st.builds(lambda k, v: connect.Schema(connect.SchemaType.MAP, keys=k, values=v), inner, inner),
        st.dictionaries(st.sampled_from(["a", "a.b", "key", "element", "\\"]), inner, min_size=1, max_size=3).map(
            lambda each: connect.Schema(
                connect.SchemaType.STRUCT,
                fields=tuple(connect.Field(name, inner) for name, inner in each.items()),
            )
        ),
    ),
    max_leaves=8,
)


def iceberg(schema: connect.Schema, numbers: Any) -> IcebergType:
    match schema.type:
        case connect.SchemaType.STRUCT:
            return StructType(
                *(field(next(numbers), each.name, iceberg(each.schema, numbers)) for each in schema.fields)
            )
        case connect.SchemaType.ARRAY:
            assert schema.values is not None
            return ListType(next(numbers), iceberg(schema.values, numbers), element_required=False)
        case connect.SchemaType.MAP:
            assert schema.keys is not None
            assert schema.values is not None
            return MapType(next(numbers), iceberg(schema.keys, numbers), next(numbers), iceberg(schema.values, numbers))
    return LongType()


@given(SCHEMAS, st.randoms(use_true_random=False))
def test_each_path_of_a_schema_has_the_id_of_its_column(inner: connect.Schema, random: Any) -> None:
    whole = connect.Schema(connect.SchemaType.STRUCT, fields=(connect.Field("x", inner), connect.Field("y", inner)))
    paths = field_paths(whole)
    numbers = random.sample(range(1, 1000), len(paths))
    kind = iceberg(whole, iter(numbers))
    assert isinstance(kind, StructType)
    found = seed(*kind.fields)
    assert {*found.ids} == {*paths}
    assert {*found.ids.values()} == {*numbers}
    assert found.next == max(numbers) + 1


def test_new_fields_have_ids_above_those_of_dropped_columns() -> None:
    before = Schema(field(1, "a"), field(2, "b", StructType(field(5, "x"))), schema_id=0)
    assert seed(field(1, "a"), before=(before,), last=5) == FieldIdsSeed({"a": 1}, 6, (TABLE,))
    assert seed(field(1, "a"), last=8).next == 9


def test_columns_of_paths_are_left_out() -> None:
    found = seed(field(1, "a"), field(1_000_000, "hour"), field(1_000_001, "s", StructType(field(1_000_002, "x"))))
    assert found == FieldIdsSeed({"a": 1}, 2, (TABLE,))
    assert seed(field(1_000_000, "hour"), before=(Schema(field(6, "b"), schema_id=0),)).next == 7


@pytest.mark.parametrize(
    ("fields", "given", "reason"),
    [
        ([field(1, "a"), field(0, "b")], {}, "column b has the field id 0"),
        ([field(1, "a"), field(-3, "b")], {}, "column b has the field id -3"),
        ([field(1, "a"), field(500_000, "b")], {"last": 499_999}, "its next field id is 500,000"),
        (
            [field(1, "a" * (1 << 20), StructType(*(field(2 + n, f"b{n}") for n in range(8))))],
            {},
            "the paths of its columns have more than",
        ),
    ],
    ids=["zero", "negative", "no free id", "long paths"],
)
def test_ids_that_the_ledger_cannot_have_are_rejected(
    fields: list[NestedField], given: dict[str, Any], reason: str
) -> None:
    """They would make the file of the topic's ids unreadable, and nothing replaces it."""
    with pytest.raises(TableIncompatible, match=f"the table lake.log cannot .*{reason}"):
        seed(*fields, **given)


def test_new_fields_have_ids_below_those_of_columns_that_only_avro_objects_have() -> None:
    assert seed(field(3, "a"), field(500_000, "b")) == FieldIdsSeed({"a": 3, "b": 500_000}, 4, (TABLE,))


def test_a_table_without_columns_gives_its_name_alone() -> None:
    assert seed() == FieldIdsSeed({}, 2, (TABLE,))


def several(*fields: list[NestedField], before: tuple[Schema, ...] = ()) -> FieldIdsSeed:
    """The ids of the tables t0, t1, …; the first one had the columns `before`."""
    given = [metadata(*each, before=() if number else before) for number, each in enumerate(fields)]
    return seed_of([table_ids(f"t{number}", each) for number, each in enumerate(given)])


def test_tables_that_agree_give_their_ids_together() -> None:
    found = several([field(1, "a")], [field(1, "a"), field(4, "b")])
    assert (found.ids, found.next, [each.name for each in found.tables]) == ({"a": 1, "b": 4}, 5, ["t0", "t1"])


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ([field(1, "a")], [field(2, "a")], "t0 and t1 have different field ids: column a has the ids 1 and 2"),
        ([field(1, "a")], [field(1, "b")], "t0 and t1 have different field ids: the id 1 is that of a and of b"),
        ([field(1, "a")], [field(3, "c")], "t1 and t0 .*: the second has dropped a column with the id 3 of c"),
    ],
)
def test_tables_with_different_ids_are_rejected(one: list[NestedField], other: list[NestedField], reason: str) -> None:
    before = (Schema(field(1, "a"), field(3, "old"), schema_id=0),)
    with pytest.raises(TableIncompatible, match=reason):
        several(one, other, before=before)
