"""A table in a REST catalog, with faults between the registration and the catalog."""

from __future__ import annotations

import time
from threading import Thread
from typing import Any
from uuid import uuid4

from sink_job.api.errors import TransientError
from sink_job.ledger.store import Ledger
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.plan import Request
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from tests.support.lake import VALUES, LakeFixture, expected
from tests.support.table_sink import BEGIN, FaultyCatalog

ROOT = "topics/_s3sink/default.log/"


class RestTable:
    """A table of its own, with faults between the registration and the catalog."""

    def __init__(self, lake: LakeFixture) -> None:
        self.lake = lake
        self.name = f"lake.t{uuid4().hex[:12]}"
        self.catalog = FaultyCatalog(lake.catalog)
        self.ahead_ms = 0
        """How far the clock of registrations is ahead."""

    def register(self, request: Request = BEGIN) -> RegistrationOutcome:
        s3 = self.lake.sink.s3
        view, objects = read_ledger(Ledger(s3, ROOT, "register"), "default.log")
        now = time.time_ns() // 1_000_000 + self.ahead_ms
        target = TopicTable(
            self.name, "log", objects["log"], view, ("topics/",), lambda seconds: None, clock=lambda: now
        )
        return Registration(s3, ROOT, self.catalog, target).run(request)

    def register_until_done(self) -> None:
        """As a driver or cron does: the catalog may answer with an error while others use it."""
        for _ in range(20):
            try:
                self.register()
            except TransientError:
                continue
            return
        raise AssertionError("the catalog has answered 20 registrations with errors")

    def rows(self) -> Any:
        return self.lake.read(VALUES, self.name)


def records(count: int) -> list[list[Any]]:
    """The rows of a table with so many records of the schema 2."""
    return expected(count, lambda offset: 2)


def add_at_once(table: RestTable) -> None:
    """Three registrations at the same time."""
    threads = [Thread(target=table.register_until_done) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
