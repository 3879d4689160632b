"""The result of a policy: the Ready condition with its reason and message, and the actions that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from s3sink_operator.memory_sizing import SizingPlan
from s3sink_operator.status_model import ConditionStatus, OffsetResetStatus
from s3sink_operator.types import Delete, EventType, Json, Replacement, Resize


@dataclass(frozen=True, kw_only=True)
class PolicyResult:
    """The result of one policy.

    `ready`: status of the condition Ready. `phase`: `progress.phase` of the status. `keep_status`: the status is not
    written. `terminating_attempt`: the policy terminates the current attempt for `reason`. `starts_rollout`: it does so
    for the rollout of new operator defaults. `waits_for_turn`: a change of the memory waits for that. `published`:
    whether all open objects are published now; None leaves it unchanged. `replacement`: the driver that the policy
    needs in place of the running one, which is only deleted if the API server accepts it. `requeue_after_ms`: the next
    pass at the latest.
    """

    ready: ConditionStatus = ConditionStatus.FALSE
    reason: str
    message: str
    phase: str
    reconciling: bool = False
    stalled: bool = False
    keep_status: bool = False
    terminating_attempt: bool = False
    starts_rollout: bool = False
    waits_for_turn: bool = False
    apply: Sequence[Json] = ()
    create: Sequence[Json] = ()
    delete: Sequence[Delete] = ()
    resize: Sequence[Resize] = ()
    finalizers: Sequence[str] | None = None
    event: EventType | None = None
    node_lost_time: int | None = None
    sizing: SizingPlan | None = None
    offset_reset: OffsetResetStatus | None = None
    published: bool | None = None
    replacement: Replacement | None = None
    requeue_after_ms: int | None = None
