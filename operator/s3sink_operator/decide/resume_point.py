"""Where the next attempt resumes: the round of the ledger, and the offsets of some topic-partitions. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3sink_operator.progress_model import MAX_MOST_LAGGING, SinkProgress
from s3sink_operator.status_model import Position
from sink_job.api.report import FinalReport

MAX_NAMED: Final = 3
"""Topic-partitions that the text names."""


@dataclass(frozen=True, kw_only=True)
class ResumePoint:
    """`text`: for `resumesFrom`; `positions`: of the topic-partition that failed first, then the largest lags."""

    text: str
    positions: list[Position]


def resume_point_of(final: FinalReport | None, progress: SinkProgress | None) -> ResumePoint | None:
    """From the final report of a driver; without one from the last progress, after which rounds may have been
    recorded. None if the round is unknown."""
    if final is not None and final.round is not None:
        found = [Position(topic=each.topic, partition=each.partition, offset=each.next) for each in final.positions]
        return _resume_point(final.round, found, final.partitions, is_exact=True)
    if progress is None or progress.round is None:
        return None
    assigned = (progress.partitions.assigned if progress.partitions else None) or 0
    found = [
        Position(topic=each.topic, partition=each.partition, offset=each.next)
        for each in progress.most_lagging or ()
        if each.next is not None
    ]
    return _resume_point(progress.round, found, assigned, is_exact=False)


def _resume_point(number: int, positions: list[Position], partitions: int, *, is_exact: bool) -> ResumePoint:
    text = f"after round {number} of the ledger" + ("" if is_exact else " or a later one")
    named = [f"{each.topic}-{each.partition} at offset {each.offset}" for each in positions[:MAX_NAMED]]
    if named:
        more = partitions - len(named)
        named += [f"{more} more"] if more > 0 else []
        text += ": " + ", ".join(named) + ("" if is_exact else ", or later offsets")
    return ResumePoint(text=text, positions=positions[:MAX_MOST_LAGGING])
