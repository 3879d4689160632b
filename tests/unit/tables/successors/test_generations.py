"""The part of a ledger that one table may have."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.tables.plan import LedgerView
from sink_job.tables.successors.generations import known_record, part_for

VIEW = LedgerView("sink", "ledger", 100, (10, 20, 40), copied_from=40, copies=(20, 40))
"""The reset at record 10 copies nothing again."""


@pytest.mark.parametrize(
    ("record", "continues", "expected"),
    [
        (5, True, (19, (10,), 0)),
        (19, True, (19, (10,), 0)),
        (21, True, (39, (10, 20), 20)),
        (50, True, (100, (10, 20, 40), 40)),
        (5, False, (100, (10, 20, 40), 40)),
    ],
)
def test_a_table_has_the_objects_up_to_the_next_reset(record: int, continues: bool, expected: tuple[Any, ...]) -> None:
    part = part_for(VIEW, record, 0, continues=continues)
    assert (part.number, part.resets, part.copied_from) == expected


@pytest.mark.parametrize(("beginning", "expected"), [(19, (19, 19)), (20, (39, 20)), (40, (100, 40))])
def test_a_new_table_begins_where_the_one_before_ends(beginning: int, expected: tuple[int, int]) -> None:
    part = part_for(VIEW, None, beginning, continues=False)
    assert (part.number, part.copied_from) == expected


def test_a_table_that_does_not_exist_has_no_position() -> None:
    assert known_record(None, None, "sink", "main") is None
