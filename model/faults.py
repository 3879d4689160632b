"""Faults outside the drivers' programs. Each fault of a case happens at most once, at any time."""

from __future__ import annotations

from collections.abc import Iterator

from model import generations, ledger, topic
from model.model_state import DAMAGED, FOREIGN, Case, Late, ModelState, Upload, checksum
from model.search import Step
from model.writing import put_part

Steps = Iterator[Step[ModelState]]


def happen(case: Case, model: ModelState) -> Steps:
    for late in model.late:
        left = tuple(other for other in model.late if other != late)
        yield Step(f"late: {late.what} {late.name} {late.content}", _arrives(case, model._replace(late=left), late))
    for fault in dict.fromkeys(model.faults):
        yield from _HAPPEN.get(fault, _nothing)(case, model)


def _nothing(case: Case, model: ModelState) -> Steps:
    """Faults of a driver's own request are steps of that request."""
    yield from ()


def _vanish(case: Case, model: ModelState) -> Steps:
    for upload in model.uploads:
        yield Step(f"upload {upload.id} of {upload.key} vanishes", model.after("vanish").without_upload(upload.id))


def _staging_lost(case: Case, model: ModelState) -> Steps:
    for name, _ in model.staging:
        yield Step(f"staging object {name} vanishes", model.after("staging lost").without_staging(name))


def _staging_damaged(case: Case, model: ModelState) -> Steps:
    for name, content in model.staging:
        damaged = model.after("staging damaged").with_staging(name, content[:-1])
        yield Step(f"staging object {name} is damaged", damaged)


def _moved(case: Case, model: ModelState) -> Steps:
    """A reader moves an object away after the group's offset has passed it."""
    any_generation = not (case.rules.enforce("reset.readers") and case.rules.enforce("reset.commit-metadata"))
    for key, content, generation in model.objects:
        is_past = content not in ("", FOREIGN) and int(content[-1]) < model.group
        if is_past and (any_generation or generation <= generations.committing_generation(model)):
            others = tuple(o for o in model.objects if o[0] != key)
            moved = tuple(sorted((*model.moved, (key, content, generation))))
            yield Step(f"a reader moves {key} away", model.after("moved")._replace(objects=others, moved=moved))


def _group_set_forward(case: Case, model: ModelState) -> Steps:
    """Another program commits the log end offset; no case has readers that follow it."""
    ahead = model.after("group set forward")._replace(group=case.records, group_metadata="", group_is_foreign=True)
    yield Step(f"another program commits the group's offset {case.records}", ahead)


def _group_set_back(case: Case, model: ModelState) -> Steps:
    """Kafka expires the group's offset, or another program sets it back."""
    yield Step("the group's offset expires", model.after("group set back")._replace(group=0, group_metadata=""))


def _snapshot_lost(case: Case, model: ModelState) -> Steps:
    if model.snapshots:
        number = model.snapshots[-1][0]
        yield Step(f"snapshot {number} is lost", model.after("snapshot lost")._replace(snapshots=model.snapshots[:-1]))


def _record_lost(case: Case, model: ModelState) -> Steps:
    """A user deletes a record before another driver starts; later records exist, and no snapshot covers it."""
    if any(d.at != "off" for d in model.drivers[1:]):
        return
    newest = model.snapshots[-1][0] if model.snapshots else 0
    for number, _ in model.records[:-1]:
        if number > newest:
            left = tuple(r for r in model.records if r[0] != number)
            yield Step(f"record {number} is lost", model.after("record lost")._replace(records=left))


def _number_expires(case: Case, model: ModelState) -> Steps:
    """Kafka expires the number that is committed with dead letters."""
    yield Step("the number of the topic expires", model.after("number expires")._replace(number=topic.UNREAD))


def _damaged(case: Case, model: ModelState) -> Steps:
    """Another program damages an object that the ledger has acknowledged."""
    for key, content, generation in _acknowledged(model):
        damaged = model.after("damaged").with_object(key, DAMAGED, generation)
        damaged = damaged._replace(damaged=tuple(sorted((*model.damaged, (key, content, generation)))))
        yield Step(f"another program damages {key}", damaged)


def _deleted(case: Case, model: ModelState) -> Steps:
    """Another program deletes an object that the ledger has acknowledged."""
    for each in _acknowledged(model):
        others = tuple(o for o in model.objects if o != each)
        damaged = tuple(sorted((*model.damaged, each)))
        yield Step(
            f"another program deletes {each[0]}", model.after("deleted")._replace(objects=others, damaged=damaged)
        )


def _overwritten(case: Case, model: ModelState) -> Steps:
    """Another program writes an object at a key whose object was damaged or deleted."""
    for key, _, generation in model.damaged:
        written = model.after("overwritten").with_object(key, FOREIGN, generation)
        yield Step(f"another program writes {key}", written)


def _acknowledged(model: ModelState) -> Iterator[tuple[str, str, int]]:
    true = ledger.truth(model.records, model.snapshots)
    listed = {} if true is None else generations.acknowledged(model, true)
    for key, content, generation in model.objects:
        if key in listed and listed[key].crc == checksum(content):
            yield key, content, generation


_HAPPEN = {
    "damaged": _damaged,
    "deleted": _deleted,
    "overwritten": _overwritten,
    "number expires": _number_expires,
    "record lost": _record_lost,
    "vanish": _vanish,
    "staging lost": _staging_lost,
    "staging damaged": _staging_damaged,
    "moved": _moved,
    "group set forward": _group_set_forward,
    "group set back": _group_set_back,
    "snapshot lost": _snapshot_lost,
}


def _arrives(case: Case, model: ModelState, late: Late) -> ModelState:
    if late.what == "intent":
        return model if case.rules.enforce("p10.intent-names") else _with_intent(model, int(late.name), late.content)
    if late.what == "upload":
        return model.with_upload(Upload(late.name, late.key, model.now))
    if late.what == "staging":
        return model.with_staging(late.name, late.content)
    upload = model.upload(late.name)
    return model if upload is None else model.with_upload(put_part(upload, late.number, late.content))


def _with_intent(model: ModelState, epoch: int, ranges: str) -> ModelState:
    """A delayed intent overwrites the later one of its epoch, as both have the same key."""
    start, end = map(int, ranges.split("-"))
    settings = next(settings for of, _, _, settings in model.intents if of == epoch)
    others = (i for i in model.intents if i[0] != epoch)
    return model._replace(intents=tuple(sorted((*others, (epoch, start, end, settings)))))
