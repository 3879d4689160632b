"""What a commit sets that leaves a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sink_job.ledger.state import ClosedObject
from sink_job.tables.files import ObjectFooter
from sink_job.tables.plan import LedgerView
from sink_job.tables.successors.continuation import Continuation, Predecessor, Successors, done_bits
from sink_job.tables.successors.fit import Fit
from sink_job.tables.successors.leaving import chain_properties, left_after, left_at
from tests.unit.tables.successors.objects import closed

LEDGER = LedgerView("sink", "ledger", 9)
OBJECTS = [closed(number, acknowledged) for number, acknowledged in enumerate([1, 4, 4, 4, 6])]
NO_COLUMNS: Any = None


def after(record: int) -> Iterable[ClosedObject]:
    return (o for o in OBJECTS if o.acknowledged > record)


def fits(*numbers: int) -> Fit:
    return Fit([ObjectFooter(OBJECTS[number], NO_COLUMNS, {}) for number in numbers], left_at=4)


def test_the_continuation_has_the_objects_of_the_divided_record_that_fit() -> None:
    left = left_at(fits(0, 2), Successors(base="lake.a"), LEDGER, after)
    assert left == Continuation("lake.a_2", "ledger", 3, "2")
    assert [o.first for o in left.remaining(after(3))] == [1, 3, 4]


def test_it_has_those_of_the_tables_before_too() -> None:
    start = Continuation("lake.a_2", "ledger", 3, done_bits(OBJECTS[1:4], [OBJECTS[2].key]))
    left = left_at(fits(1), Successors(base="lake.a", number=2, start=start), LEDGER, after)
    assert left.table == "lake.a_3"
    assert [o.first for o in left.remaining(after(3))] == [3, 4]


def test_the_properties_name_the_tables_before_and_after() -> None:
    left = left_after(3, Successors(base="lake.a"), LEDGER)
    second = Successors(base="lake.a", number=2, predecessor=Predecessor("lake.a", "u"))
    assert list(chain_properties(Successors(base="lake.a"), "s", left, is_new=True)) == ["s3sink.s.continued"]
    assert list(chain_properties(second, "s", None, is_new=True)) == ["s3sink.s.continues"]
    assert chain_properties(second, "s", None, is_new=False) == {}


def test_the_continuation_has_the_claim_of_the_last_record_with_an_object_of_the_table() -> None:
    ledger = LedgerView("sink", "ledger", 9, claims={1: "first", 4: "second"})
    successors = Successors(base="lake.a")
    assert [left_after(3, successors, ledger, done).claim for done in ("", "2")] == ["first", "second"]
