"""Random settings and rounds for the cutter, small enough that every rule is hit often."""

from __future__ import annotations

from hypothesis import strategies as st

from sink_job.cutting.cutter import CutSettings
from sink_job.cutting.schedule import Schedule
from sink_job.cutting.zones import zone
from tests.unit.cutting.oracle import TOMBSTONE, OneRecord
from tests.unit.cutting.replay import Round

PATHS = ["a", "b", "c", "d", "e", TOMBSTONE]


def small(maximum: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(1, maximum)


settings = st.builds(
    CutSettings,
    flush_size=small(12),
    interval=small(60),
    schedule=st.none()
    | st.builds(Schedule, st.sampled_from([zone("UTC"), zone("Europe/Berlin")]), st.integers(20, 90)),
    on_path_change=st.booleans(),
    max_open_objects=small(4),
    max_bytes=small(60),
    max_open_time=small(120),
    per_object=st.booleans(),
)


@st.composite
def rounds(draw: st.DrawFn, *, most: int = 5) -> list[Round]:
    """Rounds whose clock never goes back, with gaps in the offsets, refused records and late ones."""
    timed = draw(st.booleans())
    paths = PATHS[: draw(st.integers(1, len(PATHS)))]
    now, offset, time = draw(st.integers(0, 100_000)), 0, 0
    found: list[Round] = []
    for _ in range(draw(st.integers(1, most))):
        now += draw(st.sampled_from([0, 0, 1, 25, 200]))
        batches: list[list[OneRecord]] = []
        for _ in range(draw(st.integers(0, 3))):
            batch = []
            for _ in range(draw(st.integers(1, 20))):
                offset += draw(st.sampled_from([0, 0, 0, 1, 5]))
                time += draw(st.sampled_from([0, 0, 1, 1, 10, -15, 70]))
                path, refused = draw(st.sampled_from([*((p, False) for p in paths * 3), (None, True), (None, False)]))
                size = draw(st.integers(0, 30))
                batch.append(OneRecord(offset, path, time if timed else None, size, refused))
                offset += 1
            batches.append(batch)
        offset += draw(st.sampled_from([0, 0, 3]))
        found.append(Round(now, batches, offset))
    return found
