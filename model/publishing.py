"""Making visible what is named, however often it takes, and committing the group's offset (P5, P9)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from model import ledger, rounds
from model.model_state import COMMANDS, FOREIGN, Case, Driver, Plan, World, checksum, content_of
from model.rounds import blame, clock, fenced, intend, staging_name
from model.search import Step
from model.writing import Task
from sink_job.ledger.generations import generation_metadata
from sink_job.ledger.state import ClosedObject, PartitionState

Steps = Iterator[Step[World]]


def idle(case: Case, world: World, d: Driver) -> Steps:
    """Between rounds: where the group's offset differs from what was committed, it is committed again."""
    yield from rounds.idle(case, world, d)
    if d.committed >= 0 and (world.group, world.mark) != (d.committed, mark_of(case, d)):
        yield from look(case, world, d._replace(then="idle"), d.committed)


def publish(case: Case, world: World, d: Driver) -> Steps:
    """Completes what is not visible yet, in any order; acknowledges it; then the offsets."""
    todo = [o for o in ledger.pending(d.state).values() if o.key not in d.visible]
    for o in todo:
        yield from _complete(case, world, d, o)
    if todo:
        return
    early = d.visible if not case.rules.say("p5.acknowledged-first") else ()
    offset = ledger.to_commit(d.state, early)
    if d.name not in COMMANDS and (early or not d.visible) and offset != d.committed:
        yield from commit(case, world, d._replace(numbers=(offset,)))
    else:
        yield from acknowledge(case, world, d)


def _complete(case: Case, world: World, d: Driver, o: ClosedObject) -> Steps:
    does, rules = f"{d.name} completes {o.key} ({o.upload})", case.rules
    upload, there = world.upload(o.upload), world.object(o.key)
    if there is not None and rules.say("p9.conditional"):
        yield Step(f"{does}: 412", world.with_driver(d._replace(at="head taken", key=o.key)))
    if upload is None:
        yield Step(f"{does}: NoSuchUpload", world.with_driver(_gone(case, d, o)))
    if upload is None or (there is not None and rules.say("p9.conditional")):
        return
    parts = dict(upload.parts)
    etags = [parts.get(p.number, "") for p in o.parts]
    if rules.say("p9.recorded-etags") and etags != [p.etag for p in o.parts]:
        yield from _unusable(case, world, d, o, f"{does}: InvalidPart")
        return
    if "busy" in world.faults:
        yield from _unusable(case, world.after("busy"), d, o, f"{does}: 409, and again")
    if "error in 200" in world.faults:
        believed = d if rules.say("p9.error-in-200") else _sees(d, o)
        yield Step(f"{does}: 200 with an error", world.after("error in 200").with_driver(believed))
    generation, newest = (ledger.generation(world.records, n) for n in (o.record, world.now))
    done = world.without_upload(upload.id).with_object(o.key, "".join(map(content_of, etags)), generation)
    if generation < newest:
        done = done._replace(breach=("late", f"{o.key} becomes visible in generation {generation}, which has ended"))
    if there == FOREIGN:
        done = done._replace(breach=("foreign harmed", f"{d.name} overwrites {o.key}"))
    yield Step(does, done.with_driver(_sees(d, o)))
    if "completion reply lost" in world.faults:
        yield Step(f"{does}, the reply is lost", done.after("completion reply lost").with_driver(d))


def _gone(case: Case, d: Driver, o: ClosedObject) -> Driver:
    return d._replace(at="head gone" if case.rules.say("p9.gone-but-there") else "lost", key=o.key)


def _unusable(case: Case, world: World, d: Driver, o: ClosedObject, label: str) -> Steps:
    """The upload will never be completed: it is aborted first, so that nobody else completes it after all."""
    if not case.rules.say("p9.unusable"):
        yield Step(f"{label}, tries again", world.with_driver(d))
        return
    d = d._replace(at="head unusable", key=o.key)
    if case.rules.say("p9.unusable-aborted"):
        yield Step(f"{label}, aborts it", world.without_upload(o.upload).with_driver(d))
    else:
        yield Step(label, world.with_driver(d))


def head(case: Case, world: World, d: Driver) -> Steps:
    """What stands at the key decides."""
    o, there, rules = _object(d), world.object(d.key), case.rules
    looks = f"{d.name} looks at {o.key}"
    if there is None:
        yield from _neither(case, world, d, f"{looks}: not there")
        return
    equal = checksum(there) == o.crc and len(there) == o.bytes
    if (equal and (d.at != "head taken" or rules.say("p9.equal"))) or (not equal and not rules.say("p9.different")):
        if d.at == "head taken" and rules.say("p9.equal-abort"):
            world = world.without_upload(o.upload)
        yield Step(
            f"{looks}: {'equal' if equal else 'there'}, done",
            world.with_driver(_sees(d, o)._replace(at="publish", key="")),
        )
        return
    if not case.foreign and ledger.generation(world.records, world.now) == d.state.value.generation:
        world = world._replace(breach=("conflict", f"{o.key} is {there}, and nobody else writes here"))
    yield Step(f"{looks}: ObjectConflict", world.with_driver(Driver(d.name, at="conflict")))


def _neither(case: Case, world: World, d: Driver, label: str) -> Steps:
    """Neither upload nor object: it is lost, as a reader moves only what the ledger has acknowledged."""
    o, rules = _object(d), case.rules
    taken_for_moved = not rules.say("p5.output-only") and world.group > o.last
    if rules.say("p9.else-rebuild") and not taken_for_moved:
        yield Step(f"{label}, lost", world.with_driver(d._replace(at="lost")))
    else:
        yield Step(f"{label}, takes it for done", world.with_driver(_sees(d, o)._replace(at="publish", key="")))


def lost(case: Case, world: World, d: Driver) -> Steps:
    """Rebuilds a named object from its members, under the same key, in a new upload that a record will name."""
    o, state, rules = _object(d), ledger.partition(d.state), case.rules
    if d.name in COMMANDS:
        yield _left_to_a_driver(case, world, d, o)
        return
    world = blame(case, world, d, o.key)
    if not rules.say("p2.rebuilt"):
        again = PartitionState(next=o.first, committable=o.first, rotation_start=0)
        body = ledger.step(d.state, driver=d.name, epoch=d.epoch, new=again, acknowledged=(*d.visible, o.key))
        yield Step(
            f"{d.name} will cut anew from {o.first}",
            world.with_driver(d._replace(at="record", key="", plan=Plan(body))),
        )
        return
    cut = Task(case, world, d, staging_name(case, d), clock(case, d)).rebuild(state, o)
    if not cut.named:
        yield Step(
            f"{d.name} finds no record of {o.key}: done", world.with_driver(_sees(d, o)._replace(at="publish", key=""))
        )
        return
    named = cut.named[0]
    world = intend(case, world, d, o.first, o.last + 1).with_upload(cut.uploads[0])
    label = f"{d.name} makes {o.key} again as {named.upload}"
    d = d._replace(key="", begun=d.begun + 1)
    seen = d.visible if rules.say("p9.seen-visible") else ledger.pending(d.state)
    if rules.say("p2.replacing-record"):
        gone = (*seen, o.key) if named.key != o.key else seen
        body = ledger.step(d.state, driver=d.name, epoch=d.epoch, named=[named], acknowledged=gone)
        yield Step(label, world.with_driver(d._replace(at="record", plan=Plan(body, begun=cut.begun))))
    else:
        mine = replace(d.state.value, pending={**d.state.value.pending, named.key: named})
        yield Step(label, world.with_driver(d._replace(at="publish", state=ledger.keep(mine))))


def acknowledge(case: Case, world: World, d: Driver) -> Steps:
    """A record acknowledges what was seen visible; the group's offset passes it afterwards."""
    if d.visible and (d.name not in COMMANDS or case.rules.say("reset.acknowledged")):
        body = ledger.step(d.state, driver=d.name, epoch=d.epoch, acknowledged=d.visible)
        yield Step(f"{d.name} has published everything", world.with_driver(d._replace(at="record", plan=Plan(body))))
    else:
        yield Step(f"{d.name} has nothing to publish", world.with_driver(_goes_on(d)))


def look(case: Case, world: World, d: Driver, offset: int) -> Steps:
    """Where no record was appended just before, the head is checked before offsets are committed."""
    if d.state.value.number + 1 in dict(world.records) and case.rules.say("p4.looks-first"):
        yield fenced(case, world, d, f"{d.name} looks at the head: it is fenced")
    else:
        yield Step(f"{d.name} looks at the head", world.with_driver(d._replace(at="commit", numbers=(offset,))))


def commit(case: Case, world: World, d: Driver) -> Steps:
    offset = d.numbers[0]
    after = d._replace(at="tell" if d.name in COMMANDS else "publish", committed=offset, numbers=())
    mark = mark_of(case, d)
    label = f"{d.name} commits the group's offset {offset}{' of ' + mark if mark else ''}"
    yield Step(label, world._replace(group=offset, mark=mark, group_is_foreign=False).with_driver(after))


def mark_of(case: Case, d: Driver) -> str:
    """What this driver's commits carry, and asks of those of others."""
    return generation_metadata(d.state.value.generation) if case.rules.say("reset.marked") else ""


def _left_to_a_driver(case: Case, world: World, d: Driver, o: ClosedObject) -> Step[World]:
    """A command reads no records."""
    if case.rules.say("reset.left-to-driver"):
        return Step(f"{d.name} leaves {o.key} to a driver: refuses", world.with_driver(_refuses(d)))
    return Step(f"{d.name} takes {o.key} for done", world.with_driver(_sees(d, o)._replace(at="publish", key="")))


def _refuses(d: Driver) -> Driver:
    return Driver(d.name, at="refused")


def _goes_on(d: Driver) -> Driver:
    return d._replace(at=d.then, then="")


def _sees(d: Driver, o: ClosedObject) -> Driver:
    return d._replace(visible=tuple(sorted({*d.visible, o.key})))


def _object(d: Driver) -> ClosedObject:
    return ledger.pending(d.state)[d.key]
