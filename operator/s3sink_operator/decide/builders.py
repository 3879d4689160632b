"""Builds the manifests and deletions that the policies put into their results. Pure, from the facts of the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from s3sink_operator import names, objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.handover import take_over_from
from s3sink_operator.objects import PodShape
from s3sink_operator.types import Delete, Json, attempt_number, is_controlled, is_terminating, to_ms, uid_of


def driver_pod(ctx: Context) -> Json:
    """The manifest of the next driver pod."""
    return objects.driver_pod(ctx.sink.manifest, ctx.sink.owner_reference, ctx.settings, _pod_shape(ctx))


def operation_pod(ctx: Context, operation: str, digest: str) -> Json:
    """The manifest of a pod for `operation`, sized as a sink in Local mode. `digest`: see `operation_hash`."""
    shape = replace(
        _pod_shape(ctx),
        memory=ctx.sizing.start_size,
        executor_memory=None,
        restarted_for=None,
        spec_hash=digest,
    )
    return objects.operation_pod(ctx.sink.manifest, ctx.sink.owner_reference, ctx.settings, shape, operation)


def _pod_shape(ctx: Context) -> PodShape:
    """The sizes and annotations of the next driver pod."""
    revision = ctx.sink.revision
    assert revision is not None
    return PodShape(
        attempt=ctx.history.next_attempt,
        memory=ctx.sizing.driver_size,
        executor_memory=None if ctx.sink.is_local else ctx.sizing.start_size,
        spec_hash=revision.spec_hash,
        source_hash=ctx.sink.source_hash,
        generation=ctx.sink.generation,
        skip=ctx.sink.skip_annotation,
        restarted_for=ctx.sink.restart_requested,
        take_over_from=take_over_from(ctx),
    )


def supporting_objects(ctx: Context, *, memory: int | None = None, by_defaults: bool = False) -> Sequence[Json]:
    """The manifests of the ConfigMap, ServiceAccount and RoleBinding that differ from the objects in the cluster.

    None while the driver runs with previous settings: it keeps the objects that it was started with. `memory`: the
    desired bytes of a running sink, None for the current ones; then edited settings of the memory are not applied yet.
    `by_defaults`: why they change.
    """
    driver, settings, attempt, size = ctx.pods.driver, ctx.settings, ctx.history.next_attempt, ctx.sizing.start_size
    bounds = None
    if driver is not None:
        if not ctx.pods.is_up_to_date:
            return ()
        settings = replace(settings, image=objects.image_of(driver) or settings.image)
        attempt, size = attempt_number(driver, names.ATTEMPT_LABEL), memory or ctx.memory.current or size
        if memory is None and ctx.memory.allocation is not None:
            bounds, by_defaults = ctx.memory.allocation.bounds, ctx.memory.allocation.by_defaults
    desired = objects.supporting_objects(
        ctx.sink.manifest,
        ctx.sink.owner_reference,
        settings,
        attempt=attempt,
        memory=size,
        executors=ctx.scaling.desired,
        bounds=bounds,
        by_defaults=by_defaults,
    )
    current = (ctx.observed.config_map, ctx.observed.service_account, ctx.observed.role_binding)
    return tuple(each for before, each in zip(current, desired, strict=False) if objects.differs(before, each))


def delete_obsolete(ctx: Context) -> tuple[Delete, ...]:
    """The deletion of the RoleBinding of a sink that changed to Local mode, after its previous driver is gone."""
    found, driver = ctx.observed.role_binding, ctx.pods.driver
    if found is None or ctx.sink.parsed is None or not ctx.sink.is_local or not is_controlled(found, ctx.sink.uid):
        return ()
    if is_terminating(found) or ctx.sink.deletion_ms is not None:
        return ()
    if driver is not None and (ctx.sink.revision is None or not ctx.sink.revision.matches_pod(driver)):
        return ()
    return (Delete(kind="RoleBinding", name=found["metadata"]["name"], uid=uid_of(found)),)


def delete_pod(ctx: Context, pod: Json | None, *, force: bool = False) -> tuple[Delete, ...]:
    """The deletion of an own pod. Empty for a pod that is terminating, until `node_lost_timeout_ms` after its
    deadline: then it is deleted with a grace period of 0."""
    if pod is None:
        return ()
    if is_terminating(pod):
        due = (to_ms(pod["metadata"]["deletionTimestamp"]) or ctx.now) + ctx.settings.node_lost_timeout_ms
        force = force or ctx.now >= due
        if not force or _is_forced(pod):
            return ()
    grace_s = 0 if force else None
    return (Delete(kind="Pod", name=pod["metadata"]["name"], uid=uid_of(pod), grace_s=grace_s),)


def _is_forced(pod: Json) -> bool:
    """Whether the pod was already deleted by force and only a finalizer holds it."""
    metadata = pod["metadata"]
    return metadata.get("deletionGracePeriodSeconds") == 0 and bool(metadata.get("finalizers"))
