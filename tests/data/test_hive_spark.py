"""Tables in Hive's metastore that Spark reads and changes with Iceberg's own catalog, between registrations."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

from devtools.iceberg_spark import IcebergSpark, iceberg_spark
from devtools.loopback_metastore.server import metastore
from devtools.s3 import S3Server
from tests.support.hive_lake import HiveTable, records
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of the metastore, for all tests of this file."""
    with metastore(tmp_path_factory.mktemp("hive")) as uri:
        yield uri


@pytest.fixture(scope="module")
def spark(hive: str, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSpark]:
    """Spark, for all tests of this file."""
    with iceberg_spark(tmp_path_factory.mktemp("spark"), s3.endpoint, hive=hive) as process:
        yield process


@pytest.fixture
def table(sink_fixture: SinkFixture, hive: str) -> HiveTable:
    return HiveTable(sink_fixture, hive, hive)


def test_spark_reads_each_record_once_and_its_commits_are_kept(table: HiveTable, spark: IcebergSpark) -> None:
    query = f"select offset, kind, seats from hive.{table.name} order by 1"
    table.register()
    assert spark.rows(query) == records(25)
    spark.rows(f"alter table hive.{table.name} set tblproperties ('by' = 'spark')")
    table.write(45)
    table.register()
    spark.rows(f"call hive.system.rewrite_data_files(table => '{table.name}', options => map('rewrite-all', 'true'))")
    assert spark.rows(query) == records(45)
    table.write(65)
    table.register()
    assert spark.rows(query) == records(65)
    assert table.rows() == records(65)
    assert table.lake.verify(table.name).findings == []
    assert table.parameters()["by"] == "spark"


def test_commits_of_spark_at_the_same_time_are_kept(table: HiveTable, spark: IcebergSpark) -> None:
    table.register()
    thread = Thread(
        target=spark.run,
        args=(
            f"""
for number in range(10):
    spark.sql(f"alter table hive.{table.name} set tblproperties ('by.spark.{{number}}' = 'x')")
""",
        ),
    )
    thread.start()
    for count in range(35, 86, 10):
        table.write(count)
        table.register_until_done()
    thread.join()
    assert table.rows() == records(85)
    parameters = table.parameters()
    assert [f"by.spark.{number}" in parameters for number in range(10)] == [True] * 10
