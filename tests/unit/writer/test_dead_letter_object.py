"""When the dead-letter object of a topic-partition closes, and which rejected records it takes."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.records.batch import DEAD_LETTERS
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.types import OpenObjectState
from sink_job.writer.dead_letter_object import MAX_DEFERRED, DeadLetterObject
from sink_job.writer.dead_letters import DeadLetterLines
from tests.unit.writer.test_dead_letters import TP, bad, batch

NOW = 1_000


def dead_letters(*inherited: OpenObjectState, **policy: Any) -> DeadLetterObject:
    return DeadLetterObject(DeadLetterLines(TP), RotationPolicy(**policy), NOW, inherited)


def is_open(opened_at: int = NOW, size: int = 10) -> OpenObjectState:
    return OpenObjectState(DEAD_LETTERS, first=1, last=2, count=2, size=size, opened_at=opened_at)


def test_records_after_an_offset_wait() -> None:
    found = dead_letters()
    found.add(batch([b"a"] * 6), [bad(0), bad(2), bad(5)])
    assert [rows.offsets.tolist() for rows in found.take_before(13)] == [[10, 12]]
    assert found.state is not None
    assert (found.state.first, found.state.last, found.state.count) == (10, 12, 2)
    assert [rows.offsets.tolist() for rows in found.take_before(None)] == [[15]]
    assert found.state.count == 3
    assert found.state.opened_at == NOW


def test_a_divided_slice_has_the_bytes_of_its_records() -> None:
    whole, divided = dead_letters(), dead_letters()
    for each in (whole, divided):
        each.add(batch([b"a", b"bb", b"ccc"]), [bad(0), bad(1), bad(2)])
    (rows,) = whole.take_before(None)
    parts = [*divided.take_before(11), *divided.take_before(12), *divided.take_before(None)]
    assert b"".join(part.data for part in parts) == bytes(rows.data)
    assert [part.ends.tolist()[-1] for part in parts] == [len(part.data) for part in parts]


def test_many_waiting_records_are_reported() -> None:
    found = dead_letters()
    count = MAX_DEFERRED + 1
    found.add(batch([b"a"] * count), [bad(row) for row in range(count)])
    assert found.has_many_deferred


@pytest.mark.parametrize(
    ("state", "policy", "alone", "closes"),
    [
        (is_open(), {}, False, False),
        (is_open(), {}, True, True),
        (is_open(opened_at=0), {"max_open_time": NOW}, False, True),
        (is_open(opened_at=1), {"max_open_time": NOW}, False, False),
        (is_open(size=50), {"max_bytes": 50}, False, True),
        (is_open(), {"per_object": True}, False, False),
    ],
)
def test_the_object_closes_at_the_end_of_a_round(
    state: OpenObjectState, policy: dict[str, Any], alone: bool, closes: bool
) -> None:
    assert dead_letters(state, **policy).is_due(alone=alone) is closes


@pytest.mark.parametrize("per_object", [False, True])
def test_in_scope_object_the_object_closes_after_another_one(per_object: bool) -> None:
    found = dead_letters(is_open(), per_object=per_object)
    found.others_closed()
    assert found.is_due(alone=False) is per_object


def test_nothing_closes_without_rejected_records() -> None:
    assert not dead_letters().is_due(alone=True)
