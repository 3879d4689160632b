"""Registrations of partitions: what is added, when the position moves, and repetitions."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import TableNotRegistered, TransientError
from sink_job.ledger.state import ClosedObject
from sink_job.tables.hive_tables.registration import PartitionRegistration
from sink_job.tables.hive_tables.store import PartitionedTable
from sink_job.tables.plan import LedgerView, Request
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from tests.support.memory_s3 import MemoryS3
from tests.support.partition_store import MemoryPartitions
from tests.unit.tables.parquet_objects import listed

ROOT = "topics/_s3sink/default.log/"
TABLE = PartitionedTable("lake.log", "first", "s3://archive/topics/log/", ("day",))


class Partitions:
    """A ledger whose record `n` acknowledges the object of day `n`, and a table."""

    def __init__(self) -> None:
        self.s3: Any = MemoryS3()
        self.store = MemoryPartitions()
        self.store.tables["lake.log"] = TABLE
        self.identity, self.copied_from, self.claims = "ledger", 0, {1: "a"}

    def register(self, days: int, request: Request | None = None, **given: Any) -> RegistrationOutcome:
        objects = [self.object(day) for day in range(1, days + 1)]
        view = LedgerView("default.log", self.identity, days, copied_from=self.copied_from, claims=self.claims)
        target = TopicTable("lake.log", "log", objects, view, ("topics/",), lambda seconds: None)
        return PartitionRegistration(self.s3, ROOT, self.store, target).run(request or Request(), **given)

    @staticmethod
    def object(day: int) -> ClosedObject:
        return listed(f"topics/log/day={day}/a.json", b"ab", 3, acknowledged=day)

    @property
    def days(self) -> list[int]:
        return sorted(int(day) for (day,) in self.store.partitions)


@pytest.fixture
def partitions() -> Partitions:
    found = Partitions()
    found.s3.bucket = "archive"
    return found


def test_each_registration_adds_the_directories_since_the_last_one(partitions: Partitions) -> None:
    first, second, third = (partitions.register(days) for days in (2, 3, 3))
    assert (first.partitions, first.objects, first.records, first.bytes) == (2, 2, 6, 4)
    assert (second.partitions, third.partitions) == (1, 0)
    assert third.position is not None
    assert third.position.record == 3
    assert partitions.store.requests == [2, 1]


def test_a_request_has_at_most_a_hundred_partitions(partitions: Partitions) -> None:
    assert partitions.register(250).commits == 3
    assert partitions.store.requests == [100, 100, 50]


def test_the_position_does_not_move_before_all_partitions_are_added(partitions: Partitions) -> None:
    def fail() -> None:
        if partitions.store.requests:
            raise TransientError("AWS Glue does not answer")

    partitions.store.before = fail
    with pytest.raises(TransientError):
        partitions.register(150)
    partitions.store.before = lambda: None
    assert partitions.register(150).partitions == 150
    assert partitions.days == list(range(1, 151))


def test_a_dry_run_writes_nothing(partitions: Partitions) -> None:
    assert partitions.register(3, dry_run=True).partitions == 3
    assert partitions.days == []
    assert partitions.register(3).partitions == 3


def test_all_directories_are_added_from_the_beginning_and_to_a_table_that_was_created_again(
    partitions: Partitions,
) -> None:
    partitions.register(3)
    assert partitions.register(3, Request(from_beginning=True)).partitions == 3
    partitions.store.tables["lake.log"] = PartitionedTable("lake.log", "second", TABLE.location, TABLE.keys)
    assert [partitions.register(3).partitions for _ in range(2)] == [3, 0]


def test_another_ledger_begins_at_its_beginning_and_a_reset_after_it(partitions: Partitions) -> None:
    partitions.register(3)
    partitions.identity = "another"
    assert partitions.register(2).partitions == 2
    partitions.copied_from = 3
    assert partitions.register(5).partitions == 2


def test_a_ledger_that_was_restored_and_has_grown_since_begins_again(partitions: Partitions) -> None:
    partitions.register(3)
    partitions.claims = {1: "a", 2: "b"}
    assert [partitions.register(4).partitions for _ in range(2)] == [4, 0]


def test_a_table_that_does_not_exist_is_created_by_the_user(partitions: Partitions) -> None:
    partitions.store.tables.clear()
    with pytest.raises(TableNotRegistered, match="create it with the output of s3sink ddl --dialect memory"):
        partitions.register(1)


def test_a_position_beyond_the_ledger_stops(partitions: Partitions) -> None:
    partitions.register(3)
    with pytest.raises(TransientError, match="the ledger ends at record 2"):
        partitions.register(2)
    assert partitions.register(2, Request(from_beginning=True)).partitions == 2
