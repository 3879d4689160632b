"""What may go wrong outside of the drivers' programs. Each fault of a case happens at most once, at any time."""

from __future__ import annotations

from collections.abc import Iterator

from model import generations
from model.model_state import FOREIGN, Case, Late, Upload, World
from model.search import Step
from model.writing import put_part

Steps = Iterator[Step[World]]


def happen(case: Case, world: World) -> Steps:
    for late in world.late:
        left = tuple(other for other in world.late if other != late)
        yield Step(f"late: {late.what} {late.name} {late.content}", _arrives(case, world._replace(late=left), late))
    for fault in set(world.faults):
        yield from _HAPPEN.get(fault, _nothing)(case, world)


def _nothing(case: Case, world: World) -> Steps:
    """Faults that strike a driver's own request stand with that request."""
    yield from ()


def _vanish(case: Case, world: World) -> Steps:
    for upload in world.uploads:
        yield Step(f"upload {upload.id} of {upload.key} vanishes", world.after("vanish").without_upload(upload.id))


def _staging_lost(case: Case, world: World) -> Steps:
    for name, _ in world.staging:
        yield Step(f"staging object {name} vanishes", world.after("staging lost").without_staging(name))


def _staging_damaged(case: Case, world: World) -> Steps:
    for name, content in world.staging:
        damaged = world.after("staging damaged").with_staging(name, content[:-1])
        yield Step(f"staging object {name} is damaged", damaged)


def _moved(case: Case, world: World) -> Steps:
    """A reader takes an object away, once the group's offset says that it is finished."""
    any_generation = not (case.rules.say("reset.readers") and case.rules.say("reset.marked"))
    for key, content, generation in world.objects:
        is_past = content not in ("", FOREIGN) and int(content[-1]) < world.group
        if is_past and (any_generation or generation <= generations.marked(world)):
            others = tuple(o for o in world.objects if o[0] != key)
            moved = tuple(sorted((*world.moved, (key, content, generation))))
            yield Step(f"a reader moves {key} away", world.after("moved")._replace(objects=others, moved=moved))


def _group_set_forward(case: Case, world: World) -> Steps:
    """Somebody else commits an offset behind all records; no case has readers that would go by it."""
    ahead = world.after("group set forward")._replace(group=case.records, mark="", group_is_foreign=True)
    yield Step(f"somebody commits the group's offset {case.records}", ahead)


def _group_set_back(case: Case, world: World) -> Steps:
    """Kafka forgets the group's offset, or somebody sets it back."""
    yield Step("the group's offset is forgotten", world.after("group set back")._replace(group=0, mark=""))


def _snapshot_lost(case: Case, world: World) -> Steps:
    if world.snapshots:
        number = world.snapshots[-1][0]
        yield Step(f"snapshot {number} is lost", world.after("snapshot lost")._replace(snapshots=world.snapshots[:-1]))


def _record_lost(case: Case, world: World) -> Steps:
    """Somebody deletes a record by hand before another driver starts: one with records behind it, and no snapshot."""
    if any(d.at != "off" for d in world.drivers[1:]):
        return
    newest = world.snapshots[-1][0] if world.snapshots else 0
    for number, _ in world.records[:-1]:
        if number > newest:
            left = tuple(r for r in world.records if r[0] != number)
            yield Step(f"record {number} is lost", world.after("record lost")._replace(records=left))


_HAPPEN = {
    "record lost": _record_lost,
    "vanish": _vanish,
    "staging lost": _staging_lost,
    "staging damaged": _staging_damaged,
    "moved": _moved,
    "group set forward": _group_set_forward,
    "group set back": _group_set_back,
    "snapshot lost": _snapshot_lost,
}


def _arrives(case: Case, world: World, late: Late) -> World:
    if late.what == "intent":
        return world if case.rules.say("p10.intent-names") else _with_intent(world, int(late.name), late.content)
    if late.what == "upload":
        return world.with_upload(Upload(late.name, late.key, world.now))
    if late.what == "staging":
        return world.with_staging(late.name, late.content)
    upload = world.upload(late.name)
    return world if upload is None else world.with_upload(put_part(upload, late.number, late.content))


def _with_intent(world: World, epoch: int, ranges: str) -> World:
    """An intent that overwrites the later one of its epoch, as both had one key."""
    start, end = map(int, ranges.split("-"))
    settings = next(settings for of, _, _, settings in world.intents if of == epoch)
    others = (i for i in world.intents if i[0] != epoch)
    return world._replace(intents=tuple(sorted((*others, (epoch, start, end, settings)))))
