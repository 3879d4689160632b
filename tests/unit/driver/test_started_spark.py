"""What a run can ask of Spark's JVM: its exit code, and the tasks of the current round."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from sink_job.driver.console import TaskCount
from sink_job.driver.started_spark import JVM_ENDS_S, StartedSpark


class Context:
    """A Spark context with jobs of stages; a stage is None when Spark has forgotten it."""

    def __init__(self, jobs: dict[int, list[Any] | None], *, exit_code: int | None = None) -> None:
        self.jobs = jobs
        self.exit_code = exit_code
        self.waited_s: list[float] = []
        self._gateway = SimpleNamespace(proc=self)

    def wait(self, seconds: float) -> int:
        self.waited_s.append(seconds)
        if self.exit_code is None:
            raise subprocess.TimeoutExpired("java", seconds)
        return self.exit_code

    def statusTracker(self) -> Context:  # noqa: N802
        return self

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return list(self.jobs)

    def getJobInfo(self, job: int) -> Any:  # noqa: N802
        stages = self.jobs[job]
        return None if stages is None else SimpleNamespace(stageIds=[(job, n) for n in range(len(stages))])

    def getStageInfo(self, stage: tuple[int, int]) -> Any:  # noqa: N802
        found = self.jobs[stage[0]]
        assert found is not None
        return found[stage[1]]


def stage(completed: int, total: int) -> Any:
    return SimpleNamespace(numCompletedTasks=completed, numTasks=total)


def test_before_the_start_of_spark_nothing_is_known() -> None:
    assert StartedSpark().jvm_exit_code() is None
    assert StartedSpark().tasks() is None


def test_the_tasks_of_a_round_are_those_of_all_its_stages() -> None:
    assert StartedSpark(Context({1: [stage(2, 8), stage(1, 4)], 2: [stage(0, 3)]})).tasks() == TaskCount(3, 15)


@pytest.mark.parametrize(
    "jobs", [{}, {1: None}, {1: []}, {1: [None]}], ids=["no job", "ended", "no stage", "forgotten"]
)
def test_between_rounds_there_are_no_tasks(jobs: dict[int, list[Any] | None]) -> None:
    assert StartedSpark(Context(jobs)).tasks() is None


def test_a_stage_that_spark_has_forgotten_is_not_counted() -> None:
    assert StartedSpark(Context({1: [None, stage(1, 4)], 2: None})).tasks() == TaskCount(1, 4)


def test_the_end_of_spark_is_no_error_of_the_progress() -> None:
    context = Context({1: [stage(1, 4)]})
    context.getStageInfo = lambda stage: 1 / 0  # type: ignore[method-assign]
    assert StartedSpark(context).tasks() is None


@pytest.mark.parametrize("code", [0, 52, -9])
def test_the_exit_code_of_the_jvm_is_awaited_for_a_short_time(code: int) -> None:
    context = Context({}, exit_code=code)
    assert StartedSpark(context).jvm_exit_code() == code
    assert context.waited_s == [JVM_ENDS_S]


def test_a_running_jvm_has_no_exit_code() -> None:
    assert StartedSpark(Context({})).jvm_exit_code() is None
