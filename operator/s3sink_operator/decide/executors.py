"""The executors of a driver that runs: how many there are, and what keeps the others from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from s3sink_operator import names, pod_failures
from s3sink_operator.decide.context import Context
from s3sink_operator.pod_failures import Failure
from s3sink_operator.types import Json, attempt_of, is_controlled, uid_of


@dataclass(frozen=True, kw_only=True)
class Executors:
    """`running` of `wanted`; `failure`: why one of the others does not start, where Kubernetes says."""

    running: int
    wanted: int
    failure: Failure | None = None

    @property
    def missing(self) -> bool:
        return self.running < self.wanted

    def sentence(self) -> str:
        """What is missing, and why."""
        why = "Spark makes them" if self.failure is None else self.failure.sentence
        return f"{self.running} of {self.wanted} executors run: {why}"


def executors_of(ctx: Context) -> Executors:
    """Those of the driver that is there; those of an attempt before it are on their way out."""
    pods = _own(ctx)
    running = [pod for pod in pods if _phase(pod) == "Running"]
    waiting = (pod_failures.not_starting(pod) for pod in pods if _phase(pod) != "Running")
    failure = next((each for each in waiting if each is not None), None)
    return Executors(running=len(running), wanted=ctx.valid.spec.executor.instances, failure=failure)


def _own(ctx: Context) -> Sequence[Json]:
    if ctx.driver is None:
        return ()
    attempt, driver = attempt_of(ctx.driver, names.ATTEMPT), uid_of(ctx.driver)
    own = [pod for pod in ctx.seen.executors if is_controlled(pod, driver)]  # anyone may give a pod these labels
    return [pod for pod in own if attempt_of(pod, names.ATTEMPT) == attempt]


def _phase(pod: Json) -> str | None:
    return (pod.get("status") or {}).get("phase")
