"""Which objects are in which table of a topic."""

from __future__ import annotations

from sink_job.tables.plan import LedgerView
from sink_job.tables.position import TablePosition
from sink_job.tables.successors.continuation import Continuation, done_bits
from sink_job.tables.successors.parts import TablePart
from tests.unit.tables.successors.objects import closed

OBJECTS = [closed(number, acknowledged) for number, acknowledged in enumerate([1, 2, 4, 4, 4, 6])]
LEFT = Continuation("lake.a_2", "ledger", 3, done_bits(OBJECTS[2:5], [OBJECTS[3].key]))
"""Of record 4, the first table has the object 3."""
AGAIN = Continuation("lake.a_3", "ledger", 3, done_bits(OBJECTS[2:5], [OBJECTS[2].key, OBJECTS[3].key]))
"""The second one has the object 2."""


def numbers(part: TablePart) -> list[int]:
    return [o.first for o in part]


def test_each_object_is_in_the_part_of_one_table() -> None:
    parts = [TablePart(OBJECTS, None, LEFT), TablePart(OBJECTS, LEFT, AGAIN), TablePart(OBJECTS, AGAIN, None)]
    assert [numbers(each) for each in parts] == [[0, 1, 3], [2], [4, 5]]
    assert numbers(TablePart(OBJECTS)) == [0, 1, 2, 3, 4, 5]


def test_a_divided_record_is_within_the_position_of_an_audit() -> None:
    position = TablePosition("ledger", 1, 3, 7)
    assert TablePart(OBJECTS, None, LEFT).position(position).record == 4
    assert TablePart(OBJECTS).position(position) == position


def test_the_first_table_begins_after_the_last_reset_before_its_position() -> None:
    view = LedgerView("sink", "ledger", 9, (2, 5), copied_from=5, copies=(2, 5))
    position = TablePosition("ledger", 1, 4, 7)
    assert TablePart(OBJECTS, None, LEFT).copied_from(view, position) == 2
    assert TablePart(OBJECTS, LEFT).copied_from(view, position) == 0
    assert TablePart(OBJECTS).copied_from(LedgerView("sink", "ledger", 9, copied_from=5), position) == 5
