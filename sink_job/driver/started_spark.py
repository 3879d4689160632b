"""The parts of a run that exist from the start of Spark on, and what can be asked of its JVM."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sink_job.driver import console
from sink_job.driver.executor_permission import ExecutorPermission
from sink_job.spark.executor_log import ExecutorLog

JVM_ENDS_S = 3
"""How long to wait for the exit code of the JVM after an error, in s."""


@dataclass
class StartedSpark:
    """`context` is None before the start of Spark; the others are None without executor pods, and before it."""

    context: Any = None
    is_starting: bool = False
    permission: ExecutorPermission | None = None
    executor_log: ExecutorLog | None = None

    def jvm_exit_code(self) -> int | None:
        """The exit code of Spark's JVM; None while it runs."""
        if self.context is None:
            return None
        try:
            return int(self.context._gateway.proc.wait(JVM_ENDS_S))
        except subprocess.TimeoutExpired:
            return None

    def tasks(self) -> console.TaskCount | None:
        """The tasks of the current round, from Spark's status tracker; None between rounds."""
        if self.context is None:
            return None
        with suppress(Exception):  # Spark may end at any moment
            status = self.context.statusTracker()
            jobs = [status.getJobInfo(job) for job in status.getActiveJobsIds()]
            stages = [status.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            if known := [stage for stage in stages if stage]:
                return console.TaskCount(sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known))
        return None
