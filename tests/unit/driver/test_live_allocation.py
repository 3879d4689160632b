"""The operator's allocation, applied to a running driver."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sink_job.api.allocation import Allocation
from sink_job.api.memory_budget import divide
from sink_job.api.units.quantities import GI, MI
from sink_job.coordinator.progress import Progress
from sink_job.driver.live_allocation import ALLOCATION_FILE, LiveAllocation, allocation_file
from tests.unit.api.manifests import accepted

PART = 25 * MI
START = Allocation(executors=2, memory=4 * GI)


class Application:
    """Records what is changed; fails while `error` is set."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.error: Exception | None = None
        self.excess_ended = 0

    def scale(self, executors: int) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append(("scale", executors))

    def end_excess(self) -> None:
        if self.error is not None:
            raise self.error
        self.excess_ended += 1

    def resize(self, memory: int) -> None:
        self.calls.append(("resize", memory))

    def set_slots(self, slots: int) -> None:
        self.calls.append(("slots", slots))


class Run:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "allocation.json"
        self.write(START)
        self.progress = Progress(accepted(), lambda: 0)
        self.application = Application()
        self.allocation = LiveAllocation(self.file, START, cores=4, part_size=PART, progress=self.progress)
        self.allocation.connect(self.application, self.application)

    def write(self, allocation: Allocation) -> None:
        self.file.write_text(allocation.text())

    @property
    def reported(self) -> tuple[int | None, int]:
        memory = self.progress.report().memory
        return memory.applied_bytes, memory.slots


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_the_allocation_of_the_start_is_reported_and_changes_nothing(run: Run) -> None:
    assert run.reported[0] is None
    run.allocation.apply()
    assert run.reported == (4 * GI, 8)
    assert not run.application.calls
    assert run.allocation.task_memory() is None


def test_a_new_number_of_executors_changes_the_application_and_its_slots(run: Run) -> None:
    run.write(Allocation(executors=5, memory=4 * GI))
    run.allocation.apply()
    run.allocation.apply()
    assert run.application.calls == [("resize", 4 * GI), ("scale", 5), ("slots", 20)]
    assert run.reported == (4 * GI, 20)


def test_executors_above_the_requested_number_end_also_if_they_register_later(run: Run) -> None:
    run.write(Allocation(executors=1, memory=4 * GI))
    run.allocation.apply()
    run.allocation.apply()
    assert run.application.excess_ended == 2


@pytest.mark.parametrize("memory", [5 * GI, 4 * GI - 64 * MI])
def test_new_memory_changes_the_budget_of_the_next_tasks_in_both_directions(run: Run, memory: int) -> None:
    run.write(Allocation(executors=2, memory=memory))
    run.allocation.apply()
    made = divide(memory, cores=4, part_size=PART)
    assert run.allocation.task_memory() == (made.budget, made.part_buffers)
    assert run.allocation.container() == (memory, 4)
    assert run.reported == (memory, 8)


def test_memory_that_fits_no_part_is_not_applied_and_logged_once(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.write(Allocation(executors=2, memory=512 * MI))
    with caplog.at_level(logging.WARNING):
        run.allocation.apply()
        run.allocation.apply()
    assert len(caplog.records) == 1
    assert run.reported == (4 * GI, 8)
    assert run.allocation.container() == (4 * GI, 4)


def test_an_application_that_fails_to_change_keeps_its_allocation(run: Run) -> None:
    run.application.error = RuntimeError("the JVM has ended")
    run.write(Allocation(executors=3, memory=4 * GI))
    run.allocation.apply()
    assert run.reported == (4 * GI, 8)


@pytest.mark.parametrize("text", ["", "{", '{"executors": 0, "memory": 1}', '{"executors": 2}'])
def test_an_unreadable_allocation_changes_nothing(run: Run, text: str) -> None:
    run.file.write_text(text)
    run.allocation.apply()
    run.file.unlink()
    run.allocation.apply()
    assert run.reported == (4 * GI, 8)
    assert not run.application.calls


def test_without_an_operator_nothing_is_followed() -> None:
    progress = Progress(accepted(), lambda: 0)
    allocation = LiveAllocation(allocation_file({}), START, cores=4, part_size=PART, progress=progress)
    allocation.connect(Application(), None)
    allocation.apply()
    assert allocation.container() is None
    assert progress.report().memory.applied_bytes is None
    assert allocation_file({ALLOCATION_FILE: "/x"}) == Path("/x")
