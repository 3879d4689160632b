"""Examples of rotations: records of a partition, and the objects that they make."""

from __future__ import annotations

import dataclasses

from sink_job.rotation.policy import RotationPolicy
from tests.unit.rotation.oracle import OneRecord
from tests.unit.rotation.replay import Replay, Round, naive, naive_cut

Objects = list[tuple[str, list[int]]]


def record(offset: int, path: str | None = "a", time: int | None = None, size: int = 1) -> OneRecord:
    return OneRecord(offset, path, time, size)


def rejected(offset: int) -> OneRecord:
    """Rejected by the converter or the null policy."""
    return OneRecord(offset, None)


def rejected_path(offset: int, time: int) -> OneRecord:
    return OneRecord(offset, None, time, path_rejected=True)


def run(settings: RotationPolicy, *rounds: tuple[int, list[OneRecord]]) -> Replay:
    """Plays (clock, records) and holds the real rotator against the oracle on the way."""
    replay, end, played = Replay(settings), 0, []
    for now, records in rounds:
        end = records[-1].offset + 1 if records else end
        played.append(Round(now, [records] if records else [], end))
        replay.round(played[-1])
    expected = naive(settings, played)
    assert replay.closed == [[naive_cut(o) for o in group] for group in expected.closed]
    return replay


def closed(replay: Replay) -> list[Objects]:
    return [[(path, offsets) for path, offsets, *_ in group] for group in replay.closed]


def still_open(replay: Replay) -> Objects:
    return [(path, offsets) for path, offsets, *_ in replay.open]


def each(settings: RotationPolicy) -> RotationPolicy:
    return dataclasses.replace(settings, per_object=True)
