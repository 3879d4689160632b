"""Random settings and rounds for the rotator, small enough that every rule is hit often."""

from __future__ import annotations

from hypothesis import strategies as st

from sink_job.partitioning.time_zones import zone
from sink_job.records.batch import SchemaCheck
from sink_job.rotation.schedule import Schedule
from tests.unit.rotation.oracle import TOMBSTONE, CheckedPolicy, OneRecord
from tests.unit.rotation.replay import Round

SCHEMAS = ["s1", "s2", "s3", None]
PATHS = ["a", "b", "c", "d", "e", TOMBSTONE]


BATCHES = st.lists(st.binary(min_size=3, max_size=60), max_size=3)


def small(maximum: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(1, maximum)


def _check(pairs: set[tuple[str | None, str | None]]) -> SchemaCheck:
    """A record with the second schema of a pair closes an object with the first one."""
    return lambda of_object, of_record: (of_object, of_record) in pairs


settings = st.builds(
    CheckedPolicy,
    flush_size=small(12),
    interval=small(60),
    schedule=st.none()
    | st.builds(Schedule, st.sampled_from([zone("UTC"), zone("Europe/Berlin")]), st.integers(20, 90)),
    on_path_change=st.booleans(),
    max_open_objects=small(4),
    max_bytes=small(60),
    max_open_time=small(120),
    per_object=st.booleans(),
    separate=st.booleans(),
    tombstone_path=st.sampled_from([None, TOMBSTONE]),
    closes=st.none() | st.sets(st.tuples(st.sampled_from(SCHEMAS), st.sampled_from(SCHEMAS))).map(_check),
)

GAPS = [0, 0, 0, 1, 5]
DELAYS = [0, 0, 1, 1, 10, -15, 70]


@st.composite
def rounds(draw: st.DrawFn, *, most: int = 5) -> list[Round]:
    """Rounds whose clock never goes back, with gaps in the offsets, rejected records and late ones.

    A record is made of three drawn bytes: one draw for a batch is many times quicker than some for every record.
    """
    timed = draw(st.booleans())
    paths = PATHS[: draw(st.integers(1, len(PATHS)))]
    schemas = draw(st.lists(st.sampled_from(SCHEMAS), min_size=1, max_size=4))
    now, offset, time = draw(st.integers(0, 100_000)), 0, 0
    found: list[Round] = []
    for pause, drawn in draw(
        st.lists(st.tuples(st.sampled_from([0, 0, 1, 25, 200]), BATCHES), min_size=1, max_size=most)
    ):
        now += pause
        batches: list[list[OneRecord]] = []
        for data in drawn:
            batches.append([])
            for one, two, three in zip(data[::3], data[1::3], data[2::3], strict=False):
                offset += GAPS[two % len(GAPS)]
                time += DELAYS[two // len(GAPS) % len(DELAYS)]
                which = one % (3 * len(paths) + 2)
                path = paths[which % len(paths)] if which < 3 * len(paths) else None
                rejected = which == 3 * len(paths) + 1
                schema = schemas[three // 31 % len(schemas)]
                batches[-1].append(OneRecord(offset, path, time if timed else None, three % 31, rejected, schema))
                offset += 1
        offset += pause % 2
        found.append(Round(now, batches, offset))
    return found
