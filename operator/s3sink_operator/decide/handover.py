"""The hand-over of what a previous owner has in the bucket, after its driver failed with OwnershipConflict.

The job names the owner. If that is an S3Sink of this cluster which no longer exists and has no pods, the next driver
takes over from it, at once. For every other owner the user decides, by the annotation `s3sink.io/take-over` with the
identity of the owner. The driver takes over from the named owner alone, and fences its ledger first.
"""

from __future__ import annotations

from s3sink_operator import names
from s3sink_operator.decide.context import Context
from s3sink_operator.types import OwnerState, annotation
from sink_job.api.errors import OwnershipConflict
from sink_job.api.owner import OwnerIdentity

OWNER_POLL_MS = 15_000
"""Poll interval of an owner that still exists."""
_JOB_ADVICE = " If that sink was deleted for good"


def conflicting_owner(ctx: Context) -> str | None:
    """The identity of the owner that the last failure names."""
    retry = ctx.history.retry
    return retry.owner if retry is not None and retry.reason == OwnershipConflict.reason else None


def take_over_from(ctx: Context) -> str | None:
    """The owner that the next driver takes over from."""
    owner, requested = conflicting_owner(ctx), annotation(ctx.observed.sink, names.TAKE_OVER_ANNOTATION)
    if requested is not None and is_identity(requested) and owner in (None, requested):
        return requested
    return owner if owner is not None and owner_state(ctx) is OwnerState.GONE else None


def is_due(ctx: Context) -> bool:
    """Whether a hand-over was not tried yet: the next driver does not wait for the back-off."""
    owner, retry = conflicting_owner(ctx), ctx.history.retry
    return owner is not None and retry is not None and take_over_from(ctx) == owner != retry.take_over


def owner_state(ctx: Context) -> OwnerState | None:
    """The state of the owner that the last failure names; None without one."""
    owner, observed = conflicting_owner(ctx), ctx.observed.owner
    if owner is None:
        return None
    return observed.state if observed is not None and observed.identity == owner else OwnerState.UNKNOWN


def failure_message(ctx: Context, message: str) -> str:
    """The message of an OwnershipConflict, with the steps to resolve it in a cluster."""
    owner, state = conflicting_owner(ctx), owner_state(ctx)
    if owner is None:
        return message
    conflict = message.partition(_JOB_ADVICE)[0].rstrip(".")
    identity = OwnerIdentity.parse(owner) if is_identity(owner) else None
    if state is OwnerState.EXISTS and identity is not None:
        name = f"{identity.namespace}/{identity.name}"
        return f"{conflict}. Or delete S3Sink {name}: this sink takes over when its pods have ended"
    if state is OwnerState.GONE:
        return conflict
    return (
        f"{conflict}. If that sink is deleted and has no running driver: kubectl annotate s3sink {ctx.sink.name} "
        f"{names.TAKE_OVER_ANNOTATION}={owner}"
    )


def is_identity(text: str) -> bool:
    """Whether the text is the identity of an owner."""
    try:
        OwnerIdentity.parse(text)
    except ValueError:
        return False
    return True
