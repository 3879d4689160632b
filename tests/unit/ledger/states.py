"""Random and small states of the ledger, and records of it."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import (
    ClosedObject,
    Extent,
    OffsetChecksum,
    OpenObject,
    Part,
    PartitionDelta,
    PartitionState,
    Record,
    SourceRange,
)
from sink_job.ledger.transitions import diff
from sink_job.rotation.types import ObjectId, OpenObjectState, RotationState

TP = TopicPartition("flights", 3)
OTHER = TopicPartition("flights", 4)
PATHS = "abcdef"
IDS = [ObjectId(path, schema) for path in PATHS[:3] for schema in (None, "s1", "s2")]

offsets = st.integers(0, 2**40)
checksums = st.builds(OffsetChecksum, st.integers(0, 1000), st.integers(0, 2**64 - 1))
parts = st.builds(
    Part, st.integers(1, 10_000), st.sampled_from(["e1", "e2"]), st.integers(0, 2**64 - 1), st.integers(0, 1 << 30)
)
extents = st.lists(st.builds(Extent, st.text("xyz/-", min_size=1), offsets, offsets, offsets), max_size=2).map(tuple)
source_ranges = st.lists(st.builds(SourceRange, offsets, offsets, offsets), max_size=2).map(tuple)


@st.composite
def opened(draw: st.DrawFn, id_: ObjectId, first: int) -> OpenObject:
    upload = draw(st.sampled_from([None, "u1", "u2"]))
    return OpenObject(
        OpenObjectState(
            path=id_.path,
            schema=id_.schema,
            first=first,
            last=first + draw(st.integers(0, 100)),
            count=draw(offsets),
            size=draw(offsets),
            opened_at=draw(offsets),
            interval_start=draw(st.none() | offsets),
        ),
        settings=draw(st.integers(1, 3)),
        offsets=draw(checksums),
        upload=upload,
        parts=tuple(draw(st.lists(parts, max_size=3))) if upload else (),
        sources=draw(source_ranges),
        blocks=draw(extents),
        partial_block=draw(extents),
        index=draw(extents),
    )


@st.composite
def partition_states(draw: st.DrawFn, objects: tuple[OpenObject, ...] | None = None) -> PartitionState:
    if objects is None:
        chosen = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=4))
        objects = tuple(draw(opened(id_, 10 * index)) for index, id_ in enumerate(chosen))
    return PartitionState(
        RotationState(
            next=draw(offsets),
            committable=draw(offsets),
            last_time=draw(st.none() | st.integers(-(2**40), 2**40)),
            interval_start=draw(st.none() | offsets),
            open_records=draw(st.integers(0, 1000)),
            current_path=draw(st.none() | st.sampled_from(PATHS)),
            next_schedule=draw(st.none() | offsets),
        ),
        rotation_start=draw(offsets),
        accepted=draw(checksums),
        accepted_end=draw(offsets),
        open=objects,
    )


@st.composite
def continued(draw: st.DrawFn, o: OpenObject) -> OpenObject:
    """The object after a round that kept it open: unchanged, longer, or rebuilt under another upload."""
    match draw(st.sampled_from(["unchanged", "longer", "rebuilt", "same upload, other parts"])):
        case "unchanged":
            return o
        case "longer":
            more = tuple(draw(st.lists(parts, max_size=2)))
            upload = o.upload or ("u3" if more else None)
            return msgspec.structs.replace(
                o,
                state=msgspec.structs.replace(o.state, last=o.last + 1),
                offsets=draw(checksums),
                upload=upload,
                parts=o.parts + more,
                blocks=draw(extents),
            )
        case "rebuilt":
            return msgspec.structs.replace(o, upload="u9", parts=tuple(draw(st.lists(parts, max_size=3))))
        case _:
            return msgspec.structs.replace(o, parts=tuple(draw(st.lists(parts, max_size=3))))


@st.composite
def steps(draw: st.DrawFn, old: PartitionState) -> PartitionState:
    """A state that can follow `old`: some objects closed, others longer, and new ones after them, also with
    the path and schema of closed ones."""
    kept = [draw(continued(o)) for o in old.open if draw(st.booleans())]
    free = [id_ for id_ in IDS if id_ not in {o.id for o in kept}]
    first = 1 + max((o.first for o in old.open), default=0)
    new = draw(st.lists(st.sampled_from(free), unique=True, max_size=3)) if free else []
    fresh = [draw(opened(id_, first + index)) for index, id_ in enumerate(new)]
    return draw(partition_states(tuple(kept + fresh)))


@st.composite
def histories(draw: st.DrawFn) -> list[PartitionState]:
    states = [draw(partition_states())]
    for _ in range(draw(st.integers(1, 4))):
        states.append(draw(steps(states[-1])))
    return states


def round_trip(delta: PartitionDelta) -> PartitionDelta:
    return msgspec.json.decode(msgspec.json.encode(delta), type=PartitionDelta)


def claim(number: int = 1, **fields: object) -> Record:
    return new_record(number, "claim", settings="{}", **fields)


def round_(number: int, **fields: object) -> Record:
    return new_record(number, "round", **fields)


def new_record(number: int, kind: str, **fields: object) -> Record:
    defaults = {"number": number, "epoch": 1, "attempt": "me", "kind": kind, "clock": 100}
    return msgspec.convert({**defaults, **fields}, Record)


def closed_object(first: int, last: int, *, path: str = "a", record: int = 0, settings: int = 1) -> ClosedObject:
    return ClosedObject(
        key=f"{path}+{first}",
        topic=TP.topic,
        partition=TP.partition,
        path=path,
        first=first,
        last=last,
        bytes=10,
        crc=1,
        upload="u",
        parts=(Part(1, "e", 1, 10),),
        sources=(SourceRange(first, last + 1, 0),),
        offsets=OffsetChecksum(last - first + 1, 0),
        settings=settings,
        record=record,
    )


def at(next_offset: int, committable: int | None = None, *objects: OpenObject) -> PartitionDelta:
    committable = next_offset if committable is None else committable
    state = PartitionState(RotationState(next=next_offset, committable=committable), rotation_start=0, open=objects)
    return diff(None, state)


def open_at(path: str, first: int, settings: int = 1) -> OpenObject:
    return OpenObject(
        OpenObjectState(path=path, first=first, last=first, count=1, size=1, opened_at=0),
        settings=settings,
        offsets=OffsetChecksum(1, 0),
        upload=f"u{path}",
    )
