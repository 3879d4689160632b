"""The three outcomes of a commit, and catalogs that do not answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalogBaseTable
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchTableError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
)

from sink_job.api.enums import CatalogType
from sink_job.api.errors import AccessDenied, ConfigurationError, TransientError
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.tables.catalog.access import CommitNotSent
from sink_job.tables.catalogs import CommitRejected, CommitUnknown, IcebergCatalog, open_catalog
from sink_job.tables.file_io import SinkFileIO
from sink_job.tables.plan import Request
from tests.support.catalog_front import catalog_front
from tests.support.memory_s3 import MemoryS3
from tests.support.table_sink import TableSink


class _Failing:
    """A catalog of PyIceberg that fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*args: object, **given: object) -> None:
            raise self._error

        return fail


def failing(error: Exception) -> IcebergCatalog:
    catalog: Any = _Failing(error)
    return IcebergCatalog(catalog, "Rest at https://catalog")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (CommitFailedException("409"), CommitRejected),
        (TableAlreadyExistsError("409"), CommitRejected),
        (NoSuchTableError("404"), CommitRejected),
        (CommitStateUnknownException("500"), CommitUnknown),
        (ServiceUnavailableError("503"), CommitUnknown),
        (ConnectionError("reset"), CommitUnknown),
        (ForbiddenError("403"), AccessDenied),
        (CommitNotSent("locked"), CommitNotSent),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
def test_a_commit_that_may_have_been_applied_is_never_a_rejected_one(
    error: Exception, outcome: type[Exception]
) -> None:
    table: Any = None
    with pytest.raises(outcome):
        failing(error).commit(table, (), ())


def test_a_catalog_that_does_not_answer_is_a_transient_error_with_its_address() -> None:
    with pytest.raises(TransientError, match="the catalog Rest at https://catalog has not answered"):
        failing(ConnectionError("reset")).load("a.b")
    with pytest.raises(TransientError, match="the catalog Rest at https://catalog has not answered"):
        failing(OSError("x")).stage("a.b", {})
    with pytest.raises(AccessDenied):
        failing(ForbiddenError("403")).load("a.b")


def test_a_table_that_does_not_exist_is_none(table_sink: TableSink) -> None:
    assert table_sink.catalog.load("lake.none") is None


def test_a_staged_table_is_in_the_warehouse_and_does_not_exist(table_sink: TableSink) -> None:
    staged = table_sink.catalog.stage("lake.new", {"a": "b"})
    assert (staged.location(), staged.properties["a"]) == ("s3://lake/tables/lake/new", "b")
    assert table_sink.catalog.load("lake.new") is None


def open_at(kind: CatalogType, uri: str) -> None:
    client: Any = MemoryS3()
    open_catalog(CatalogSpec(type=kind, uri=uri, warehouse="s3://lake/w"), lambda bucket: client)


def test_a_catalog_that_does_not_answer_cannot_be_opened_now() -> None:
    with pytest.raises(TransientError, match="cannot be opened"):
        open_at(CatalogType.REST, "http://127.0.0.1:9")


def test_a_database_in_a_folder_that_does_not_exist_is_a_configuration_error() -> None:
    with pytest.raises(
        ConfigurationError, match=r"the folder /no/such/folder does not exist: .*spec\.tables\.catalog\.uri"
    ):
        open_at(CatalogType.SQL, "sqlite:////no/such/folder/c.db")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, ConfigurationError),
        (400, ConfigurationError),
        (404, ConfigurationError),
        (429, TransientError),
        (503, TransientError),
    ],
)
def test_another_service_at_the_address_is_a_configuration_error_without_its_whole_answer(
    status: int, kind: type[Exception]
) -> None:
    with catalog_front() as front:
        front.fixed = status, b"<Error>" * 1000
        with pytest.raises(kind, match="cannot be opened") as caught:
            open_at(CatalogType.REST, front.url)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ["py-io-impl", "s3sink.connection"])
def test_properties_of_a_table_do_not_choose_how_its_files_are_read(table_sink: TableSink, name: str) -> None:
    table_sink.write(10)
    table_sink.register()
    with table_sink.table().transaction() as change:
        change.set_properties({name: "subprocess.Popen"})
    assert isinstance(table_sink.table().io, SinkFileIO)
    table_sink.write(20)
    table_sink.register(Request())
    assert len(table_sink.files()) == 2


def test_a_database_that_two_processes_open_first_is_opened_by_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, others = SqlCatalogBaseTable.metadata.create_all, 0

    def raced(engine: Any) -> None:
        nonlocal others
        others += 1
        create(engine)
        if others == 1:
            raise RuntimeError("table iceberg_tables already exists")

    monkeypatch.setattr(SqlCatalogBaseTable.metadata, "create_all", raced)
    client: Any = MemoryS3()
    spec = CatalogSpec(type=CatalogType.SQL, uri=f"sqlite:///{tmp_path}/c.db", warehouse="s3://lake/w")
    assert open_catalog(spec, lambda bucket: client).load("lake.none") is None
