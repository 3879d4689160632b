"""`repair` and `repair --accept-loss`, effect by effect (docs/adr/0050 and 0052).

A repair claims nothing and works beside drivers: it reads what is at the key of a damaged object, uploads the recorded
bytes, copies the damaged ones, and completes its upload on the condition that the key is as it was read. An `accept` is
the command of a user whose objects no source can restore: it claims the ledger and records them as lost.

Bounds: one object at a time, up to two commands, and each damage once. The check of the generation and the completion
are one step, and no repair completes an upload between the check of a reset for existing objects and its record:
docs/cli.md does not allow both at once. The uploads of a killed repair are left.
"""

from __future__ import annotations

from collections.abc import Iterator

from model import generations, ledger
from model.ledger import Interned
from model.model_state import COMMANDS, DAMAGED, FOREIGN, Case, Driver, ModelState, Plan, Upload, checksum
from model.search import Step
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject

Steps = Iterator[Step[ModelState]]

KINDS = ("repair", "accept")


def requested(case: Case, model: ModelState, d: Driver, state: Interned[LedgerState]) -> Steps:
    """The command reads the ledger and looks for damage; without any it ends."""
    kind, damaged = case.command(d.name).kind, _damaged(model, state)
    d = d._replace(generation=state.value.generation)
    if not damaged:
        yield Step(f"{d.name} is requested to {kind}: no damage", model.with_driver(Driver(d.name, at="reported")))
    elif kind == "accept":
        yield Step(f"{d.name} is requested to accept losses", model.with_driver(d._replace(at="list records")))
    else:
        for o in damaged:
            label = f"{d.name} is requested to repair {o.key}"
            yield Step(label, model.with_driver(d._replace(at="inspect", state=state, key=o.key)))


def inspect(case: Case, model: ModelState, d: Driver) -> Steps:
    """Reads what is at the key."""
    there = model.object(d.key) or ""
    if checksum(there) == _object(model, d).crc:
        yield Step(f"{d.name} finds {d.key} as recorded", model.with_driver(_ends(d, "reported")))
        return
    label = f"{d.name} finds {there or 'nothing'} at {d.key}"
    yield Step(label, model.with_driver(d._replace(at="upload again", there=there)))


def upload(case: Case, model: ModelState, d: Driver) -> Steps:
    """Uploads the recorded bytes; without the rule, all that Kafka holds from the first offset on."""
    o = _object(model, d)
    content = _content(o)
    if not case.rules.enforce("repair.recorded-bytes"):
        content = "".join(map(str, range(o.first, case.records)))
    sent = model.with_upload(Upload(_upload_id(d), o.key, model.now, ((1, content),)))
    is_kept = d.there and case.rules.enforce("repair.kept-first")
    after = d._replace(at="keep" if is_kept else "complete again")
    yield Step(f"{d.name} uploads {content} for {o.key} as {_upload_id(d)}", sent.with_driver(after))


def keep(case: Case, model: ModelState, d: Driver) -> Steps:
    """Copies the damaged bytes, if they are still the ones that were read."""
    if (model.object(d.key) or "") != d.there:
        yield _again(model, d, f"{d.name} copies {d.key}: changed, inspects it again")
        return
    kept = tuple(sorted({*model.kept, (d.key, d.there)}))
    label = f"{d.name} copies {d.there} of {d.key}"
    yield Step(label, model._replace(kept=kept).with_driver(d._replace(at="complete again")))


def complete(case: Case, model: ModelState, d: Driver) -> Steps:
    """Completes the upload, if no reset was carried out and the key is as it was read."""
    if _is_reset_at_work(case, model):
        return
    o, found, there = _object(model, d), model.upload(_upload_id(d)), model.object(d.key) or ""
    label = f"{d.name} completes {o.key} ({_upload_id(d)})"
    true = ledger.truth(model.records, model.snapshots)
    assert true is not None, "no record is lost in these cases"
    if true.value.generation != d.generation and case.rules.enforce("repair.generation"):
        rejects = model.without_upload(_upload_id(d)).with_driver(_ends(d, "rejected"))
        yield Step(f"{label}: an offset reset was carried out, rejects", rejects)
        return
    if found is None:
        yield _again(model, d, f"{label}: NoSuchUpload, inspects it again")
        return
    if there != d.there and case.rules.enforce("repair.condition"):
        yield _again(model, d, f"{label}: 412, inspects it again")
        return
    done = model.without_upload(found.id).with_object(o.key, found.parts[0][1], d.generation)
    done = done._replace(damaged=tuple(each for each in model.damaged if each[0] != o.key))
    if there in (DAMAGED, FOREIGN) and (o.key, there) not in model.kept:
        done = done._replace(breach=("discarded", f"{d.name} replaces {there} at {o.key}, of which there is no copy"))
    if true.value.generation != d.generation:
        done = done._replace(breach=("late", f"{o.key} becomes visible in generation {d.generation}, which has ended"))
    yield Step(label, done.with_driver(_ends(d, "reported")))


def _is_reset_at_work(case: Case, model: ModelState) -> bool:
    """Whether the newest record is one of a reset before its own: the reset checks for existing objects."""
    newest = model.records[-1][1].value
    return newest.attempt in COMMANDS and newest.reset is None and case.command(newest.attempt).kind == "reset"


def accept(case: Case, model: ModelState, d: Driver) -> Steps:
    """Decides the record under the claim."""
    objects = _damaged(model, d.state)
    if not objects:
        yield Step(f"{d.name} finds everything as recorded", model.with_driver(d._replace(at="report")))
        return
    body = ledger.step(d.state, driver=d.name, epoch=d.epoch, lost=[_lost(case, o) for o in objects])
    label = f"{d.name} accepts the loss of {', '.join(o.key for o in objects)}"
    after = d._replace(at="record losses", then="record losses", plan=Plan(body))
    yield Step(label, model.with_driver(after))


def _lost(case: Case, o: ClosedObject) -> LostObject:
    offsets = o.offsets if case.rules.enforce("loss.whole-object") else checksum_range(o.first, o.last)
    return LostObject(o.topic, o.partition, o.key, o.path, o.first, o.last, offsets)


def _damaged(model: ModelState, state: Interned[LedgerState]) -> list[ClosedObject]:
    """The acknowledged objects that are not as recorded, of the current generation."""
    keys = {key for key, _, generation in model.damaged if generation == state.value.generation}
    listed = generations.acknowledged(model, state)
    return [o for key, o in sorted(listed.items()) if key in keys]


def _object(model: ModelState, d: Driver) -> ClosedObject:
    return generations.acknowledged(model, d.state)[d.key]


def _content(o: ClosedObject) -> str:
    """The recorded content: the model's checksums determine it."""
    return str(o.crc)[1:]


def _upload_id(d: Driver) -> str:
    return f"{d.name}{d.started}"


def _again(model: ModelState, d: Driver, label: str) -> Step[ModelState]:
    """Aborts the upload and starts over with another one."""
    after = d._replace(at="inspect", there="", started=d.started + 1)
    return Step(label, model.without_upload(_upload_id(d)).with_driver(after))


def _ends(d: Driver, at: str) -> Driver:
    return Driver(d.name, at=at)
