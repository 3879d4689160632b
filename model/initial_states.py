"""Where a case begins."""

from __future__ import annotations

from model import ledger
from model.ledger import TP
from model.model_state import COMMANDS, FOREIGN, NAMES, Case, Driver, Upload, World, key_of
from model.starting import put_record
from model.writing import Task
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import OffsetChecksum, OpenObject, Part, PartitionState, RotationRange, SourceRange


def begin(case: Case) -> World:
    """The first driver is about to start, or at work already under its claim; the second one may start at any time."""
    first = Driver("A", at="list records")
    world = World(faults=tuple(sorted(case.faults)))
    if not case.claiming:
        claim = ledger.claim(ledger.EMPTY, "A")
        world = put_record(world, claim)
        first = Driver("A", at="idle", state=ledger.after(ledger.EMPTY, claim), epoch=1, recorded=1)
    if case.inherits:
        world, first = inherited(case, world, first)
    given = (Driver(name, at="asked") for name in COMMANDS[: len(case.commands)])
    drivers = (first, *(Driver(name) for name in NAMES[1 : case.drivers]), *given)
    if case.foreign == "upload":
        world = world.with_upload(Upload(FOREIGN, FOREIGN, 0))
    if case.foreign == "object":
        world = world.with_object(key_of("p", 0), FOREIGN)
    return world._replace(drivers=drivers)


def inherited(case: Case, world: World, d: Driver) -> tuple[World, Driver]:
    """What a driver has left that is gone, or sleeps before its commit."""
    upload = Upload("Z0", key_of("p", 0), world.now, ((1, "0"),))
    o = OpenObject(
        path="p", first=0, last=0, size=0, opened_at=0, settings=1, offsets=checksum_range(0, 1), upload=upload.id,
        parts=(Part(1, "0", 0, 1),), sources=(SourceRange(0, 1, 0),),
    )  # fmt: skip
    if case.inherits == "open":
        p = PartitionState(next=1, committable=0, rotation_start=0, accepted=o.offsets, accepted_end=1, open=(o,))
        body = ledger.step(d.state, driver="Z", epoch=1, new=p)
        return put_record(world.with_upload(upload), body), Driver(d.name)
    named = Task(case, world, d, "", 0).name(o)
    p = PartitionState(next=1, committable=1, rotation_start=1, accepted_end=1)
    rotation = RotationRange(TP.topic, TP.partition, 0, 1, OffsetChecksum())
    body = ledger.step(d.state, driver="Z", epoch=1, new=p, named=[named], rotations=[rotation])
    if case.inherits == "named":
        return put_record(world.with_upload(upload), body), Driver(d.name)
    state = ledger.after(d.state, body)
    seen = ledger.step(state, driver=d.name, epoch=1, acknowledged=(named.key,))
    d = d._replace(at="commit", then="idle", state=ledger.after(state, seen), numbers=(1,), recorded=seen.value.number)
    return put_record(put_record(world.with_object(named.key, "0"), body), seen), d
