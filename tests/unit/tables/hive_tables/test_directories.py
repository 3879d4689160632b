"""Partitions of the directories of objects."""

from __future__ import annotations

import pytest

from sink_job.api.errors import TableIncompatible
from sink_job.ledger.state import ClosedObject
from sink_job.tables.hive_tables.directories import partitions_of
from sink_job.tables.hive_tables.store import PartitionedTable, TablePartition
from tests.unit.tables.parquet_objects import listed

TABLE = PartitionedTable("lake.log", "1", "s3a://archive/topics/log", ("day", "Hour"))


def objects(*directories: str) -> list[ClosedObject]:
    return [listed(f"topics/log/{each}{number}.json", b"x", 1) for number, each in enumerate(directories)]


def test_each_directory_is_one_partition_with_the_texts_of_its_path() -> None:
    found = partitions_of(TABLE, objects("day=1/hour=a=b/", "day=1/hour=a=b/", "day=0/HOUR=%20 ü/"), "archive")
    assert found == [
        TablePartition(("0", "%20 ü"), "s3a://archive/topics/log/day=0/HOUR=%20 ü/"),
        TablePartition(("1", "a=b"), "s3a://archive/topics/log/day=1/hour=a=b/"),
    ]


@pytest.mark.parametrize(
    "directory", ["", "day=1/", "hour=1/day=1/", "day=1/1/", "day=1/hour=1/minute=1/", "a/day=1/hour=1/"]
)
def test_an_object_in_another_directory_is_named(directory: str) -> None:
    with pytest.raises(
        TableIncompatible, match="has the partition columns day, Hour, and the object s3://archive/topics"
    ):
        partitions_of(TABLE, objects(directory), "archive")


def test_an_object_outside_of_the_table_is_named() -> None:
    for key, bucket in (("topics/log2/day=1/hour=1/a", "archive"), ("topics/log/day=1/hour=1/a", "other")):
        with pytest.raises(TableIncompatible, match=f"the object s3://{bucket}/{key} is not"):
            partitions_of(TABLE, [listed(key, b"x", 1)], bucket)


def test_a_table_without_partition_columns_needs_no_registration() -> None:
    table = PartitionedTable("lake.log", "1", "s3://archive/topics/log/", ())
    with pytest.raises(TableIncompatible, match="needs no registration"):
        partitions_of(table, (), "archive")
