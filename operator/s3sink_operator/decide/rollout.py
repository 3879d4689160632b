"""The rollout of new operator defaults: which drivers it restarts, and what the status of a sink records of it.

A new default image, or another version of the operator, changes the drivers of many sinks at once. A rollout restarts
a Ready driver only while fewer sinks than `MaxUnavailable` are unavailable because of it. All that this depends on is
in the status of the sinks, so an operator that is restarted continues, and stays halted, where the previous one was:
`status.rollout` of a sink names the defaults that its last restart by a rollout brought, and when it was available
again. Changes by users do not wait, and their effects are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from s3sink_operator import objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.reasons import Reason
from s3sink_operator.status import Condition
from s3sink_operator.status_model import ConditionStatus, RolloutStatus
from s3sink_operator.types import Json, desired_state, is_terminating, to_ms
from sink_job.api.enums import DesiredState

PENDING: Final = "RolloutPending"
HALTED: Final = "RolloutHalted"
"""Condition types, and the reason of the event."""
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
_DEGRADED: Final = (Reason.EXECUTORS_DENIED, Reason.EXECUTORS_REJECTED)
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


def compose(ctx: Context, result: PolicyResult) -> Iterator[Condition]:
    """The conditions of a sink that waits for its turn."""
    if not _waits(ctx, result):
        return
    if result.waits_for_turn:
        message = "the defaults of spec.executor.memory changed; pods are replaced when the turn of the sink comes"
        yield Condition(type=PENDING, status=ConditionStatus.TRUE, reason=Reason.WAITING_FOR_TURN, message=message)
    else:
        yield _pending_restart(ctx)
    halted = halted_condition(ctx, result)
    if halted is not None:
        yield halted


def _pending_restart(ctx: Context) -> Condition:
    image = None if ctx.pods.driver is None else objects.image_of(ctx.pods.driver)
    desired = ctx.sink.manifest.spec.image or ctx.settings.image
    change = f" (image {image}, new: {desired})" if image != desired else ""
    message = f"the driver has the previous defaults of the operator{change}; it is restarted when its turn comes"
    return Condition(type=PENDING, status=ConditionStatus.TRUE, reason=Reason.WAITING_FOR_TURN, message=message)


def halted_condition(ctx: Context, result: PolicyResult) -> Condition | None:
    """The condition of a sink that waits because the rollout is halted."""
    halted_by = ctx.observed.rollout.halted_by
    if halted_by is None or not _waits(ctx, result):
        return None
    message = (
        f"the rollout of new operator defaults is halted: {halted_by}. It continues when these sinks are Ready. Fix or "
        "pause them, or roll the operator back"
    )
    return Condition(type=HALTED, status=ConditionStatus.TRUE, reason=Reason.SINKS_NOT_READY, message=message)


def status_after(ctx: Context, result: PolicyResult) -> RolloutStatus | None:
    """The section of the status after this pass. It precedes the deletion of the driver."""
    template = objects.template_hash(ctx.settings)
    if result.writes.starts_rollout:
        start = ctx.now // 1000 * 1000
        return RolloutStatus(template=template, start_time=start, degraded=_was_degraded(ctx) or None)
    previous = ctx.previous.status.rollout
    if previous is None or ctx.sink.desired_state[0] is not DesiredState.RUNNING or ctx.sink.deletion_ms is not None:
        return None
    if ctx.pods.driver is not None and result.writes.delete and not ctx.pods.has_current_driver:
        # Restarted by the user, or because it is not Ready: what follows is not made unavailable by the rollout.
        return None if previous.available_time else previous.model_copy(update={"start_time": ctx.now // 1000 * 1000})
    if _availability_left_ms(ctx, result) == 0:
        return previous.model_copy(update={"template": template, "available_time": ctx.now // 1000 * 1000})
    return previous


def availability_left_ms(ctx: Context, result: PolicyResult) -> int | None:
    """Milliseconds until a Ready sink counts as available; None if it does, or is not Ready."""
    return _availability_left_ms(ctx, result) or None


def _availability_left_ms(ctx: Context, result: PolicyResult) -> int | None:
    previous = ctx.previous.status.rollout
    if previous is None or previous.available_time or not ctx.pods.has_current_driver:
        return None
    if previous.degraded and is_degraded(ctx, result.reason):
        return max(0, (previous.start_time or 0) + ctx.settings.rollout_pause_ms - ctx.now)
    if result.ready is not ConditionStatus.TRUE:
        return None
    ready = ctx.previous.status.condition("Ready")
    since = ready.last_transition_time if ready is not None and ready.status is ConditionStatus.TRUE else None
    since = max(since or ctx.now, previous.start_time or 0)  # an executor may be replaced while the sink stays Ready
    return max(0, since + ctx.settings.rollout_pause_ms - ctx.now)


def _waits(ctx: Context, result: PolicyResult) -> bool:
    is_pending = ctx.pods.is_rollout_pending or result.waits_for_turn
    return is_pending and not result.writes.delete and result.reason != Reason.RECONCILE_PAUSED


def is_degraded(ctx: Context, reason: str) -> bool:
    """Whether a sink that is not Ready for `reason` copies with some of its executors."""
    return reason in _DEGRADED and ctx.scaling.executors.running > 0


def _was_degraded(ctx: Context) -> bool:
    ready = ctx.previous.status.condition("Ready")
    return ready is not None and is_degraded(ctx, ready.reason)


def _is_as_before(ready: Json, mark: Json, status: Json) -> bool:
    """Whether a sink is Ready, or as degraded as before its restart, by its condition Ready and its mark."""
    is_same = bool(mark.get("degraded")) and ready.get("reason") in _DEGRADED and bool(status.get("replicas"))
    return ready.get("status") == "True" or is_same


def _section(document: Json, name: str) -> Json:
    section = document.get(name)
    return section if isinstance(section, dict) else {}
