"""The initial state of a case."""

from __future__ import annotations

from model import ledger
from model.ledger import TP
from model.model_state import COMMANDS, FOREIGN, NAMES, Case, Driver, ModelState, Upload, key_of
from model.starting import put_record
from model.writing import Task
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import OffsetChecksum, OpenObject, Part, PartitionState, RotationRange, SourceRange
from sink_job.rotation.types import OpenObjectState, RotationState


def begin(case: Case) -> ModelState:
    """The first driver starts next, or already works under its claim; the second one can start at any time."""
    first = Driver("A", at="list records")
    model = ModelState(faults=tuple(sorted(case.faults)))
    if not case.claiming:
        claim = ledger.claim(ledger.EMPTY, "A")
        model = put_record(model, claim)
        first = Driver("A", at="idle", state=ledger.after(ledger.EMPTY, claim), epoch=1, recorded=1)
    if case.inherits:
        model, first = inherited(case, model, first)
    given = (Driver(name, at="requested") for name in COMMANDS[: len(case.commands)])
    drivers = (first, *(Driver(name) for name in NAMES[1 : case.drivers]), *given)
    if case.foreign == "upload":
        model = model.with_upload(Upload(FOREIGN, FOREIGN, 0))
    if case.foreign == "object":
        model = model.with_object(key_of("p", 0), FOREIGN)
    return model._replace(drivers=drivers)


def inherited(case: Case, model: ModelState, d: Driver) -> tuple[ModelState, Driver]:
    """The state that a crashed driver has left, or that of a driver that sleeps before its commit."""
    upload = Upload("Z0", key_of("p", 0), model.now, ((1, "0"),))
    o = OpenObject(
        OpenObjectState(path="p", first=0, last=0, count=1, size=0, opened_at=0),
        settings=1,
        offsets=checksum_range(0, 1),
        upload=upload.id,
        parts=(Part(1, "0", 0, 1),),
        sources=(SourceRange(0, 1, 0),),
    )
    if case.inherits == "open":
        p = PartitionState(
            RotationState(next=1, committable=0), rotation_start=0, accepted=o.offsets, accepted_end=1, open=(o,)
        )
        body = ledger.step(d.state, driver="Z", epoch=1, new=p)
        return put_record(model.with_upload(upload), body), Driver(d.name)
    closed = Task(case, model, d, "", 0).close(o)
    p = PartitionState.start(1)
    rotation = RotationRange(TP.topic, TP.partition, 0, 1, OffsetChecksum())
    body = ledger.step(d.state, driver="Z", epoch=1, new=p, closed=[closed], rotations=[rotation])
    if case.inherits == "closed":
        return put_record(model.with_upload(upload), body), Driver(d.name)
    state = ledger.after(d.state, body)
    seen = ledger.step(state, driver=d.name, epoch=1, acknowledged=(closed.key,))
    d = d._replace(at="commit", then="idle", state=ledger.after(state, seen), numbers=(1,), recorded=seen.value.number)
    return put_record(put_record(model.with_object(closed.key, "0"), body), seen), d
