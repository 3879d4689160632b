"""Composes all conditions of the status, from the result of the policy and from the facts beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from s3sink_operator import names
from s3sink_operator.conflicts import overlaps
from s3sink_operator.decide import handover, offset_reset, rollout_status
from s3sink_operator.decide.attempt_history import AttemptHistory
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.failures import pod_failures
from s3sink_operator.reasons import Reason
from s3sink_operator.sizing.memory_sizing import MAX_DRIVER
from s3sink_operator.status.status_model import ConditionStatus
from s3sink_operator.status.status_update import Condition
from s3sink_operator.types import REPLACEMENT_KIND, Rejection, annotation, is_terminating, to_timestamp
from sink_job.api.enums import DesiredState
from sink_job.api.report import HangingTransactionReport, SkipsReport, TableReport
from sink_job.api.units.quantities import format_size

WRITE_REJECTED: Final = "WriteRejected"
TRUE: Final = ("true", "True", "TRUE")
"""The values of a boolean annotation that mean true."""
MAX_REPORTED_TRANSACTIONS: Final = 3
"""Topic-partitions with a hanging transaction that the condition names."""

MAX_REPORTED_SKIPS: Final = 3
"""Records to skip without effect that the condition names."""

TABLE_NOT_REGISTERED: Final = "TableNotRegistered"
TOPIC_WAITS_FOR_TABLE: Final = "TopicWaitsForTable"
TABLE_CONDITIONS: Final = (
    TABLE_NOT_REGISTERED,
    "TableReplaced",
    "TableRolledBack",
    "TablePositionMissing",
    "TablePositionLower",
    "TableIncompatible",
    TOPIC_WAITS_FOR_TABLE,
)
"""The conditions of tables, by the reason of the error. Other reasons, such as TransientError, are those of the
condition TableNotRegistered."""

_DATA_REASONS: Final = ("DataLoss", "ObjectConflict", "TopicRecreated")
_MIN_CAPPED_MS: Final = 10 * 60_000
"""MemoryCapped stays true for at least this time."""
_MAX_SHOWN: Final = 40
_ANNOTATION_VALUES: Final = (
    (names.STATE_ANNOTATION, tuple(each.value for each in DesiredState), "spec.state applies"),
    (names.RECONCILE_PAUSED_ANNOTATION, (*TRUE, "false", "False", "FALSE"), "the operator is not paused"),
)


def compose(ctx: Context, result: PolicyResult, history: AttemptHistory) -> list[Condition]:
    """All conditions: Ready, Reconciling and Stalled always, every other one only while it applies."""
    return [
        Condition(type="Ready", status=result.ready, reason=result.reason, message=result.message),
        _kstatus("Reconciling", result.reconciling, result),
        _kstatus("Stalled", result.stalled, result),
        *_data(ctx, history),
        *_tables(ctx),
        *_spec(ctx, result),
        *_memory(ctx, result),
        *_offset_reset(ctx),
        *_annotations(ctx),
        *_possible_conflict(ctx),
        *filter(None, [write_rejected(ctx, result)]),
        *rollout_status.compose(ctx, result),
    ]


def _kstatus(kind: str, is_true: bool, result: PolicyResult) -> Condition:
    """A condition as kstatus and Argo CD read it."""
    if is_true:
        return Condition(type=kind, status=ConditionStatus.TRUE, reason=result.reason, message=result.message)
    return Condition(type=kind, status=ConditionStatus.FALSE, reason=Reason.AS_EXPECTED, message="")


def _true(kind: str, message: str, reason: str = "") -> Condition:
    return Condition(type=kind, status=ConditionStatus.TRUE, reason=reason or kind, message=message)


def _data(ctx: Context, history: AttemptHistory) -> Iterator[Condition]:
    """Data loss, a conflicting object, a re-created topic, and hanging transactions."""
    retry, report = history.retry, ctx.pods.report
    if retry is not None and retry.reason in _DATA_REASONS:
        yield _true(retry.reason, retry.message)
    elif report is not None and report.totals.lost:
        message = f"Kafka no longer held {report.totals.lost} offsets; they were skipped (spec.onDataLoss: Continue)"
        yield _true("DataLoss", message, Reason.OFFSETS_LOST)
    if report is not None and report.hanging_transactions:
        yield _true("HangingTransaction", _hanging_message(report.hanging_transactions))
    if report is not None and report.skips is not None and report.skips.without_effect:
        yield _true("SkipWithoutEffect", _skips_message(report.skips))


def _tables(ctx: Context) -> Iterator[Condition]:
    """Why nothing is added to tables: a condition for each kind, with the tables that it concerns."""
    report = ctx.pods.report
    found: dict[str, list[TableReport]] = {}
    for each in () if report is None else report.tables:
        if each.reason is not None:
            found.setdefault(each.reason if each.reason in TABLE_CONDITIONS else TABLE_NOT_REGISTERED, []).append(each)
    for kind, tables in found.items():
        first = tables[0]
        others = f"; the same kind of error of {len(tables) - 1} more tables" if len(tables) > 1 else ""
        rest = "" if kind == TOPIC_WAITS_FOR_TABLE else ". The sink continues to copy"
        message = f"table {first.table}: {first.message}{others}{rest}"
        yield _true(kind, message, first.reason or "")


def _skips_message(skips: SkipsReport) -> str:
    """Names the records of spec.errors.skip that change nothing."""
    shown = skips.records_without_effect[:MAX_REPORTED_SKIPS]
    named = "; ".join(f"{each.topic}-{each.partition}@{each.offset}: {each.reason}" for each in shown)
    more = skips.without_effect - len(shown)
    return (
        f"{named}{f'; and {more} more' if more else ''}. Remove them from spec.errors.skip or {names.SKIP_ANNOTATION}"
    )


def _hanging_message(found: Sequence[HangingTransactionReport]) -> str:
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


def _spec(ctx: Context, result: PolicyResult) -> Iterator[Condition]:
    if result.reason in (Reason.INVALID_SPEC, Reason.SINK_RESTRICTED):
        yield _true(result.reason, ctx.sink.spec_error)


def _memory(ctx: Context, result: PolicyResult) -> Iterator[Condition]:
    """MemoryCapped is true for a minimum time and names no size: the bytes that a sink holds change in each pass."""
    if result.sizing is not None and ctx.sink.memory_bounds is not None:
        previous = ctx.previous.status.condition("MemoryCapped")
        since = previous.last_transition_time if previous else None
        if result.sizing.capped or (since is not None and 0 <= ctx.now - since < _MIN_CAPPED_MS):
            yield _true(
                "MemoryCapped",
                f"the recommended memory (status.memory.recommended) exceeds spec.executor.memory.max, "
                f"{format_size(ctx.sink.memory_bounds.max)}: objects spill to disk, which is slower. Increase "
                "spec.executor.memory.max or decrease spec.executor.cores",
            )
    if ctx.sizing.is_driver_capped:
        yield _true(
            "DriverMemoryCapped",
            f"the driver was OOM-killed repeatedly; automatic sizing stops at {format_size(MAX_DRIVER)}. Set "
            "spec.driver.memory or copy fewer topic-partitions",
        )


def _offset_reset(ctx: Context) -> Iterator[Condition]:
    blocked = offset_reset.blocked_by(ctx)
    if blocked is not None:
        reason, message = blocked
        yield Condition(type="OffsetsReset", status=ConditionStatus.FALSE, reason=reason, message=message)


def _annotations(ctx: Context) -> Iterator[Condition]:
    """Annotations with a value that the operator ignores."""
    found = []
    for name, values, instead in _ANNOTATION_VALUES:
        value = annotation(ctx.observed.sink, name)
        if value is not None and value not in values:
            shown = value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…"
            found.append(f"the annotation {name} is {shown!r}, not one of {', '.join(values)}: {instead}")
    owner = annotation(ctx.observed.sink, names.TAKE_OVER_ANNOTATION)
    if owner is not None and not handover.is_identity(owner):
        found.append(f"the annotation {names.TAKE_OVER_ANNOTATION} is not cluster/namespace/name/sinkId: it is ignored")
    if ctx.observed.skip_error:
        found.append(f"the annotation {names.SKIP_ANNOTATION} is ignored: {ctx.observed.skip_error}")
    if found:
        yield _true("InvalidAnnotation", "; ".join(found))


def _possible_conflict(ctx: Context) -> Iterator[Condition]:
    first_owner, foreign_overlap = ctx.conflicts.first_owner, ctx.conflicts.foreign_overlap
    if first_owner is not None and not first_owner.certain:
        message = overlaps.conflict_message(ctx.conflicts.resources, first_owner)
        yield _true("PossibleConflict", message, Reason.PATTERNS_MAY_OVERLAP)
    if foreign_overlap is not None:
        message = overlaps.foreign_overlap_message(ctx.conflicts.resources, foreign_overlap)
        yield _true("Conflict", message, Reason.OTHER_NAMESPACE)
    if ctx.sink.parsed is not None and not ctx.observed.compares_topics:
        message = overlaps.too_many_topics_message(ctx.conflicts.resources)
        yield _true("ConflictUnknown", message, Reason.TOO_MANY_TOPICS)


def write_rejected(ctx: Context, result: PolicyResult) -> Condition | None:
    """The last write that the API server rejected, unless it is no longer needed."""
    needed = [
        each
        for each in ctx.observed.rejections
        if (each.kind, each.name) not in _unneeded_pods(ctx) and not _is_of_removed_executor(ctx, each)
        if each.kind != REPLACEMENT_KIND or result.writes.replacement is not None
    ]
    if not needed:
        return None
    last = max(needed, key=lambda each: (each.at_ms, each.kind, each.name))
    failure = pod_failures.api_rejection(last)
    return _true(WRITE_REJECTED, failure.message, failure.reason)


def _is_of_removed_executor(ctx: Context, rejection: Rejection) -> bool:
    """Whether a resize of an executor pod was rejected that no longer exists."""
    own = (names.driver_pod_name(ctx.sink.name), names.operation_pod_name(ctx.sink.name))
    if rejection.kind not in ("Pod", "pods/resize") or rejection.name in own:
        return False
    return rejection.name not in {pod["metadata"]["name"] for pod in ctx.observed.executors}


def _unneeded_pods(ctx: Context) -> list[tuple[str, str]]:
    """Kind and name of the pods that the desired state does not have."""
    state, terminating = ctx.sink.desired_state[0], is_terminating(ctx.observed.sink)
    needs_driver = state is DesiredState.RUNNING and not terminating
    needs_operation = state is DesiredState.STOPPED or terminating
    return [
        *([] if needs_driver else [("Pod", names.driver_pod_name(ctx.sink.name))]),
        *([] if needs_operation else [("Pod", names.operation_pod_name(ctx.sink.name))]),
    ]
