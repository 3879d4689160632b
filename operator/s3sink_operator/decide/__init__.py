"""What to do about one sink: pure, from what was seen and the time into what to write.

A chain of small policies; the first that has something to say says all of it, conditions and actions alike. Nothing is
remembered but in the status: after any write, also one that was lost, the next look goes on from what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from s3sink_operator import names, objects, pod_failures, status
from s3sink_operator.decide import driver_policies, lifecycle_policies, memory_status
from s3sink_operator.decide.attempt_history import Story
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.executors import executors_of
from s3sink_operator.decide.policy_result import Verdict
from s3sink_operator.names import Component
from s3sink_operator.status import Condition
from s3sink_operator.types import FINALIZERS, Decision, Event, EventType, Json, Observed, Settings, is_ending, to_stamp
from sink_job.api.quantities import format_size
from sink_job.api.report import HangingTransactionReport, RunState

__all__ = ["decide"]

Policy = Callable[[Context], Verdict | None]

STUCK_TOLD = 3
"""Topic-partitions with an open transaction that are named."""

POLICIES: tuple[Policy, ...] = (
    lifecycle_policies.held,
    lifecycle_policies.deleted,
    lifecycle_policies.invalid,
    lifecycle_policies.colliding,
    lifecycle_policies.foreign,
    driver_policies.lost,
    lifecycle_policies.paused,
    lifecycle_policies.stopped,
    driver_policies.absent,
    driver_policies.ending,
    driver_policies.ended,
    driver_policies.edited,
    driver_policies.not_starting,
    driver_policies.sized,
    driver_policies.watched,
)


def decide(observed: Observed, settings: Settings, now: int) -> Decision:
    """What to do about the sink now, in milliseconds since the epoch. Done twice, it changes nothing."""
    ctx = Context(observed, settings, now)
    verdict = next(said for policy in POLICIES if (said := policy(ctx)) is not None)
    if verdict.silent:
        return Decision(wake_ms=verdict.wake_ms)
    written, wait = status.to_write(ctx.old, _status(ctx, verdict), now=now, pause_ms=settings.progress_ms)
    finalizers = verdict.finalizers
    if finalizers is None and "deletionTimestamp" not in ctx.metadata and verdict.reason != "ReconcilePaused":
        finalizers = lifecycle_policies.finalizers(ctx)
    made = Decision(
        apply=tuple(verdict.apply),
        create=tuple(verdict.create),
        delete=tuple(verdict.delete),
        resize=tuple(verdict.resize),
        finalizers=finalizers,
        status=written,
        events=_events(ctx, verdict),
    )
    made, left = _without_refused(ctx, made)
    wakes = [ms for ms in (wait, verdict.wake_ms, *left) if ms is not None]
    return replace(made, wake_ms=min(wakes, default=None))


def _without_refused(ctx: Context, made: Decision) -> tuple[Decision, list[int]]:
    """The decision without what the API server has just refused, and in how many milliseconds that is tried again."""
    if not ctx.seen.refusals:
        return made, []
    of_sink, of_finalizers = ctx.refused("S3Sink", ctx.name), ctx.refused(FINALIZERS, ctx.name)
    applies = [(each, ctx.refused(each["kind"], each["metadata"]["name"])) for each in made.apply]
    deletes = [(each, ctx.refused(each.kind, each.name)) for each in made.delete]
    left = [
        ms for ms in (of_sink, of_finalizers, *(ms for _, ms in applies), *(ms for _, ms in deletes)) if ms is not None
    ]
    kept = replace(
        made,
        apply=tuple(each for each, ms in applies if ms is None),
        delete=tuple(each for each, ms in deletes if ms is None),
    )
    if of_sink is not None:
        kept = replace(kept, status=None, events=())
        if ctx.published:
            kept = replace(kept, create=())  # a driver may open something, which the status could not say
    if of_finalizers is not None:
        kept = replace(kept, finalizers=None)
    return kept, left


def _status(ctx: Context, verdict: Verdict) -> Json:
    story = _told(ctx, verdict)
    made = {
        "observedGeneration": ctx.generation,
        "conditions": _conditions(ctx, verdict, story),
        "state": _state(ctx, verdict),
        "connector": _connector(ctx, verdict),
        "memory": _memory(ctx, verdict),
        "attempts": status.attempts(story.attempts),
        "retry": story.retry,
        "offsets": verdict.offsets or ctx.old.get("offsets"),
        "replicas": _replicas(ctx),
        "selector": names.selector(ctx.name, Component.EXECUTOR),
    }
    return {name: value for name, value in made.items() if value not in (None, [], {})}


def _told(ctx: Context, verdict: Verdict) -> Story:
    """The story with the end that this verdict brings about."""
    driver, story = ctx.driver, ctx.story
    if not verdict.ending or driver is None:
        return story
    known = bool(story.attempts) and "ended" in story.attempts[0]
    pending = (driver.get("status") or {}).get("phase") in (None, "Pending")
    if known or pending or is_ending(driver):
        return story
    told = story.ended(driver, verdict.reason, verdict.message, ctx.now)
    before: Json = (ctx.old.get("attempts") or ({},))[0]
    same = all(before.get(name) == told.attempts[0].get(name) for name in ("number", "reason", "message"))
    return replace(told, attempts=(before, *told.attempts[1:])) if same else told


def _conditions(ctx: Context, verdict: Verdict, story: Story) -> list[Json]:
    def flag(kind: str, on: bool) -> Condition:
        reason, message = (verdict.reason, verdict.message) if on else ("AsExpected", "")
        return Condition(type=kind, status="True" if on else "False", reason=reason, message=message)

    wanted_ones = [
        Condition(type="Ready", status=verdict.ready, reason=verdict.reason, message=verdict.message),
        flag("Reconciling", verdict.reconciling),
        flag("Stalled", verdict.stalled),
        *_of_data(ctx, story),
        *verdict.conditions,
        *lifecycle_policies.notes(ctx),
    ]
    old = ctx.old.get("conditions") or ()
    return status.conditions(old, wanted_ones, generation=ctx.generation, now=ctx.now)


def _of_data(ctx: Context, story: Story) -> list[Condition]:
    """What went wrong with records or objects, as long as it is the last that is known."""
    retry, report = story.retry or {}, ctx.report
    found = []
    if retry.get("reason") in ("DataLoss", "ObjectConflict", "TopicRecreated"):
        kind = str(retry["reason"])
        found.append(Condition(type=kind, status="True", reason=kind, message=str(retry.get("message"))))
    elif report is not None and report.totals.lost:
        message = f"Kafka no longer held {report.totals.lost} offsets: they are given up (spec.onDataLoss: Continue)"
        found.append(Condition(type="DataLoss", status="True", reason="OffsetsLost", message=message))
    if report is not None and report.stuck:
        message = _stuck(report.stuck)
        found.append(
            Condition(type="HangingTransaction", status="True", reason="TransactionStaysOpen", message=message)
        )
    return found


def _stuck(found: Sequence[HangingTransactionReport]) -> str:
    """Where a transaction stays open, and the way out; the same words as long as it does."""
    first = found[0]
    more = "".join(f"; {each.topic}-{each.partition} from offset {each.offset} on" for each in found[1:STUCK_TOLD])
    rest = f"; and {len(found) - STUCK_TOLD} more" if len(found) > STUCK_TOLD else ""
    return (
        f"a transaction has been open in {first.topic}-{first.partition} from offset {first.offset} on since "
        f"{to_stamp(first.since)} or longer: nothing behind it is copied before it ends{more}{rest}. If its producer "
        f"is gone, abort it: kafka-transactions.sh --bootstrap-server BROKER abort --topic {first.topic} --partition "
        f"{first.partition} --start-offset {first.offset}"
    )


def _state(ctx: Context, verdict: Verdict) -> Json:
    state, by = ctx.wanted
    made: Json = {"wanted": state.value, "by": by}
    published = verdict.published
    if published is None:
        published = ctx.published and ctx.driver is None and not _drives(verdict)
    if not published:
        return made
    return made | {"published": True} | ({"publishedTo": ctx.store} if ctx.store else {})


def _drives(verdict: Verdict) -> bool:
    """Whether the verdict makes a driver, which may open something."""
    component = Component.DRIVER.value
    return any(pod["metadata"]["labels"].get(names.COMPONENT) == component for pod in verdict.create)


def _connector(ctx: Context, verdict: Verdict) -> Json:
    kept = {name: value for name, value in (ctx.old.get("connector") or {}).items() if name != "nodeLostTime"}
    report = ctx.report
    if report is None or report.state is RunState.STARTING:  # which knows less than the status, as long as that holds
        edited = ctx.old.get("observedGeneration") != ctx.generation
        made = {name: value for name, value in kept.items() if not (edited and name in ("topics", "worst", "lag"))}
    else:
        made = status.connector(report)
    if verdict.published and ctx.task is not None and (ending := pod_failures.ending_of(ctx.task)) is not None:
        made = status.connector_after(made, ending)
    return made | {"phase": verdict.phase} | dict(verdict.connector)


def _memory(ctx: Context, verdict: Verdict) -> Json | None:
    old = ctx.old.get("memory") or {}
    if ctx.sink is None:
        return old or None
    current = (objects.memory_of(ctx.driver) if ctx.driver is not None else None) or ctx.start_size
    if verdict.plan is not None:
        return memory_status.section(old, verdict.plan, ctx.inputs, current=current, now=ctx.now)
    kept = {name: old[name] for name in ("wanted", "inputs", "lastChange", "nextAllowed") if name in old}
    return kept | {"current": format_size(current)} | memory_status.state_section(ctx.story.state)


def _replicas(ctx: Context) -> int:
    """Executors that run; the pod that runs everything counts as all of them."""
    if ctx.sink is not None and ctx.is_local:
        return ctx.sink.spec.executor.instances if ctx.report is not None else 0
    return executors_of(ctx).running if ctx.sink is not None else 0


def _events(ctx: Context, verdict: Verdict) -> tuple[Event, ...]:
    """One where the reason changes: people look for what happened, not for how often it was looked at."""
    made = []
    if verdict.event is not None and status.reason_of(ctx.old, "Ready") != status.word(verdict.reason):
        made.append(Event(type=verdict.event, reason=verdict.reason, message=verdict.message))
    if verdict.resize and verdict.plan is not None:
        made.append(Event(type=EventType.NORMAL, reason="MemoryResized", message=str(verdict.plan.why)))
    return tuple(made)
