"""The status that the next pass writes, after the creation of a driver, instead of this one. Pure.

A status precedes the writes that it explains, so that no fact is lost if the operator ends between them. The status of
a plain start has no such fact: the next pass derives the same from the new driver. A driver that runs by then is
reported by one write instead of two. After a pass whose writes failed, the status precedes them: they may fail again.
"""

from __future__ import annotations

from typing import Final

from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.reasons import Reason
from s3sink_operator.types import Json

_DERIVED: Final = (
    "observedGeneration", "conditions", "desiredState", "desiredStateSource", "progress", "tables", "replicas",
    "selector", "appliedDefaults",
)  # fmt: skip
"""What each pass derives from the objects, and from the same fields of the status before."""
_OF_NEW_SINK: Final = ("claim", "scaling")
"""What a new sink has from its first start on. Without it the age of the sink decides, and the allocation counts."""
_CURRENT_MEMORY: Final = "current"


def may_follow(old: Json, new: Json, result: PolicyResult) -> bool:
    """Whether the status `new` may be written after the writes of `result`, which creates the driver and nothing else.

    `old` is the status before. Attempts, back-off, offset reset, memory, rollout and the record of published objects
    must be the same in both. The first claim and the first number of executors of a new sink may follow.
    """
    # A take-over or an operation has another reason.
    is_start = bool(result.writes.create) and not result.writes.delete and result.reason == Reason.STARTING
    later = {name: value for name, value in new.items() if name not in _OF_NEW_SINK or name in old}
    return is_start and _remembered(old) == _remembered(later)


def _remembered(status: Json) -> Json:
    """The part of a status that the operator cannot derive again."""
    found = {name: value for name, value in status.items() if name not in _DERIVED}
    memory = found.pop("memory", None)
    if isinstance(memory, dict):
        found["memory"] = {name: value for name, value in memory.items() if name != _CURRENT_MEMORY}
    return {name: value for name, value in found.items() if value}
