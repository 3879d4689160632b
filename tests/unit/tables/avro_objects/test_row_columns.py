"""The columns of a table with those of the objects of a commit, in a sink with both formats."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.types import LongType, NestedField, StringType

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import TableIncompatible
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.tables.avro_objects.name_mapping import PROPERTY
from sink_job.tables.avro_objects.row_columns import RowColumns
from sink_job.tables.field_ids.table_ids import seed_of, table_ids
from tests.support.table_sink import TableSink
from tests.unit.tables.avro_objects.avro_tables import avro, fields, ids_of, metadata, parquet_of

COLUMNS = {"partition": 1, "offset": 2, "kind": 3, "seats": 4}


def test_objects_with_the_same_columns_share_them_with_the_ids_of_the_table() -> None:
    one, other = avro("a"), avro("b")
    rows = RowColumns(metadata(fields(x=1)), (), {}, is_own=True)
    for each in (one, one, other):
        rows.add(each)
    first, second, third = (each.columns for each in rows.resolved([one, one, other]))
    assert first is second
    assert [ids_of(each.schema) for each in (first, third)] == [{"a": 2}, {"b": 3}]


def test_equal_ids_of_a_table_that_others_have_made_need_equal_names() -> None:
    with pytest.raises(TableIncompatible, match="the table has the name x for its field id 1"):
        RowColumns(metadata(fields(x=1))).add(parquet_of(fields(a=1)))


@pytest.mark.parametrize("drops", [False, True], ids=["added", "added and dropped"])
def test_a_new_field_with_the_id_of_a_column_of_another_program_is_rejected(table_sink: TableSink, drops: bool) -> None:
    """Both have the next id. Otherwise the values would be in the column of the other program, or in none."""
    table_sink.write(10)
    table_sink.register()
    with table_sink.table().update_schema() as update:
        update.add_column("note", LongType())
    if drops:
        with table_sink.table().update_schema() as update:
            update.delete_column("note")
    table_sink.write(20, ids=(2,))
    with pytest.raises(TableIncompatible, match=r"column seats does not fit the table: .*\bnote\b"):
        table_sink.register()
    assert len(table_sink.files()) == 1


def test_columns_that_were_renamed_or_dropped_get_their_objects(table_sink: TableSink) -> None:
    table_sink.write(10)
    table_sink.register()
    with table_sink.table().update_schema() as update:
        update.rename_column("kind", "sort")
        update.delete_column("offset")
    table_sink.write(20, ids=(2,))
    table_sink.register()
    assert ids_of(table_sink.table().schema()) == {"partition": 1, "sort": 3, "seats": 4}
    assert table_sink.files() == [*table_sink.objects()]


def test_a_name_of_the_mapping_is_one_of_the_column() -> None:
    rows = RowColumns(metadata(fields(b=1), mapping='[{"field-id":1,"names":["a"]}]'), is_own=True)
    rows.add(parquet_of(fields(a=1)))
    assert ids_of(rows.schema) == {"b": 1}


def test_an_object_that_does_not_fit_changes_nothing() -> None:
    """Its other names are neither in the mapping, nor do they use ids."""
    text = NestedField(2, "x", StringType(), required=False)
    rows = RowColumns(metadata(fields(x=1)), (), {}, is_own=True)
    with pytest.raises(TableIncompatible, match="column x does not fit the table"):
        rows.add(avro(NestedField(1, "a", LongType(), required=False), text))
    assert (rows.by_name, rows.properties, rows.schema.field_ids) == (False, {}, {1})
    rows.add(avro("b"))
    assert ids_of(rows.schema) == {"x": 1, "b": 2}


def test_a_mapping_that_cannot_be_read_is_rejected() -> None:
    with pytest.raises(TableIncompatible, match=r"schema\.name-mapping\.default of the table cannot be read"):
        RowColumns(metadata(fields(x=1), mapping="{"))


def test_a_sink_of_avro_objects_has_a_table_with_a_mapping(table_sink: TableSink) -> None:
    table_sink.write_as(OutputFormat.AVRO, 20, 1)
    assert table_sink.register().columns == ("partition", "offset", "kind")
    table_sink.write_as(OutputFormat.AVRO, 40, 2)
    assert table_sink.register().columns == ("seats",)
    assert ids_of(table_sink.table().schema()) == COLUMNS
    assert table_sink.files() == table_sink.objects()


def test_parquet_objects_before_have_the_same_columns(table_sink: TableSink) -> None:
    table_sink.write_as(OutputFormat.PARQUET, 20, 1)
    table_sink.register()
    assert PROPERTY not in table_sink.table().properties
    table_sink.write_as(OutputFormat.AVRO, 40, 2)
    assert table_sink.register().columns == ("seats",)
    table_sink.write_as(OutputFormat.PARQUET, 60, 1)
    table_sink.register()
    assert ids_of(table_sink.table().schema()) == {**COLUMNS, "seats": 500_000}
    assert table_sink.files() == table_sink.objects()


def test_a_new_table_has_the_ids_of_later_parquet_objects(table_sink: TableSink) -> None:
    table_sink.write_as(OutputFormat.AVRO, 20, 2)
    table_sink.write_as(OutputFormat.PARQUET, 40, 1)
    table_sink.register()
    assert ids_of(table_sink.table().schema()) == {**COLUMNS, "seats": 500_000}


def test_later_parquet_objects_take_the_ids_of_the_table(table_sink: TableSink) -> None:
    """A driver with another output does it before the first Parquet object of the topic."""
    table_sink.write_as(OutputFormat.AVRO, 20, 2)
    table_sink.register()
    s3: Any = table_sink.s3
    seed = seed_of([table_ids("lake.log", table_sink.table().metadata)])
    assert LedgerFieldIds(s3, table_sink.root).seed("log", seed)
    table_sink.write_as(OutputFormat.PARQUET, 40, 9)
    table_sink.write_as(OutputFormat.AVRO, 60, 9, 2)
    table_sink.register()
    assert ids_of(table_sink.table().schema()) == {**COLUMNS, "gate": 5}
    assert table_sink.files() == table_sink.objects()


def test_other_ids_of_later_parquet_objects_are_rejected(table_sink: TableSink) -> None:
    """The table has the fourth column by the name `seats`."""
    table_sink.write_as(OutputFormat.AVRO, 20, 2)
    table_sink.register()
    table_sink.write_as(OutputFormat.PARQUET, 40, 9)
    with pytest.raises(TableIncompatible, match=r"column gate .* has the field id 4, and the table has this id for"):
        table_sink.register()
