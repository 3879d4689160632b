"""The columns of a table with those of the objects of a commit, in a sink with both formats."""

from __future__ import annotations

import pytest

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import TableIncompatible
from sink_job.tables.avro_objects.name_mapping import PROPERTY
from sink_job.tables.avro_objects.row_columns import row_columns
from sink_job.tables.partitions.object_partitions import FIRST_PATH_COLUMN
from tests.support.table_sink import TableSink
from tests.unit.tables.avro_objects.avro_tables import avro, fields, ids_of, metadata, parquet_of

COLUMNS = {"partition": 1, "offset": 2, "kind": 3, "seats": 4}
PATHS = {"partition": FIRST_PATH_COLUMN}


def test_ids_of_the_ledger_are_read_for_avro_objects_alone() -> None:
    reads: list[str] = []

    def ids() -> dict[str, int]:
        reads.append("ids")
        return {}

    row_columns(None, [parquet_of(fields(a=1))], (), ids, is_own=False)
    assert reads == []
    row_columns(None, [avro("a")], (), ids, is_own=False)
    assert reads == ["ids"]


def test_objects_with_the_same_columns_share_them_with_the_ids_of_the_table() -> None:
    one = avro("a")
    found = row_columns(metadata(fields(x=1)), [one, one, avro("b")], (), dict, is_own=True)
    first, second, third = (each.columns for each in found.footers)
    assert first is second
    assert [ids_of(each.schema) for each in (first, third)] == [{"a": 2}, {"b": 3}]


def test_equal_ids_of_a_table_that_others_have_made_need_equal_names() -> None:
    with pytest.raises(TableIncompatible, match="the table has the name x for its field id 1"):
        row_columns(metadata(fields(x=1)), [parquet_of(fields(a=1))], (), dict, is_own=False)


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


def test_other_ids_of_later_parquet_objects_are_rejected(table_sink: TableSink) -> None:
    """The table has the fourth column by the name `seats`."""
    table_sink.write_as(OutputFormat.AVRO, 20, 2)
    table_sink.register()
    table_sink.write_as(OutputFormat.PARQUET, 40, 9)
    with pytest.raises(TableIncompatible, match=r"column gate .* has the field id 4, and the table has this id for"):
        table_sink.register()
