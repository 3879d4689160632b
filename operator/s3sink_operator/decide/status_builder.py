"""Builds the status of a sink from the facts, the attempt history and the result of the policy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from s3sink_operator import names, objects, pod_failures, status
from s3sink_operator.decide import lifecycle_policies, memory_status
from s3sink_operator.decide.attempt_history import AttemptHistory
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.executors import executor_state
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.names import Component
from s3sink_operator.status import Condition
from s3sink_operator.types import Json, is_terminating, to_timestamp
from sink_job.api.quantities import format_size
from sink_job.api.report import RunState, StuckReport

MAX_REPORTED_TRANSACTIONS = 3
"""Topic-partitions with a hanging transaction that the condition names."""


def build_status(ctx: Context, verdict: PolicyResult) -> Json:
    story = _history_with_end(ctx, verdict)
    made = {
        "observedGeneration": ctx.generation,
        "conditions": _conditions(ctx, verdict, story),
        "state": _state(ctx, verdict),
        "connector": _connector(ctx, verdict),
        "memory": _memory(ctx, verdict),
        "attempts": status.newest_attempts(story.attempts),
        "retry": story.retry,
        "offsets": verdict.offsets or ctx.previous_status.get("offsets"),
        "replicas": _replicas(ctx),
        "selector": names.selector(ctx.name, Component.EXECUTOR),
    }
    return {name: value for name, value in made.items() if value not in (None, [], {})}


def _history_with_end(ctx: Context, verdict: PolicyResult) -> AttemptHistory:
    """The story with the end that this verdict brings about."""
    driver, story = ctx.driver, ctx.history
    if not verdict.terminating_attempt or driver is None:
        return story
    known = bool(story.attempts) and "ended" in story.attempts[0]
    pending = (driver.get("status") or {}).get("phase") in (None, "Pending")
    if known or pending or is_terminating(driver):
        return story
    told = story.with_end(driver, verdict.reason, verdict.message, ctx.now)
    before: Json = (ctx.previous_status.get("attempts") or ({},))[0]
    same = all(before.get(name) == told.attempts[0].get(name) for name in ("number", "reason", "message"))
    return replace(told, attempts=(before, *told.attempts[1:])) if same else told


def _conditions(ctx: Context, verdict: PolicyResult, story: AttemptHistory) -> list[Json]:
    def flag(kind: str, on: bool) -> Condition:
        reason, message = (verdict.reason, verdict.message) if on else ("AsExpected", "")
        return Condition(type=kind, status="True" if on else "False", reason=reason, message=message)

    wanted_ones = [
        Condition(type="Ready", status=verdict.ready, reason=verdict.reason, message=verdict.message),
        flag("Reconciling", verdict.reconciling),
        flag("Stalled", verdict.stalled),
        *_of_data(ctx, story),
        *verdict.conditions,
        *lifecycle_policies.additional_conditions(ctx),
    ]
    old = ctx.previous_status.get("conditions") or ()
    return status.conditions(old, wanted_ones, generation=ctx.generation, now=ctx.now)


def _of_data(ctx: Context, story: AttemptHistory) -> list[Condition]:
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
        message = _hanging_message(report.stuck)
        found.append(Condition(type="StuckTransaction", status="True", reason="TransactionStaysOpen", message=message))
    return found


def _hanging_message(found: Sequence[StuckReport]) -> str:
    """Names the hanging transactions and how to abort the first one. Constant for as long as they are open."""
    first, shown = found[0], found[1:MAX_REPORTED_TRANSACTIONS]
    more = "".join(f"; {each.topic}-{each.partition} from offset {each.offset}" for each in shown)
    rest = f"; and {len(found) - MAX_REPORTED_TRANSACTIONS} more" if len(found) > MAX_REPORTED_TRANSACTIONS else ""
    return (
        f"hanging transaction in {first.topic}-{first.partition} from offset {first.offset} since at least "
        f"{to_timestamp(first.since)}: later records are not copied until it ends{more}{rest}. If its producer is "
        f"gone, abort it: kafka-transactions.sh --bootstrap-server BROKER abort --topic {first.topic} --partition "
        f"{first.partition} --start-offset {first.offset}"
    )


def _state(ctx: Context, verdict: PolicyResult) -> Json:
    state, by = ctx.desired_state
    made: Json = {"wanted": state.value, "by": by}
    published = verdict.published
    if published is None:
        published = ctx.published and ctx.driver is None and not _drives(verdict)
    if not published:
        return made
    return made | {"published": True} | ({"publishedTo": ctx.s3_endpoint} if ctx.s3_endpoint else {})


def _drives(verdict: PolicyResult) -> bool:
    """Whether the verdict makes a driver, which may open something."""
    component = Component.DRIVER.value
    return any(pod["metadata"]["labels"].get(names.COMPONENT_LABEL) == component for pod in verdict.create)


def _connector(ctx: Context, verdict: PolicyResult) -> Json:
    kept = {
        name: value for name, value in (ctx.previous_status.get("connector") or {}).items() if name != "nodeLostTime"
    }
    report = ctx.report
    if report is None or report.state is RunState.STARTING:  # which knows less than the status, as long as that holds
        edited = ctx.previous_status.get("observedGeneration") != ctx.generation
        made = {name: value for name, value in kept.items() if not (edited and name in ("topics", "worst", "lag"))}
    else:
        made = status.progress(report)
    if (
        verdict.published
        and ctx.operation is not None
        and (ending := pod_failures.final_report(ctx.operation)) is not None
    ):
        made = status.progress_after_publish(made, ending)
    return made | {"phase": verdict.phase} | dict(verdict.connector)


def _memory(ctx: Context, verdict: PolicyResult) -> Json | None:
    old = ctx.previous_status.get("memory") or {}
    if ctx.sink is None:
        return old or None
    current = (objects.sized_memory(ctx.driver) if ctx.driver is not None else None) or ctx.start_size
    if verdict.sizing is not None:
        return memory_status.memory_section(old, verdict.sizing, ctx.inputs, current=current, now=ctx.now)
    kept = {name: old[name] for name in ("wanted", "inputs", "lastChange", "nextAllowed") if name in old}
    return kept | {"current": format_size(current)} | memory_status.sizing_section(ctx.history.sizing)


def _replicas(ctx: Context) -> int:
    """Executors that run; the pod that runs everything counts as all of them."""
    if ctx.sink is not None and ctx.is_local:
        return ctx.sink.spec.executor.instances if ctx.report is not None else 0
    return executor_state(ctx).running if ctx.sink is not None else 0
