"""The executors of a running driver: how many run, and why the others do not start."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_operator import pod_failures
from s3sink_operator.decide.context import Context
from s3sink_operator.pod_failures import PodFailure
from s3sink_operator.types import Json


@dataclass(frozen=True, kw_only=True)
class ExecutorState:
    """Numbers of running and desired executors. `failure`: why one of the others does not start, if known."""

    running: int
    desired: int
    failure: PodFailure | None = None

    @property
    def is_incomplete(self) -> bool:
        return self.running < self.desired

    def message(self) -> str:
        """How many executors run, and why the others do not."""
        reason = "Spark is creating the others" if self.failure is None else self.failure.message
        return f"{self.running} of {self.desired} executors are running: {reason}"


def executor_state(ctx: Context) -> ExecutorState:
    """The executors of the current driver."""
    pods = ctx.executors
    running = [pod for pod in pods if _phase(pod) == "Running"]
    waiting = (pod_failures.startup_failure(pod) for pod in pods if _phase(pod) != "Running")
    failure = next((each for each in waiting if each is not None), None)
    return ExecutorState(running=len(running), desired=ctx.desired_executors, failure=failure)


def _phase(pod: Json) -> str | None:
    return (pod.get("status") or {}).get("phase")
