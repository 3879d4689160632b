"""Making visible what is closed, however often it takes, and committing the group's offset (P5, P9)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from model import ledger, rounds, topic
from model.model_state import COMMANDS, FOREIGN, Case, Driver, ModelState, Plan, checksum, content_of
from model.rounds import check_needless, clock, fenced, intend, staging_name
from model.search import Step
from model.writing import Task
from sink_job.ledger.generations import generation_metadata
from sink_job.ledger.state import ClosedObject, PartitionState
from sink_job.rotation.types import RotationState

Steps = Iterator[Step[ModelState]]


def idle(case: Case, model: ModelState, d: Driver) -> Steps:
    """Between rounds: if the group's offset differs from the committed one, the driver commits it again."""
    yield from rounds.idle(case, model, d)
    if d.committed >= 0 and (model.group, model.group_metadata) != (d.committed, metadata_of(case, d)):
        yield from check_head(case, model, d._replace(then="idle"), d.committed)


def publish(case: Case, model: ModelState, d: Driver) -> Steps:
    """Completes objects that are not visible yet, in any order; acknowledges them; then commits the offsets."""
    if topic.leaves_to_driver(case, d):
        yield Step(f"{d.name} leaves dead letters to a driver: rejects", model.with_driver(_rejects(d)))
        return
    todo = [o for o in ledger.pending(d.state).values() if o.key not in d.visible]
    for o in todo:
        yield from _complete(case, model, d, o)
    if todo:
        return
    if d.name not in COMMANDS and topic.missing(case, d):
        yield from topic.produce(case, model, d)
        return
    early = d.visible if not case.rules.enforce("p5.acknowledged-first") else ()
    offset = ledger.to_commit(d.state, early)
    if d.name not in COMMANDS and (early or not d.visible) and offset != d.committed:
        yield from commit(case, model, d._replace(numbers=(offset,)))
    else:
        yield from acknowledge(case, model, d)


def _complete(case: Case, model: ModelState, d: Driver, o: ClosedObject) -> Steps:
    does, rules = f"{d.name} completes {o.key} ({o.upload})", case.rules
    upload, there = model.upload(o.upload), model.object(o.key)
    if there is not None and rules.enforce("p9.conditional"):
        yield Step(f"{does}: 412", model.with_driver(d._replace(at="head taken", key=o.key)))
    if upload is None:
        yield Step(f"{does}: NoSuchUpload", model.with_driver(_gone(case, d, o)))
    if upload is None or (there is not None and rules.enforce("p9.conditional")):
        return
    parts = dict(upload.parts)
    etags = [parts.get(p.number, "") for p in o.parts]
    if rules.enforce("p9.recorded-etags") and etags != [p.etag for p in o.parts]:
        yield from _unusable(case, model, d, o, f"{does}: InvalidPart")
        return
    if "busy" in model.faults:
        yield from _unusable(case, model.after("busy"), d, o, f"{does}: 409, and again")
    if "error in 200" in model.faults:
        believed = d if rules.enforce("p9.error-in-200") else _observes(d, o)
        yield Step(f"{does}: 200 with an error", model.after("error in 200").with_driver(believed))
    generation, newest = (ledger.generation(model.records, n) for n in (o.record, model.now))
    done = model.without_upload(upload.id).with_object(o.key, "".join(map(content_of, etags)), generation)
    if generation < newest:
        done = done._replace(breach=("late", f"{o.key} becomes visible in generation {generation}, which has ended"))
    if there == FOREIGN:
        done = done._replace(breach=("foreign changed", f"{d.name} overwrites {o.key}"))
    yield Step(does, done.with_driver(_observes(d, o)))
    if "completion reply lost" in model.faults:
        yield Step(f"{does}, the reply is lost", done.after("completion reply lost").with_driver(d))


def _gone(case: Case, d: Driver, o: ClosedObject) -> Driver:
    return d._replace(at="head gone" if case.rules.enforce("p9.already-complete") else "lost", key=o.key)


def _unusable(case: Case, model: ModelState, d: Driver, o: ClosedObject, label: str) -> Steps:
    """The upload cannot be completed. It is aborted first, so no other driver can complete it later."""
    if not case.rules.enforce("p9.unusable"):
        yield Step(f"{label}, tries again", model.with_driver(d))
        return
    d = d._replace(at="head unusable", key=o.key)
    if case.rules.enforce("p9.unusable-aborted"):
        yield Step(f"{label}, aborts it", model.without_upload(o.upload).with_driver(d))
    else:
        yield Step(label, model.with_driver(d))


def head(case: Case, model: ModelState, d: Driver) -> Steps:
    """The object at the key decides."""
    o, there, rules = _object(d), model.object(d.key), case.rules
    checks = f"{d.name} checks {o.key}"
    if there is None:
        yield from _neither(case, model, d, f"{checks}: not there")
        return
    equal = checksum(there) == o.crc and len(there) == o.bytes
    if (equal and (d.at != "head taken" or rules.enforce("p9.equal"))) or (
        not equal and not rules.enforce("p9.different")
    ):
        if d.at == "head taken" and rules.enforce("p9.equal-abort"):
            model = model.without_upload(o.upload)
        yield Step(
            f"{checks}: {'equal' if equal else 'there'}, done",
            model.with_driver(_observes(d, o)._replace(at="publish", key="")),
        )
        return
    is_damaged = any(key == o.key for key, *_ in model.damaged)
    if not case.foreign and not is_damaged and ledger.generation(model.records, model.now) == d.state.value.generation:
        model = model._replace(breach=("conflict", f"{o.key} is {there}, but no other program writes here"))
    yield Step(f"{checks}: ObjectConflict", model.with_driver(Driver(d.name, at="conflict")))


def _neither(case: Case, model: ModelState, d: Driver, label: str) -> Steps:
    """Neither upload nor object exists. The object is lost: readers move only objects that the ledger has
    acknowledged."""
    o, rules = _object(d), case.rules
    assumes_moved = not rules.enforce("p5.output-only") and model.group > o.last
    if rules.enforce("p9.rebuild") and not assumes_moved:
        yield Step(f"{label}, lost", model.with_driver(d._replace(at="lost")))
    else:
        yield Step(
            f"{label}, assumes that it is done", model.with_driver(_observes(d, o)._replace(at="publish", key=""))
        )


def lost(case: Case, model: ModelState, d: Driver) -> Steps:
    """Rebuilds a closed object from its members, under the same key, in a new upload that the next record names."""
    o, state, rules = _object(d), ledger.partition(d.state), case.rules
    if d.name in COMMANDS:
        yield _leaves_to_driver(case, model, d, o)
        return
    model = check_needless(case, model, d, o.key)
    if not rules.enforce("p2.rebuilt"):
        again = PartitionState(RotationState.start(o.first), rotation_start=0)
        body = ledger.step(d.state, driver=d.name, epoch=d.epoch, new=again, acknowledged=(*d.visible, o.key))
        yield Step(
            f"{d.name} will write again from {o.first}",
            model.with_driver(d._replace(at="record", key="", plan=Plan(body))),
        )
        return
    result = Task(case, model, d, staging_name(case, d), clock(case, d)).rebuild(state, o)
    if not result.closed:
        yield Step(
            f"{d.name} finds no member of {o.key}: done",
            model.with_driver(_observes(d, o)._replace(at="publish", key="")),
        )
        return
    closed = result.closed[0]
    model = intend(case, model, d, o.first, o.last + 1).with_upload(result.uploads[0])
    label = f"{d.name} rebuilds {o.key} as {closed.upload}"
    d = d._replace(key="", started=d.started + 1)
    seen = d.visible if rules.enforce("p9.observed-visible") else ledger.pending(d.state)
    if rules.enforce("topic.not-beside-lost"):
        seen = tuple(key for key in seen if key not in {each.key for each in topic.dead_letters(case, d)})
    if rules.enforce("p2.replacing-record"):
        gone = (*seen, o.key) if closed.key != o.key else seen
        body = ledger.step(d.state, driver=d.name, epoch=d.epoch, closed=[closed], acknowledged=gone)
        yield Step(label, model.with_driver(d._replace(at="record", plan=Plan(body, started=result.started))))
    else:
        mine = replace(d.state.value, pending={**d.state.value.pending, closed.key: closed})
        yield Step(label, model.with_driver(d._replace(at="publish", state=ledger.intern(mine))))


def acknowledge(case: Case, model: ModelState, d: Driver) -> Steps:
    """A record acknowledges objects that the driver observed to be visible; the group's offset passes them
    afterwards."""
    if d.visible and (d.name not in COMMANDS or case.rules.enforce("reset.acknowledged")):
        body = ledger.step(d.state, driver=d.name, epoch=d.epoch, acknowledged=d.visible)
        d = topic.acknowledging(case, d)
        yield Step(f"{d.name} has published everything", model.with_driver(d._replace(at="record", plan=Plan(body))))
    else:
        yield Step(f"{d.name} has nothing to publish", model.with_driver(_continues(d)))


def check_head(case: Case, model: ModelState, d: Driver, offset: int) -> Steps:
    """Checks the head before a commit of offsets, if the driver has not just appended a record."""
    if d.state.value.number + 1 in dict(model.records) and case.rules.enforce("p4.checks-head"):
        yield fenced(case, model, d, f"{d.name} checks the head: it is fenced")
    else:
        yield Step(f"{d.name} checks the head", model.with_driver(d._replace(at="commit", numbers=(offset,))))


def commit(case: Case, model: ModelState, d: Driver) -> Steps:
    offset = d.numbers[0]
    after = d._replace(at="report" if d.name in COMMANDS else "publish", committed=offset, numbers=())
    metadata = metadata_of(case, d)
    label = f"{d.name} commits the group's offset {offset}{' of ' + metadata if metadata else ''}"
    yield Step(label, model._replace(group=offset, group_metadata=metadata, group_is_foreign=False).with_driver(after))


def metadata_of(case: Case, d: Driver) -> str:
    """The metadata of this driver's commits, which it also expects at the group's offset."""
    return generation_metadata(d.state.value.generation) if case.rules.enforce("reset.commit-metadata") else ""


def _leaves_to_driver(case: Case, model: ModelState, d: Driver, o: ClosedObject) -> Step[ModelState]:
    """A command reads no records, so it cannot rebuild an object."""
    if case.rules.enforce("reset.left-to-driver"):
        return Step(f"{d.name} leaves {o.key} to a driver: rejects", model.with_driver(_rejects(d)))
    return Step(
        f"{d.name} assumes that {o.key} is done", model.with_driver(_observes(d, o)._replace(at="publish", key=""))
    )


def _rejects(d: Driver) -> Driver:
    return Driver(d.name, at="rejected")


def _continues(d: Driver) -> Driver:
    return d._replace(at=d.then, then="")


def _observes(d: Driver, o: ClosedObject) -> Driver:
    return d._replace(visible=tuple(sorted({*d.visible, o.key})))


def _object(d: Driver) -> ClosedObject:
    return ledger.pending(d.state)[d.key]
