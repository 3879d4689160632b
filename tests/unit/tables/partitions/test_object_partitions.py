"""The partition of each object: never a value that is not that of all its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField, TimestamptzType

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableIncompatible, TableNotRegistered
from sink_job.tables.files import FooterReader, ObjectFooter
from sink_job.tables.partitions.object_partitions import FIRST_PATH_COLUMN, Partitioner, path_columns, row_column
from sink_job.tables.partitions.object_paths import PathLayout, TimeColumn
from tests.support.memory_s3 import MemoryS3
from tests.unit.tables.avro_objects.avro_tables import avro
from tests.unit.tables.parquet_objects import column, listed, parquet

LAYOUT = PathLayout()
DAILY = PathLayout(time=TimeColumn("at", is_hourly=False))
HOURLY = PathLayout(time=TimeColumn("at", is_hourly=True))
K = column(1, "k", pa.string())
AT = column(2, "at", pa.timestamp("us", "UTC"))
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def read(partitioner: Partitioner, path: str, values: Mapping[str, list[Any]], *fields: pa.Field) -> ObjectFooter:
    """The footer of an object with this path and these columns."""
    content = parquet(list(fields), dict(values), row_group=2)
    s3: Any = MemoryS3()
    s3.put("a.parquet", content)
    o = replace(listed("a.parquet", content, len(next(iter(values.values())))), path=path)
    return FooterReader(s3, {}, partitioner.columns).read(o)


def table_of(schema: Schema, *earlier: Schema) -> TableMetadata:
    metadata = new_table_metadata(schema, PartitionSpec(), UNSORTED_SORT_ORDER, "s3://lake/t", {})
    return metadata.model_copy(
        update={
            "schemas": [*earlier, schema.model_copy(update={"schema_id": len(earlier)})],
            "current_schema_id": len(earlier),
            "last_column_id": max(each.highest_field_id for each in (*earlier, schema)),
        }
    )


def partition(
    path: str,
    values: Mapping[str, list[Any]],
    *fields: pa.Field,
    partitioning: TablePartitioning = TablePartitioning.PATH,
    layout: PathLayout = LAYOUT,
    table: TableMetadata | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of an object's partition by the names of the columns, and the names without a field."""
    partitioner = Partitioner(partitioning, {1: layout})
    footer = read(partitioner, path, values, *fields)
    own = footer.columns.schema
    known = own.fields if table is None else (*own.fields, *(f for f in table.schema().fields if f not in own.fields))
    schema, paths = partitioner.with_path_columns(table, Schema(*known), [footer])
    found = partitioner.partition(footer, schema, paths)
    return {each.name: each.value for each in found.values}, dict(found.without or {})


TEXTS = st.none() | st.sampled_from(["", "null", "a/b", "a%2Fb", "..", "x" * 40, "ü"])


@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(["k=a%2Fb", "k=null", "k=", "k=%2E%2E"]))
def test_a_value_is_that_of_all_rows_whatever_the_path_says(values: list[str | None], path: str) -> None:
    found, without = partition(path, {"k": values}, K)
    assert found == ({"k": values[0]} if len(set(values)) == 1 else {})
    assert ("k" in without) == (len(set(values)) > 1)


def test_a_column_that_only_paths_have_has_the_text_of_the_path() -> None:
    found = partition("dt=2026-11-28/region=a%2Fb/k=null/2026/zone=null", {"k": [None]}, K)
    assert found == ({"dt": "2026-11-28", "region": "a%2Fb", "k": None, "zone": "null"}, {})


def test_a_path_without_names_has_no_partition() -> None:
    assert partition("2026/05/12", {"k": ["x"]}, K) == ({}, {})


@pytest.mark.parametrize(
    ("fields", "values", "reason"),
    [
        ([column(1, "year", pa.int32())], {"year": [1, 2]}, "the rows have several values"),
        ([column(1, "Year", pa.int32())], {"Year": [1]}, "the table has a column of this name, and the rows of the"),
        ([column(1, "year", pa.float64())], {"year": [1.0]}, "the footer has no bounds of the column"),
    ],
    ids=["several", "another case", "another type"],
)
def test_a_name_of_a_column_without_a_proven_value_has_no_field(
    fields: list[pa.Field], values: Mapping[str, list[Any]], reason: str
) -> None:
    found, without = partition("year=2026", values, *fields)
    assert found == {}
    assert without["year"].startswith(reason)


def test_an_avro_object_proves_no_value_of_a_column() -> None:
    """It has no bounds. Names that are no columns of its rows are columns of paths."""
    footer = avro("k", NestedField(2, "at", TimestamptzType(), required=False))
    footer = dataclasses.replace(footer, object=replace(footer.object, path="k=x/dt=2026-11-28"))
    by_path = Partitioner(TablePartitioning.PATH, {1: LAYOUT})
    found = by_path.partition(footer, *by_path.with_path_columns(None, footer.columns.schema, [footer]))
    assert [(each.name, each.value) for each in found.values] == [("dt", "2026-11-28")]
    assert found.without == {"k": "an Avro object has no bounds of columns"}
    hidden_times = Partitioner(TablePartitioning.HIDDEN, {1: DAILY})
    with pytest.raises(TableIncompatible, match=r"one day of column at .* an Avro object has no bounds of columns"):
        hidden_times.partition(footer, footer.columns.schema, {})


def test_a_column_in_a_struct_is_found_and_has_a_field_if_it_has_values() -> None:
    kind = column(1, "a", pa.struct([column(2, "b", pa.string())]))
    assert partition("a.b=x", {"a": [{"b": "x"}]}, kind)[0] == {"a.b": "x"}
    found, without = partition("a.b=null", {"a": [None]}, kind)
    assert (found, list(without)) == ({}, ["a.b"])


def test_an_object_whose_rows_lack_the_column_of_others_has_no_field() -> None:
    other = Schema(NestedField(7, "year", LongType(), required=False))
    found, without = partition("year=2026", {"k": ["x"]}, K, table=table_of(other))
    assert (found, list(without)) == ({}, ["year"])


# -- columns of paths ----------------------------------------------------------------------------------------------


def columns_of(table: TableMetadata | None, *paths: str) -> list[tuple[int, str]]:
    partitioner = Partitioner(TablePartitioning.PATH, {1: LAYOUT})
    footers = [read(partitioner, path, {"k": ["x"]}, K) for path in paths]
    schema = footers[0].columns.schema if table is None else table.schema()
    found, _ = partitioner.with_path_columns(table, schema, footers)
    return [(each.field_id, each.name) for each in found.fields]


def test_columns_of_paths_have_ids_that_no_field_of_a_ledger_has() -> None:
    assert columns_of(None, "a=1/b=2", "b=3/c=4") == [
        (1, "k"),
        (FIRST_PATH_COLUMN, "a"),
        (FIRST_PATH_COLUMN + 1, "b"),
        (FIRST_PATH_COLUMN + 2, "c"),
    ]


def path_schema(*names: str, first: int = FIRST_PATH_COLUMN) -> Schema:
    return Schema(*(NestedField(first + n, name, LongType(), required=False) for n, name in enumerate(names)))


def test_a_column_of_paths_is_known_by_the_name_that_it_got_first() -> None:
    table = table_of(path_schema("renamed"), path_schema("a", "dropped"))
    assert path_columns(table) == {
        "a": FIRST_PATH_COLUMN,
        "dropped": FIRST_PATH_COLUMN + 1,
        "renamed": FIRST_PATH_COLUMN,
    }
    assert columns_of(table, "a=1/dropped=2/new=3") == [(FIRST_PATH_COLUMN, "renamed"), (FIRST_PATH_COLUMN + 2, "new")]


def test_a_column_of_another_program_with_another_type_is_an_error() -> None:
    with pytest.raises(TableIncompatible, match="column a has the type long, and the paths of objects have texts"):
        partition("a=1", {"k": ["x"]}, K, table=table_of(path_schema("a")))


def test_the_settings_of_each_object_read_its_path() -> None:
    partitioner = Partitioner(TablePartitioning.PATH, {1: PathLayout("--"), 2: PathLayout()})
    o = replace(listed("a.parquet", b"", 1), path="a=1/2--b=3")
    assert partitioner.path_texts(o) == {"a": "1/2", "b": "3"}
    assert partitioner.path_texts(replace(o, settings=2)) == {"a": "1", "2--b": "3"}
    with pytest.raises(TableNotRegistered, match=r"record 3 of the ledger, a claim with the settings of a\.parquet"):
        partitioner.path_texts(replace(o, settings=3))


def test_a_top_level_column_with_dots_in_its_name_is_found_first() -> None:
    fields = Schema(NestedField(3, "a.b", LongType(), required=False)).fields
    found = row_column(fields, "a.b")
    assert found is not None
    assert (found.field.field_id, found.is_nested) == (3, False)


# -- hidden partitions ---------------------------------------------------------------------------------------------


def hidden(layout: PathLayout, times: Sequence[datetime | None], *, path: str = "year=2026") -> dict[str, Any]:
    values = {"at": list(times)}
    return partition(path, values, AT, partitioning=TablePartitioning.HIDDEN, layout=layout)[0]


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=3), st.booleans())
def test_an_object_has_the_hour_or_day_of_all_its_rows_or_none(micros: list[int], is_hourly: bool) -> None:
    unit = 3_600_000_000 if is_hourly else 86_400_000_000
    times = [datetime.fromtimestamp(0, UTC) + timedelta(microseconds=each) for each in micros]
    expected = {each // unit for each in micros}
    name, layout = ("at_hour", HOURLY) if is_hourly else ("at_day", DAILY)
    if len(expected) == 1:
        assert hidden(layout, times) == {name: expected.pop()}
    else:
        with pytest.raises(TableIncompatible, match="its rows have several, by the bounds in its footer"):
            hidden(layout, times)


def test_an_object_without_times_has_a_null_partition() -> None:
    assert hidden(DAILY, [None, None]) == {"at_day": None}


@pytest.mark.parametrize(
    ("layout", "times", "reason"),
    [
        (
            HOURLY,
            [NOON, NOON + timedelta(hours=1)],
            "needs one hour of column at (UTC) in an object: its rows have sev",
        ),
        (DAILY, [NOON, NOON + timedelta(hours=12)], "needs one day of column at (UTC) in an object: its rows have sev"),
        (DAILY, [NOON, None], "some rows have no value"),
        (LAYOUT, [NOON], "needs a path with a time that is a column of the rows"),
        (PathLayout(time=TimeColumn("other", is_hourly=True)), [NOON], "its rows have no such column"),
    ],
    ids=["hours", "days", "nulls", "no time", "no column"],
)
def test_an_object_without_one_hour_or_day_stops_with_the_reason(
    layout: PathLayout, times: list[datetime | None], reason: str
) -> None:
    with pytest.raises(TableIncompatible, match=r"^s3://archive/a\.parquet: partitioning Hidden") as caught:
        hidden(layout, times)
    assert reason in str(caught.value)


def test_an_object_without_the_column_of_others_has_a_null_partition() -> None:
    """Such as one of records without a value."""
    table = table_of(Schema(NestedField(7, "at", TimestamptzType(), required=False)))
    found = partition("x", {"k": ["x"]}, K, partitioning=TablePartitioning.HIDDEN, layout=DAILY, table=table)
    assert found == ({"at_day": None}, {})


def test_a_time_that_is_a_number_stops_with_its_type() -> None:
    layout = PathLayout(time=TimeColumn("n", is_hourly=True))
    fields, values = column(1, "n", pa.int64()), {"n": [1]}
    with pytest.raises(TableIncompatible, match="the column has the type long"):
        partition("x", values, fields, partitioning=TablePartitioning.HIDDEN, layout=layout)


def test_partitioning_none_needs_no_settings() -> None:
    partitioner = Partitioner(TablePartitioning.NONE, {})
    footer = read(partitioner, "k=x", {"k": ["x"]}, K)
    assert partitioner.partition(footer, footer.columns.schema, {}).values == ()
