"""The exit code of a report."""

from __future__ import annotations

import pytest

from sink_job.maintenance.repair.results import RepairedObject, RepairOutcome, RepairReport


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0),
        ([RepairOutcome.RESTORED, RepairOutcome.RESTORABLE], 0),
        ([RepairOutcome.RESTORED, RepairOutcome.NOT_RESTORABLE], 5),
    ],
)
def test_an_object_that_is_not_restorable_decides_the_exit_code(outcomes: list[RepairOutcome], code: int) -> None:
    objects = tuple(RepairedObject("key", "log", 0, 0, 4, 5, 100, "missing", outcome) for outcome in outcomes)
    assert RepairReport("sink", "archive", False, objects).exit_code == code
