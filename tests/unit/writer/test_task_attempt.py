"""The budget of a task in a container that has less memory than the driver has allocated."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api import memory_budget
from sink_job.api.enums import OnNullValue
from sink_job.api.sections.job_sections import KeySettings
from sink_job.api.spec import ObjectSettings
from sink_job.api.units.quantities import GI, MI
from sink_job.s3 import S3Settings
from sink_job.tasks.parameters import RoundParameters
from sink_job.writer import task_attempt
from sink_job.writer.task_attempt import TaskAttempt, fit_container

PART = 25 * MI
OBJECT_SETTINGS = ObjectSettings(s3=KeySettings(part_size=PART))
_PAGE_FAULTS = """
import resource
from sink_job.engine.container_memory import keep_freed_memory
keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
block = b"x" * (64 << 20)
del block
before = faults()
block = b"x" * (64 << 20)
print(faults() - before)
"""


def parameters(memory: int, slots: int | None = 2) -> RoundParameters:
    made = memory_budget.divide(memory, cores=slots or 1, part_size=PART)
    return RoundParameters(
        s3=S3Settings(bucket="b", region="r"),
        root="ledger/",
        settings_json="{}",
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
        assert fit_container(given, limit, OBJECT_SETTINGS) is given


def test_outside_of_a_sized_container_the_limit_is_ignored() -> None:
    given = parameters(4 * GI, slots=None)
    assert fit_container(given, 1 * GI, OBJECT_SETTINGS) is given


@given(st.integers(512 * MI, 4 * GI))
def test_a_smaller_container_has_a_smaller_budget_that_fits_a_part(limit: int) -> None:
    given = parameters(4 * GI)
    made = fit_container(given, limit, OBJECT_SETTINGS)
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep their own rules")
def test_a_large_block_takes_the_memory_of_a_freed_one() -> None:
    command = [sys.executable, "-c", _PAGE_FAULTS]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(answer) < (64 << 20) // os.sysconf("SC_PAGE_SIZE") // 10, "the system has cleared its pages again"


@pytest.mark.parametrize(
    ("format_", "keeps"), [({}, False), ({"output": "Parquet", "converter": "Avro"}, True)], ids=["Json", "Parquet"]
)
def test_a_task_keeps_freed_memory_only_for_row_groups_and_blocks(
    monkeypatch: pytest.MonkeyPatch, format_: dict[str, str], keeps: bool
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(task_attempt, "keep_freed_memory", lambda: calls.append(1))
    object_settings = ObjectSettings.model_validate({"format": format_}).model_dump_json()
    TaskAttempt(replace(parameters(4 * GI), settings_json=object_settings))
    assert bool(calls) is keeps
