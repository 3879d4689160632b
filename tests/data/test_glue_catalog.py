"""Tables of Iceberg in moto's AWS Glue, with the check of versions that moto lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

from devtools.glue import ACCESS_KEY, REGION, SECRET_KEY, glue
from devtools.s3 import s3_client
from sink_job.api.enums import CatalogType
from sink_job.api.errors import AccessDenied, TransientError
from sink_job.api.sections.secret_refs import SecretRef
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.ledger.store import Ledger
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalogs import IcebergCatalog, open_catalog
from sink_job.tables.file_io import clients_like
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.plan import Request
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from tests.support.catalog_front import login_folder
from tests.support.glue_front import COMMITS, GlueFront, glue_front
from tests.support.lake import VALUES, LakeFixture, expected
from tests.support.sink_fixture import SinkFixture
from tests.support.table_sink import BEGIN

pytestmark = pytest.mark.data

ROOT = "topics/_s3sink/default.log/"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The URL of the server, for all tests of this file."""
    with glue() as server:
        yield server.url


@pytest.fixture
def front(moto: str) -> Iterator[GlueFront]:
    with glue_front(moto) as found:
        yield found


class GlueTable:
    """A table of its own in AWS Glue, and a sink with 25 records."""

    def __init__(self, sink: SinkFixture, front: GlueFront, keys: Path) -> None:
        bucket = f"{sink.bucket}-lake"
        s3_client(sink.endpoint).create_bucket(Bucket=bucket)
        self.keys = keys
        self.name = f"lake.t{uuid4().hex[:12]}"
        self.spec = CatalogSpec(
            type=CatalogType.GLUE,
            uri=front.url,
            region=REGION,
            warehouse=f"s3://{bucket}/tables",
            credentials=SecretRef(secret="glue"),
        )
        self.lake = LakeFixture(sink, spec=self.spec, catalog=self.opened(sink))
        self.lake.run(25, (2,))

    def opened(self, sink: SinkFixture) -> IcebergCatalog:
        access = CatalogAccess(credentials_dir=self.keys, timeout_s=20)
        return open_catalog(self.spec, clients_like(sink.settings), access)

    def register(self, request: Request = BEGIN) -> RegistrationOutcome:
        s3 = self.lake.sink.s3
        view, objects = read_ledger(Ledger(s3, ROOT, "register"), "default.log")
        target = TopicTable(self.name, "log", objects["log"], view, ("topics/",), lambda seconds: None)
        return Registration(s3, ROOT, self.opened(self.lake.sink), target).run(request)

    def rows(self) -> Any:
        return self.lake.read(VALUES, self.name)


@pytest.fixture
def table(sink_fixture: SinkFixture, front: GlueFront, tmp_path: Path) -> GlueTable:
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    return GlueTable(sink_fixture, front, login_folder(tmp_path / "glue", **keys))


def records(count: int) -> list[list[Any]]:
    return expected(count, lambda offset: 2)


def test_the_command_adds_each_record_once(table: GlueTable) -> None:
    given = ("--secret", f"glue={table.keys}")
    assert table.lake.register("--from-beginning", *given, name=table.name) == 0
    table.lake.run(60, (2,))
    assert [table.lake.register(*given, name=table.name) for _ in range(2)] == [0, 0]
    assert table.rows() == records(60)


def test_a_commit_whose_reply_is_lost_is_sent_once_and_adds_each_record_once(
    table: GlueTable, front: GlueFront
) -> None:
    for count in (25, 45):
        table.lake.run(count, (2,))
        front.loses = 1
        table.register()
        assert table.rows() == records(count)
    assert [each for each in front.requests if each in COMMITS] == ["CreateTable", "UpdateTable"]


def test_a_commit_that_lands_late_is_rejected(table: GlueTable, front: GlueFront) -> None:
    for count in (25, 45):
        table.lake.run(count, (2,))
        front.holds = True
        with pytest.raises(TransientError):
            table.register()
        front.holds = False
        table.register()
        assert [land()[0] for land in front.held] == [400] * 6
        front.held.clear()
        assert table.rows() == records(count)


def test_two_registrations_at_once_add_each_record_once(table: GlueTable) -> None:
    for count in (25, 45):
        table.lake.run(count, (2,))
        threads = [Thread(target=table.register) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert table.rows() == records(count)


def test_a_denied_commit_is_not_repeated_and_names_the_permissions(table: GlueTable, front: GlueFront) -> None:
    front.denied["CreateTable"] = "AccessDeniedException"
    with pytest.raises(AccessDenied, match="glue:GetTable, UpdateTable, CreateTable"):
        table.register()
    assert front.requests.count("CreateTable") == 1


def test_an_existing_database_needs_no_permission_to_create_one(table: GlueTable, front: GlueFront) -> None:
    table.register()
    table.name = f"lake.t{uuid4().hex[:12]}"
    front.denied["CreateDatabase"] = "AccessDeniedException"
    table.register()
    assert table.rows() == records(25)
