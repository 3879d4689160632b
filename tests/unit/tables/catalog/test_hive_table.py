"""Tables of Iceberg as the metastore has them."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import (
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from sink_job.api.errors import TableIncompatible
from sink_job.tables.catalog.hive_table import MAX_PARAMETER, changed_table, location_in, new_table

AT = "s3://lake/log/metadata/00000-a.metadata.json"
NEXT = "s3://lake/log/metadata/00001-b.metadata.json"


def metadata_of(*types: IcebergType, **properties: str) -> TableMetadata:
    fields = [NestedField(at, f"f{at}", each, required=False, doc="d" * 300) for at, each in enumerate(types, 1)]
    given = {name.replace("__", "."): value for name, value in properties.items()}
    return new_table_metadata(
        location="s3://lake/log",
        schema=Schema(*fields),
        partition_spec=UNPARTITIONED_PARTITION_SPEC,
        sort_order=UNSORTED_SORT_ORDER,
        properties=given,
    )


def created(metadata: TableMetadata) -> Any:
    return new_table("lake", "log", metadata, AT)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (IntegerType(), "int"),
        (LongType(), "bigint"),
        (DecimalType(10, 2), "decimal(10,2)"),
        (TimestampType(), "timestamp"),
        (TimestamptzType(), "timestamp"),
        (TimestampNanoType(), "timestamp"),
        (TimeType(), "string"),
        (UUIDType(), "string"),
        (FixedType(4), "binary"),
        (ListType(9, IntegerType(), element_required=False), "array<int>"),
        (MapType(9, StringType(), 10, UUIDType(), value_required=False), "map<string,string>"),
        (StructType(NestedField(9, "a ü$", TimestamptzType(), required=False)), "struct<a ü$:timestamp>"),
        (StructType(NestedField(9, "a-b", LongType(), required=False)), "string"),
        (ListType(9, StructType(NestedField(8, "a,b:int>", LongType())), element_required=False), "string"),
        (StructType(*(NestedField(9 + n, f"f{n:018}", LongType()) for n in range(2_000))), "string"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_columns_have_the_types_that_each_version_of_hive_can_read(given: IcebergType, expected: str) -> None:
    (column,) = created(metadata_of(given, **{"format-version": "3"})).sd.cols
    assert (column.name, column.type) == ("f1", expected)
    assert len(column.comment) == 256


def test_columns_that_are_equal_for_hive_or_that_it_cannot_store_are_left_out() -> None:
    names = ("a", "A", "b", "x" * 768)
    schema = Schema(*(NestedField(at, name, LongType()) for at, name in enumerate(names, 1)))
    metadata = metadata_of(IntegerType()).model_copy(update={"schemas": [schema], "current_schema_id": 0})
    assert [each.name for each in created(metadata).sd.cols] == ["a", "b"]


def test_a_new_table_is_external_and_names_its_metadata() -> None:
    table = created(metadata_of(IntegerType(), gc__enabled="false", own="a"))
    expected = {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": AT,
        "external.table.purge": "false",
        "own": "a",
        "snapshot-count": "0",
    }
    assert expected.items() <= table.parameters.items()
    assert (table.tableType, table.sd.location) == ("EXTERNAL_TABLE", "s3://lake/log")


@pytest.mark.parametrize(
    "name",
    ["EXTERNAL", "table_type", "metadata_location", "previous_metadata_location", "storage_handler", "transactional"],
)
def test_properties_of_a_table_do_not_choose_parameters_of_the_metastore(name: str) -> None:
    hostile = metadata_of(IntegerType(), **{name: "hostile"})
    assert "hostile" not in created(hostile).parameters.values()
    changed = changed_table(created(metadata_of(IntegerType())), hostile, hostile, NEXT)
    assert "hostile" not in changed.parameters.values()


def test_what_the_database_of_the_metastore_cannot_have_is_left_out() -> None:
    long = metadata_of(IntegerType(), **{"long": "x" * (MAX_PARAMETER + 1), "n" * 257: "a", "zero": "a\0b"})
    found = created(long).parameters
    assert not {"long", "n" * 257, "zero"} & found.keys()
    wide = created(metadata_of(*([IntegerType()] * 2_000))).parameters
    assert "current-schema" not in wide


def test_a_change_keeps_what_others_have_set_and_removes_what_the_table_has_lost() -> None:
    before = metadata_of(IntegerType(), lost="a", kept="b", gc__enabled="false")
    after = metadata_of(IntegerType(), LongType(), kept="c")
    found = created(before)
    found.parameters |= {"of.others": "x", "storage_handler": "Handler", "lost": "a"}
    found.sd.inputFormat = "OtherFormat"
    changed = changed_table(found, before, after, NEXT)
    expected = {
        "of.others": "x",
        "storage_handler": "Handler",
        "kept": "c",
        "metadata_location": NEXT,
        "previous_metadata_location": AT,
    }
    assert expected.items() <= changed.parameters.items()
    assert not {"lost", "external.table.purge"} & changed.parameters.keys()
    assert [each.type for each in changed.sd.cols] == ["int", "bigint"]
    assert changed.sd.inputFormat == "OtherFormat"
    assert found.parameters["metadata_location"] == AT


@pytest.mark.parametrize(
    "parameters",
    [None, {}, {"table_type": "ICEBERG"}, {"metadata_location": AT}, {"table_type": "HUDI", "metadata_location": AT}],
)
def test_a_table_of_another_kind_is_incompatible(parameters: dict[str, str] | None) -> None:
    with pytest.raises(TableIncompatible, match=r"lake\.log is no table of Iceberg"):
        location_in(HiveTable(tableName="log", dbName="lake", parameters=parameters))
    given = {"table_type": "iceberg", "metadata_location": AT}
    assert location_in(HiveTable(tableName="log", dbName="lake", parameters=given)) == AT
