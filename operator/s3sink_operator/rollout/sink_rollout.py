"""What a rollout of new operator defaults has to know about each sink, from the status of that sink alone. Pure.

`status.rollout` of a sink names the defaults that its last restart by a rollout brought, and when it was available
again. So an operator that is restarted continues, and stays halted, where the previous one was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3sink_operator.reasons import Reason
from s3sink_operator.types import Json, desired_state, is_terminating, to_ms
from sink_job.api.enums import DesiredState

PENDING: Final = "RolloutPending"
"""The type of the condition of a sink that waits for its turn."""
PROGRESS_DEADLINE_MS: Final = 10 * 60_000
"""After this time a sink that is not available counts as failed, as with a Deployment."""

_IN_PROGRESS: Final = (
    Reason.DEFAULTS_CHANGED,
    Reason.SPEC_CHANGED,
    Reason.RESTART_REQUESTED,
    Reason.MEMORY_CHANGED,
    Reason.RESTARTING,
    Reason.STARTING,
    Reason.RECOVERING,
    Reason.EXECUTORS_STARTING,
    Reason.EXECUTORS_REJECTED,
    Reason.RUNNING,
    Reason.STOPPING,
)
"""Reasons of Ready in a restart without a failure."""
_NOT_BY_ROLLOUT: Final = (
    Reason.INVALID_SPEC,
    Reason.SINK_RESTRICTED,
    Reason.NAMESPACE_TOO_LARGE,
    Reason.CONFLICT,
    Reason.NAME_TAKEN,
    Reason.RECONCILE_PAUSED,
)
"""Reasons of Ready that a new driver does not cause. A sink with one of them is not counted."""
DEGRADED: Final = (Reason.EXECUTORS_DENIED, Reason.EXECUTORS_REJECTED)
"""Reasons of Ready with which a sink copies if it has an executor."""


@dataclass(frozen=True, kw_only=True)
class MaxUnavailable:
    """How many sinks a rollout may make unavailable: a number, or a percentage of the sinks that should run."""

    value: int
    is_percentage: bool = False

    @classmethod
    def parse(cls, text: str) -> MaxUnavailable:
        """`3` or `10%`. Raises ValueError."""
        digits = text.removesuffix("%")
        is_percentage = digits != text
        value = int(digits) if digits.isascii() and digits.isdigit() else -1
        if not 1 <= value <= (100 if is_percentage else 1_000_000):
            raise ValueError(f"{text!r} is neither a number of sinks from 1 nor a percentage from 1% to 100%")
        return cls(value=value, is_percentage=is_percentage)

    def of(self, sinks: int) -> int:
        """The number for this many sinks: rounded down, at least 1."""
        return max(1, sinks * self.value // 100) if self.is_percentage else self.value


@dataclass(frozen=True, kw_only=True)
class SinkRollout:
    """What a rollout has to know about one sink, from its status alone.

    `runs`: the sink should run. `pending`: its driver has the previous defaults. `template`: hash of the defaults that
    the last rollout brought; None without one. `was_available`: since then. `ready`: the condition Ready is True, or
    the sink is as degraded as before the restart, and no failure of the driver is recent. `in_progress`: a restart
    without a failure. `cause`: reason of a recent failure, or else of the condition Ready. `start_ms`: time of the
    restart in ms since the epoch.
    """

    runs: bool
    pending: bool = False
    template: str | None = None
    was_available: bool = False
    ready: bool = False
    in_progress: bool = False
    cause: str = ""
    start_ms: int = 0

    @classmethod
    def of(cls, sink: Json) -> SinkRollout:
        """Reads a sink. A status with invalid fields counts as one without them."""
        runs = desired_state(sink)[0] is DesiredState.RUNNING and not is_terminating(sink)
        status = _section(sink, "status")
        conditions = {each.get("type"): each for each in status.get("conditions") or () if isinstance(each, dict)}
        ready, mark = conditions.get("Ready", {}), _section(status, "rollout")
        retry, reason = _section(status, "retry"), str(ready.get("reason", ""))
        is_counted = runs and mark.get("template") and reason not in _NOT_BY_ROLLOUT
        return cls(
            runs=runs,
            pending=runs and PENDING in conditions,
            template=str(mark["template"]) if is_counted else None,
            was_available=bool(mark.get("availableTime")),
            ready=_is_as_before(ready, mark, status) and not retry,
            in_progress=reason in _IN_PROGRESS and not retry,
            cause=str(retry.get("reason") or reason),
            start_ms=to_ms(mark.get("startTime")) or 0,
        )

    def is_available(self, template: str) -> bool:
        """Whether a restart that brought these defaults has succeeded."""
        return self.template == template and self.was_available and self.ready

    def is_unavailable(self, template: str) -> bool:
        """Whether the rollout of these defaults has made the sink unavailable."""
        return self.template == template and not self.is_available(template)

    def is_inherited(self, template: str) -> bool:
        """Whether an earlier rollout has made the sink unavailable. It gets the new defaults at once, and the rollout
        waits for it, but no longer than PROGRESS_DEADLINE_MS."""
        return self.template not in (None, template) and not self.was_available


def _is_as_before(ready: Json, mark: Json, status: Json) -> bool:
    """Whether a sink is Ready, or as degraded as before its restart, by its condition Ready and its mark."""
    is_same = bool(mark.get("degraded")) and ready.get("reason") in DEGRADED and bool(status.get("replicas"))
    return ready.get("status") == "True" or is_same


def _section(document: Json, name: str) -> Json:
    section = document.get(name)
    return section if isinstance(section, dict) else {}
