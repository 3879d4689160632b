"""The result while a failed driver or operation waits for its next attempt."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator.decide import handover
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.names import RESTART_ANNOTATION
from s3sink_operator.status.status_model import Retry
from s3sink_operator.types import EventType, FailureCategory, OwnerState, to_timestamp


def backing_off(ctx: Context, left_ms: int, base: PolicyResult | None = None) -> PolicyResult:
    """The result for a back-off of another `left_ms`, with the actions of `base`."""
    retry = ctx.history.retry or Retry()
    message = handover.failure_message(ctx, retry.message)
    if handover.owner_state(ctx) is OwnerState.EXISTS:
        left_ms = min(left_ms, handover.OWNER_POLL_MS)
    by_user = retry.category is FailureCategory.USER
    times = "once" if retry.failures <= 1 else f"{retry.failures} times in a row"
    due = "" if retry.next_attempt_time is None else f"; next attempt at {to_timestamp(retry.next_attempt_time)}"
    command = f"kubectl s3sink restart {ctx.sink.name}"
    hint = f". To retry now: {command}, or another text in the annotation {RESTART_ANNOTATION}"
    return replace(
        base or PolicyResult(reason="", message="", phase=""),
        reason=retry.reason,
        message=f"{message.rstrip('.')}. Failed {times}{due}{hint}",
        phase="Failed",
        reconciling=not by_user,
        stalled=by_user,
        event=EventType.WARNING,
        requeue_after_ms=left_ms,
    )
