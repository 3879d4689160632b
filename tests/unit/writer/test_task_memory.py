"""The budget of a task in a container that has less memory than the driver has allocated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api import memory_budget
from sink_job.api.job_sections import KeySettings
from sink_job.api.quantities import GI, MI
from sink_job.api.spec import ObjectSettings, OnNullValue
from sink_job.s3 import S3Settings
from sink_job.writer import task_attempt
from sink_job.writer.task_attempt import RoundParameters, fit_container

PART = 25 * MI
SHAPING = ObjectSettings(s3=KeySettings(part_size=PART))


def parameters(memory: int, slots: int | None = 2) -> RoundParameters:
    made = memory_budget.divide(memory, cores=slots or 1, part_size=PART)
    return RoundParameters(
        s3=S3Settings(bucket="b", region="r"),
        root="ledger/",
        shaping_json="{}",
        settings_record=1,
        tolerant=False,
        on_null=OnNullValue.FAIL,
        epoch=1,
        round=1,
        now=0,
        budget=made.budget,
        threads=made.part_buffers,
        part_buffers=made.part_buffers,
        memory=memory,
        slots=slots,
    )


def test_a_container_with_the_allocated_memory_or_more_changes_nothing() -> None:
    given = parameters(4 * GI)
    for limit in (4 * GI, 5 * GI, None):
        assert fit_container(given, limit, SHAPING) is given


def test_outside_of_a_sized_container_the_limit_is_ignored() -> None:
    given = parameters(4 * GI, slots=None)
    assert fit_container(given, 1 * GI, SHAPING) is given


@given(st.integers(512 * MI, 4 * GI))
def test_a_smaller_container_has_a_smaller_budget_that_fits_a_part(limit: int) -> None:
    given = parameters(4 * GI)
    made = fit_container(given, limit, SHAPING)
    least = memory_budget.min_total(cores=2, part_size=PART)
    assert made.budget <= given.budget
    assert made.budget >= memory_budget.MIN_TASK_MEMORY
    assert memory_budget.divide(max(limit, least), cores=2, part_size=PART).budget in (made.budget, given.budget)


def test_a_process_releases_memory_when_its_budget_decreases(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    monkeypatch.setattr(task_attempt, "_last_budget", 0)
    monkeypatch.setattr(task_attempt, "release_free_memory", lambda: released.append(1))
    for budget in (100, 100, 200, 50, 50):
        task_attempt._release_after_shrink(budget)
    assert released == [1]
