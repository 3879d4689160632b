"""Builds the manifests and deletions that the policies put into their results. Pure, from the facts of the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from s3sink_operator import names, objects
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.handover import take_over_from
from s3sink_operator.types import Delete, Json, attempt_number, is_controlled, is_terminating, to_ms, uid_of


def driver_pod(ctx: Context) -> Json:
    """The manifest of the next driver pod."""
    shape = replace(ctx.pod_shape(), take_over_from=take_over_from(ctx))
    return objects.driver_pod(ctx.parsed_sink, ctx.owner_reference, ctx.settings, shape)


def operation_pod(ctx: Context, operation: str, digest: str) -> Json:
    """The manifest of a pod for `operation`, sized as a sink in Local mode. `digest`: see `operation_hash`."""
    shape = replace(
        ctx.pod_shape(),
        memory=ctx.start_size,
        executor_memory=None,
        restarted_for=None,
        spec_hash=digest,
        take_over_from=take_over_from(ctx),
    )
    return objects.operation_pod(ctx.parsed_sink, ctx.owner_reference, ctx.settings, shape, operation)


def supporting_objects(ctx: Context, *, memory: int | None = None, by_defaults: bool = False) -> Sequence[Json]:
    """The manifests of the ConfigMap, ServiceAccount and RoleBinding that differ from the objects in the cluster.

    None while the driver runs with previous settings: it keeps the objects that it was started with. `memory`: the
    desired bytes of a running sink, None for the current ones; then edited settings of the memory are not applied yet.
    `by_defaults`: why they change.
    """
    driver, settings, attempt, size = ctx.driver, ctx.settings, ctx.history.next_attempt, ctx.start_size
    bounds = None
    if driver is not None:
        if not ctx.is_up_to_date:
            return ()
        settings = replace(settings, image=objects.image_of(driver) or settings.image)
        attempt, size = attempt_number(driver, names.ATTEMPT_LABEL), memory or ctx.current_memory or size
        if memory is None and ctx.allocation is not None:
            bounds, by_defaults = ctx.allocation.bounds, ctx.allocation.by_defaults
    desired = objects.supporting_objects(
        ctx.parsed_sink,
        ctx.owner_reference,
        settings,
        attempt=attempt,
        memory=size,
        executors=ctx.desired_executors,
        bounds=bounds,
        by_defaults=by_defaults,
    )
    current = (ctx.observed.config_map, ctx.observed.service_account, ctx.observed.role_binding)
    return tuple(each for before, each in zip(current, desired, strict=False) if objects.differs(before, each))


def delete_obsolete(ctx: Context) -> tuple[Delete, ...]:
    """The deletion of the RoleBinding of a sink that changed to Local mode, after its previous driver is gone."""
    found, driver = ctx.observed.role_binding, ctx.driver
    if found is None or ctx.sink is None or not ctx.is_local or not is_controlled(found, ctx.uid):
        return ()
    if is_terminating(found) or ctx.deletion_ms is not None:
        return ()
    if driver is not None and (ctx.revision is None or not ctx.revision.matches_pod(driver)):
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
