"""What a policy says: conditions with reason and sentence, and the actions that follow from the same thought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from s3sink_operator.memory_sizing import SizingPlan
from s3sink_operator.status import Condition
from s3sink_operator.types import Delete, EventType, Json, Resize


@dataclass(frozen=True, kw_only=True)
class PolicyResult:
    """One policy's word. `ready` is the status of the condition Ready; `phase` what `connector.phase` says.

    `ending`: this attempt is being ended for `reason`. `silent`: the status stays as it is. `connector`: what the
    status says there besides. `published`: whether all that was open is published by now (None: as before).
    """

    ready: str = "False"
    reason: str
    message: str
    phase: str
    reconciling: bool = False
    stalled: bool = False
    keep_status: bool = False
    terminating_attempt: bool = False
    apply: Sequence[Json] = ()
    create: Sequence[Json] = ()
    delete: Sequence[Delete] = ()
    resize: Sequence[Resize] = ()
    finalizers: Sequence[str] | None = None
    event: EventType | None = None
    conditions: Sequence[Condition] = ()
    connector: Mapping[str, str] = field(default_factory=dict)
    sizing: SizingPlan | None = None
    offsets: Json | None = None
    published: bool | None = None
    requeue_after_ms: int | None = None
