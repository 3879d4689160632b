"""The results of tasks that compare objects of another writer; tests/data/test_from_connector.py has the comparison."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sink_job.verify.previous.previous_objects import (
    ObjectEnd,
    PreviousObject,
    PreviousObjects,
    PreviousResult,
)

ENDS = st.builds(
    ObjectEnd,
    key=st.text(),
    status=st.sampled_from(["Equal", "Incomplete", "Different"]),
    last=st.integers(-1, 1 << 62),
    records=st.integers(0, 1 << 62),
    message=st.text(),
    rows=st.integers(0, 1 << 62),
)


@given(st.lists(ENDS, max_size=3), st.lists(st.text(), max_size=3))
def test_a_result_is_the_same_after_the_way_from_a_task(ends: list[ObjectEnd], unresolved: list[str]) -> None:
    result = PreviousResult(ends, unresolved)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=PreviousResult) == result


def test_the_objects_of_a_range_are_the_same_after_the_way_to_a_task() -> None:
    objects = PreviousObjects((PreviousObject("k", 10, is_required=False), PreviousObject("l", 20)), 15)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(objects), type=PreviousObjects) == objects
