"""The result of a policy: the Ready condition with its reason and message, and the actions that belong to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from s3sink_operator.sizing.memory_sizing import SizingPlan
from s3sink_operator.status.status_model import ConditionStatus, OffsetResetStatus
from s3sink_operator.types import NO_WRITES, EventType, ObjectWrites


@dataclass(frozen=True, kw_only=True)
class PolicyResult:
    """The result of one policy. `writes` become those of the decision.

    `ready`: status of the condition Ready. `phase`: `progress.phase` of the status. `keep_status`: the status is not
    written. `terminating_attempt`: the policy terminates the current attempt for `reason`. `waits_for_turn`: a change
    of the memory waits for the rollout of new operator defaults. `published`: whether all open objects are published
    now; None leaves it unchanged. `requeue_after_ms`: the next pass at the latest.
    """

    ready: ConditionStatus = ConditionStatus.FALSE
    reason: str
    message: str
    phase: str
    reconciling: bool = False
    stalled: bool = False
    keep_status: bool = False
    terminating_attempt: bool = False
    waits_for_turn: bool = False
    writes: ObjectWrites = NO_WRITES
    event: EventType | None = None
    node_lost_time: int | None = None
    sizing: SizingPlan | None = None
    offset_reset: OffsetResetStatus | None = None
    published: bool | None = None
    requeue_after_ms: int | None = None

    def starting_rollout(self) -> PolicyResult:
        """This result, which restarts the driver for the rollout of new operator defaults."""
        return replace(self, writes=replace(self.writes, starts_rollout=True))
