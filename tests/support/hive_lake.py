"""A table of its own in Hive's metastore, and a sink with 25 records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from hive_metastore.ttypes import (
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    ShowLocksRequest,
    UnlockRequest,
)
from pyiceberg.catalog.hive import HiveCatalog

from devtools.s3 import s3_client
from sink_job.api.enums import CatalogType
from sink_job.api.errors import TransientError
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.ledger.store import Ledger
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalog.metastore import Metastore
from sink_job.tables.catalogs import IcebergCatalog, open_catalog
from sink_job.tables.file_io import clients_like, file_properties
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.plan import Request
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from tests.support.lake import VALUES, LakeFixture, expected
from tests.support.sink_fixture import SinkFixture
from tests.support.table_sink import BEGIN

ROOT = "topics/_s3sink/default.log/"


class HiveTable:
    """`uri` is that of the sink's catalog, `metastore` that of other programs, `ids` the schemas of the records."""

    def __init__(self, sink: SinkFixture, uri: str, metastore: str, ids: tuple[int, ...] = (2,)) -> None:
        bucket = f"{sink.bucket}-lake"
        s3_client(sink.endpoint).create_bucket(Bucket=bucket)
        self.database = f"d{uuid4().hex[:12]}"
        self.name = f"{self.database}.log"
        self.metastore = metastore
        self.spec = CatalogSpec(type=CatalogType.HIVE, uri=uri, warehouse=f"s3://{bucket}/tables")
        self.lake = LakeFixture(sink, spec=self.spec, catalog=self.opened(sink))
        self.lake.run(25, ids)

    def opened(self, sink: SinkFixture) -> IcebergCatalog:
        return open_catalog(self.spec, clients_like(sink.settings), CatalogAccess(timeout_s=20))

    def write(self, records: int) -> None:
        self.lake.run(records, (2,))

    def register(self, request: Request = BEGIN) -> RegistrationOutcome:
        s3 = self.lake.sink.s3
        view, objects = read_ledger(Ledger(s3, ROOT, "register"), "default.log")
        target = TopicTable(self.name, "log", objects["log"], view, ("topics/",), lambda seconds: None)
        return Registration(s3, ROOT, self.opened(self.lake.sink), target).run(request)

    def register_until_done(self) -> None:
        """As a driver or cron does: another client may hold the lock, or commit in between."""
        for _ in range(20):
            try:
                self.register()
            except TransientError:
                continue
            return
        raise AssertionError("the metastore has answered 20 registrations with errors")

    def rows(self) -> Any:
        return self.lake.read(VALUES, self.name)

    def other(self, uri: str | None = None) -> HiveCatalog:
        """PyIceberg's own catalog, as other programs use it; `uri`: another one than `metastore`."""
        properties = file_properties(clients_like(self.lake.sink.settings))
        return HiveCatalog("other", uri=uri or self.metastore, **properties)

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Thrift's client of another program."""
        with Metastore(self.metastore, CatalogAccess()).client() as client:
            yield client

    def locks(self) -> list[Any]:
        """The locks of all tables of the database."""
        with self.client() as client:
            return list(client.show_locks(ShowLocksRequest(dbname=self.database)).locks)

    def lock(self) -> int:
        """Another client takes the lock of the table. The number of the lock."""
        component = LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname=self.database, tablename="log")
        with self.client() as client:
            found: int = client.lock(LockRequest([component], user="other", hostname="host", agentInfo="x")).lockid
        return found

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Another client holds the lock of the table, with heartbeats. Yields its number."""
        number, ended = self.lock(), threading.Event()

        def beat() -> None:
            with self.client() as client:
                while not ended.wait(0.2):
                    client.heartbeat(HeartbeatRequest(lockid=number))

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            yield number
        finally:
            ended.set()
            thread.join()
            with self.client() as client:
                client.unlock(UnlockRequest(number))

    def parameters(self) -> dict[str, str]:
        with self.client() as client:
            found: dict[str, str] = client.get_table(self.database, "log").parameters
        return found


def records(count: int) -> list[list[Any]]:
    """The rows of a table with so many records."""
    return expected(count, lambda offset: 2)
