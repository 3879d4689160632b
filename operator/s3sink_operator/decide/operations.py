"""Runs one operation in an operation pod: publish or discard open objects, or reset offsets."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator import names
from s3sink_operator.decide import handover, offset_reset
from s3sink_operator.decide.attempt_history import backoff_left_ms
from s3sink_operator.decide.backing_off import backing_off
from s3sink_operator.decide.builders import delete_pod, operation_pod, supporting_objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.failures import pod_failures
from s3sink_operator.names import Component
from s3sink_operator.objects import operation_of
from s3sink_operator.reasons import Reason
from s3sink_operator.types import EventType, Json, ObjectWrites, annotation, is_terminating


def run_operation(ctx: Context, operation: str, *, message: str) -> PolicyResult:
    """The next step of `operation`. The driver terminates first: the operation pod runs alone."""
    base = PolicyResult(reason=Reason.STOPPING, message=message, phase="Stopping", reconciling=True)
    if ctx.pods.driver is not None:
        return replace(base, terminating_attempt=True, writes=ObjectWrites(delete=delete_pod(ctx, ctx.pods.driver)))
    pod, digest = ctx.pods.operation, offset_reset.operation_hash(ctx, operation)
    left_ms = _backoff_left_ms(ctx, operation, digest)
    if pod is None:
        if left_ms is not None:
            return backing_off(ctx, left_ms, base)
        created = operation_pod(ctx, operation, digest)
        return replace(base, writes=ObjectWrites(apply=supporting_objects(ctx), create=[created]))
    deleted = replace(base, writes=ObjectWrites(delete=delete_pod(ctx, pod)))
    is_current = operation_of(pod) == operation and annotation(pod, names.SPEC_HASH_ANNOTATION) == digest
    if is_terminating(pod) or not is_current or ctx.sink.revision is None:
        return deleted
    if pod_failures.succeeded(pod):
        return _succeeded(ctx, deleted, operation, pod)
    if pod_failures.termination_failure(pod) is not None:
        return deleted if left_ms is None else backing_off(ctx, left_ms, base)
    failure = pod_failures.startup_failure(pod, ctx.observed.pod_event)
    return base if failure is None else replace(base, reason=failure.reason, message=failure.message)


def is_all_published(ctx: Context) -> bool:
    """Whether no object can be open: all were published since the last driver ran.

    A sink that never had a driver may have open objects: the ledger of a deleted sink of this name may hold them.
    """
    return ctx.pods.driver is None and ctx.sink.published


def _backoff_left_ms(ctx: Context, operation: str, digest: str) -> int | None:
    """Milliseconds until the next attempt of the operation; None for another operation than the failed one."""
    retry = ctx.history.retry
    if retry is not None and retry.operation_hash not in (None, digest):
        return None
    if handover.is_due(ctx):
        return None
    return backoff_left_ms(retry, Component.OPERATION, ctx.now)


def _succeeded(ctx: Context, result: PolicyResult, operation: str, pod: Json) -> PolicyResult:
    reset = ctx.reset.pending
    if reset is None or operation != offset_reset.operation_of(reset):
        return replace(result, published=True)
    status = offset_reset.completed(ctx, reset, pod)
    message = (
        f"offsets were reset: {status.message}" if status.message else "offsets were reset (no termination message)"
    )
    return replace(
        result,
        reason=Reason.OFFSETS_RESET,
        message=message,
        published=True,
        offset_reset=status,
        event=EventType.NORMAL,
    )
