"""The executors of a driver that runs: how many there are, and what keeps the others from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from s3sink_operator import names, pod_failures
from s3sink_operator.decide.context import Context
from s3sink_operator.pod_failures import PodFailure
from s3sink_operator.types import Json, attempt_number, is_controlled, uid_of


@dataclass(frozen=True, kw_only=True)
class ExecutorState:
    """`running` of `wanted`; `failure`: why one of the others does not start, where Kubernetes says."""

    running: int
    desired: int
    failure: PodFailure | None = None

    @property
    def is_incomplete(self) -> bool:
        return self.running < self.desired

    def message(self) -> str:
        """What is missing, and why."""
        why = "Spark makes them" if self.failure is None else self.failure.message
        return f"{self.running} of {self.desired} executors run: {why}"


def executor_state(ctx: Context) -> ExecutorState:
    """Those of the driver that is there; those of an attempt before it are on their way out."""
    pods = _owned_executors(ctx)
    running = [pod for pod in pods if _phase(pod) == "Running"]
    waiting = (pod_failures.startup_failure(pod) for pod in pods if _phase(pod) != "Running")
    failure = next((each for each in waiting if each is not None), None)
    return ExecutorState(running=len(running), desired=ctx.parsed_sink.spec.executor.instances, failure=failure)


def _owned_executors(ctx: Context) -> Sequence[Json]:
    if ctx.driver is None:
        return ()
    attempt, driver = attempt_number(ctx.driver, names.ATTEMPT_LABEL), uid_of(ctx.driver)
    own = [pod for pod in ctx.observed.executors if is_controlled(pod, driver)]  # anyone may give a pod these labels
    return [pod for pod in own if attempt_number(pod, names.ATTEMPT_LABEL) == attempt]


def _phase(pod: Json) -> str | None:
    return (pod.get("status") or {}).get("phase")
