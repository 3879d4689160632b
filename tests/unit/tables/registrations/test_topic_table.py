"""A table and what is to be in it."""

from __future__ import annotations

from typing import Any

import msgspec

from sink_job.tables.missing.skipped import NOTHING
from sink_job.tables.plan import LedgerView
from sink_job.tables.position import TablePosition
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from sink_job.tables.successors.continuation import Continuation, Successors, done_bits
from tests.unit.tables.successors.objects import closed

OBJECTS = [closed(number, acknowledged) for number, acknowledged in enumerate([1, 4, 4, 6])]
LEDGER = LedgerView("sink", "ledger", 9, (2,), copied_from=2, copies=(2,))


def table(**given: Any) -> TopicTable:
    return TopicTable("lake.a", "a", OBJECTS, LEDGER, (), lambda seconds: None, **given)


def test_a_first_table_begins_after_the_last_reset_with_all_objects_of_a_record() -> None:
    assert table().beginning == 2
    assert [o.first for o in table().after(2)] == [1, 2, 3]


def test_a_successor_begins_with_the_objects_that_the_tables_before_lack() -> None:
    start = Continuation("lake.a_2", "ledger", 3, done_bits(OBJECTS[1:3], [OBJECTS[1].key]))
    found = table(successors=Successors(base="lake.a", number=2, start=start))
    assert found.beginning == 3
    assert [o.first for o in found.after(3)] == [2, 3]
    assert [o.first for o in found.all_after(3)] == [1, 2, 3]


def test_a_table_lacks_what_was_skipped_up_to_its_position() -> None:
    position = TablePosition("ledger", 1, 4, 1, skipped=NOTHING.with_objects(OBJECTS))
    assert RegistrationOutcome("lake.a", "a", position=position, skipped=1).lacking == 4
    outcome = RegistrationOutcome("lake.a", "a", position=msgspec.structs.replace(position, skipped=None), skipped=1)
    assert outcome.lacking == 1
