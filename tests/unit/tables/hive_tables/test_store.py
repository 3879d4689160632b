"""Locations of tables and partitions."""

from __future__ import annotations

import pytest

from sink_job.api.errors import TableIncompatible
from sink_job.tables.hive_tables.store import PartitionedTable, TablePartition, check_location, split_location

TABLE = PartitionedTable("lake.log", "1", "s3://archive/topics/log/", ("day", "hour"))
PARTITION = TablePartition(("01", "02"), "s3://archive/topics/log/day=01/hour=02/")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://archive/topics/log/", ("archive", "topics/log/")),
        ("s3a://archive/topics/log", ("archive", "topics/log/")),
        ("s3://archive/a?b#c/d", ("archive", "a?b#c/d/")),
        ("s3://archive", ("archive", "")),
        ("hdfs://archive/topics", ("hdfs:archive", "topics/")),
        ("file:/archive/topics", ("file:", "archive/topics/")),
        ("file:///archive/topics/", ("file:", "archive/topics/")),
        ("", (":", "")),
    ],
)
def test_a_location_is_a_bucket_and_a_prefix(location: str, expected: tuple[str, str]) -> None:
    assert split_location(location) == expected


def test_an_existing_partition_has_the_location_of_the_objects() -> None:
    check_location(TABLE, PARTITION, "s3a://archive/topics/log/day=01/hour=02")
    with pytest.raises(TableIncompatible, match="the partition day=01/hour=02 exists with the location s3://other/x"):
        check_location(TABLE, PARTITION, "s3://other/x")
