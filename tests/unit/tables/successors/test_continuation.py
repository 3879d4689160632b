"""Properties of tables that are continued."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.tables.successors.continuation import (
    MAX_TABLES,
    Continuation,
    Predecessor,
    Successors,
    continuation_in,
    continued_property,
    continues_property,
    done_bits,
    encoded,
    predecessor_in,
    successor_name,
)
from tests.unit.tables.successors.objects import closed


@given(st.lists(st.tuples(st.integers(4, 6), st.booleans()), max_size=20).map(sorted))
def test_the_remaining_objects_are_those_that_are_not_done(given_objects: list[tuple[int, bool]]) -> None:
    objects = [closed(number, record) for number, (record, _) in enumerate(given_objects)]
    divided = [o for o in objects if o.acknowledged == 4]
    done = {o.key for o, (_, is_done) in zip(objects, given_objects, strict=True) if is_done}
    left = Continuation("lake.a_2", "ledger", 3, done_bits(divided, done))
    expected = [o for o in objects if o.acknowledged > 4 or o.key not in done]
    assert list(left.remaining(objects)) == expected


def test_the_properties_are_read_as_they_were_written() -> None:
    left, before = Continuation("lake.a_2", "ledger", 3, "5"), Predecessor("lake.a", "uuid")
    properties = {continued_property("s"): encoded(left), continues_property("s"): encoded(before)}
    assert continuation_in(properties, "s") == left
    assert predecessor_in(properties, "s") == before
    assert continuation_in(properties, "other") is None
    assert predecessor_in({}, "s") is None


@pytest.mark.parametrize("text", ["", "lake.a_2", "{}", '{"table": 1}', "[" * 100_000])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(TableNotRegistered, match="is not one that s3sink register has written"):
        continuation_in({continued_property("s"): text}, "s")


def test_tables_are_numbered_up_to_nine() -> None:
    assert [successor_name("lake.a", number) for number in (1, 2, 9)] == ["lake.a", "lake.a_2", "lake.a_9"]
    last = Successors(on_reset=True, base="lake.a", number=MAX_TABLES)
    assert (last.may_follow, last.continues_after_reset) == (False, False)
    assert Successors(base="lake.a").next_table == "lake.a_2"


def test_no_bits_are_no_text() -> None:
    objects: list[ClosedObject] = [closed(0, 1)]
    assert done_bits(objects, ()) == ""
