"""The catalog of a metastore: places of tables, and outcomes of commits. tests/data/test_hive_catalog.py has a real
one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hive_metastore.ttypes import Database, InvalidOperationException, MetaException
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AssertCreate, SetPropertiesUpdate
from pyiceberg.types import LongType, NestedField
from thrift.transport.TTransport import TTransportException

from sink_job.api.errors import ConfigurationError
from sink_job.tables.catalog import hive_condition
from sink_job.tables.catalog.access import CommitNotSent
from sink_job.tables.catalog.hive import SinkHiveCatalog
from sink_job.tables.catalog.metastore import metastore_error
from sink_job.tables.catalogs import CommitRejected, CommitUnknown, IcebergCatalog, _with_own_files
from sink_job.tables.file_io import file_properties
from tests.support.memory_metastore import MemoryMetastore
from tests.support.memory_s3 import MemoryS3

CHANGE = (SetPropertiesUpdate(updates={"a": "b"}),)


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive_condition, "_checked", set())


class Lake:
    """A catalog in memory."""

    def __init__(self, warehouse: str | None = "s3://lake/tables") -> None:
        s3: Any = MemoryS3()
        properties = {**file_properties(lambda bucket: s3), "uri": "thrift://memory"}
        if warehouse is not None:
            properties["warehouse"] = warehouse
        self.metastore = MemoryMetastore()
        given: Any = self.metastore
        self.hive = _with_own_files(SinkHiveCatalog("default", given, properties), properties)
        self.catalog = IcebergCatalog(self.hive, "Hive at thrift://memory", metastore_error)

    def created(self) -> Table:
        self.create()
        found = self.catalog.load("lake.log")
        assert found is not None
        return found

    def create(self) -> None:
        staged = self.catalog.stage("lake.log", {})
        transaction = self.hive.create_table_transaction("lake.log", Schema(NestedField(1, "a", LongType())))
        self.catalog.commit(staged, (AssertCreate(),), transaction._updates)

    def fails(self, method: str, error: Exception) -> None:
        def fail(called: str) -> None:
            if called == method:
                raise error

        self.metastore.before = fail


@pytest.fixture
def lake() -> Lake:
    return Lake()


def test_a_commit_is_checked_against_the_metadata_that_was_loaded(lake: Lake) -> None:
    table = lake.created()
    lake.catalog.commit(table, (), CHANGE)
    with pytest.raises(CommitRejected, match="has changed since it was loaded"):
        lake.catalog.commit(table, (), CHANGE)
    assert lake.metastore.calls.count("alter_table") == 2 + 1  # of the view, and of the table
    assert lake.metastore.locks == {}


def test_a_change_after_the_check_is_rejected_by_the_metastore(lake: Lake) -> None:
    table = lake.created()

    def overtake(method: str) -> None:
        if method == "alter_table":
            lake.metastore.tables["log"].parameters["metadata_location"] = "s3://lake/other"

    lake.metastore.before = overtake
    with pytest.raises(CommitRejected, match="has been modified"):
        lake.catalog.commit(table, (), CHANGE)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (MetaException("The table has been modified."), CommitRejected),
        (InvalidOperationException("lake.log table not found"), CommitRejected),
        (MetaException("a listener has failed"), CommitUnknown),
        (TTransportException(message="read timeout"), CommitUnknown),
    ],
)
def test_a_commit_that_may_have_been_applied_is_unknown_and_its_lock_is_given_back(
    lake: Lake, error: Exception, outcome: type[Exception]
) -> None:
    table = lake.created()
    lake.fails("alter_table", error)
    with pytest.raises(outcome):
        lake.catalog.commit(table, (), CHANGE)
    assert lake.metastore.locks == {}


def test_a_change_of_columns_that_is_rejected_is_sent_once_more_without_it(lake: Lake) -> None:
    table = lake.created()
    lake.metastore.tables["log"].sd.cols = []
    errors: list[Exception] = [InvalidOperationException("types incompatible with the existing columns ... :\na")]

    def reject(method: str) -> None:
        if method == "alter_table" and errors:
            raise errors.pop()

    lake.metastore.before = reject
    lake.catalog.commit(table, (), CHANGE)
    found = lake.metastore.tables["log"]
    assert (found.parameters["a"], found.sd.cols) == ("b", [])
    errors += [InvalidOperationException("types incompatible with the existing columns")] * 2
    loaded = lake.catalog.load("lake.log")
    assert loaded is not None
    with pytest.raises(CommitRejected, match="incompatible with the existing columns"):
        lake.catalog.commit(loaded, (), CHANGE)


def test_a_table_that_another_has_created_is_rejected(lake: Lake) -> None:
    lake.created()
    with pytest.raises(CommitRejected, match="exists"):
        lake.create()


def test_nothing_is_sent_to_a_metastore_without_conditions(lake: Lake) -> None:
    table = lake.created()
    hive_condition._checked.clear()
    lake.metastore.conditions = False
    before = lake.metastore.tables["log"].parameters
    with pytest.raises(ConfigurationError, match="HIVE-26882"):
        lake.catalog.commit(table, (), CHANGE)
    assert lake.metastore.tables["log"].parameters == before


def test_a_lock_that_cannot_be_had_is_no_commit(lake: Lake) -> None:
    table = lake.created()
    lake.fails("lock", MetaException("no locks"))
    with pytest.raises(CommitNotSent):
        lake.catalog.commit(table, (), CHANGE)
    assert lake.metastore.calls.count("alter_table") == 2


def database(location: str | None) -> Callable[[Lake], None]:
    def make(lake: Lake) -> None:
        lake.metastore.databases["lake"] = Database("lake", locationUri=location)

    return make


@pytest.mark.parametrize(
    ("warehouse", "make", "expected"),
    [
        ("s3://w/t/", lambda lake: None, "s3://w/t/lake.db/log"),
        ("s3://w/t", database("s3a://other/lake/"), "s3a://other/lake/log"),
        ("s3://w/t", database("file:/user/hive/warehouse"), "s3://w/t/lake.db/log"),
        ("s3://w/t", database(None), "s3://w/t/lake.db/log"),
        (None, database("s3://other/lake"), "s3://other/lake/log"),
    ],
)
def test_a_new_table_is_in_the_folder_of_its_database_or_of_the_warehouse(
    warehouse: str | None, make: Callable[[Lake], None], expected: str
) -> None:
    lake = Lake(warehouse)
    make(lake)
    assert lake.catalog.stage("lake.log", {}).location() == expected


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://other/x.metadata.json", "s3://lake", "/tmp/x"])
def test_metadata_outside_of_buckets_is_not_read(lake: Lake, location: str) -> None:
    lake.created()
    lake.metastore.tables["log"].parameters["metadata_location"] = location
    with pytest.raises(ConfigurationError, match="is not in a bucket of S3"):
        lake.catalog.load("lake.log")


def test_a_table_is_changed_under_the_name_that_was_asked_for(lake: Lake) -> None:
    lake.created()
    found = lake.metastore.tables["log"]
    found.dbName, found.tableName = "other", "victim"
    loaded = lake.catalog.load("lake.log")
    assert loaded is not None
    assert loaded.name() == ("lake", "log")
    lake.catalog.commit(loaded, (), CHANGE)
    changed = lake.metastore.tables["log"]
    assert (changed.dbName, changed.tableName) == ("lake", "log")


def test_a_database_outside_of_buckets_needs_a_warehouse() -> None:
    lake = Lake(None)
    database("file:/user/hive/warehouse")(lake)
    with pytest.raises(ConfigurationError, match=r"set spec\.tables\.catalog\.warehouse"):
        lake.catalog.stage("lake.log", {})


def test_a_database_that_does_not_exist_has_no_properties(lake: Lake) -> None:
    with pytest.raises(NoSuchNamespaceError):
        lake.hive.load_namespace_properties("none")
    assert lake.catalog.load("lake.none") is None
