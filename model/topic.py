"""Producing dead letters to a topic: after their objects are visible, and before these are acknowledged (ADR 47)."""

from __future__ import annotations

from collections.abc import Iterator

from model import ledger
from model.model_state import COMMANDS, Case, Driver, ModelState
from model.rounds import fenced
from model.search import Step
from model.starting import is_fenced
from model.writing import DEAD_LETTERS, members
from sink_job.ledger.state import ClosedObject

Steps = Iterator[Step[ModelState]]

UNREAD = -1
"""The number of a driver that has not read it yet, and that of a group whose offset has expired."""


def dead_letters(case: Case, d: Driver) -> list[ClosedObject]:
    """The closed dead-letter objects that are not acknowledged, if they have to be in a topic."""
    return [o for o in ledger.pending(d.state).values() if o.path == DEAD_LETTERS] if case.topic else []


def missing(case: Case, d: Driver) -> str:
    """The dead letters that the driver has to produce before it acknowledges anything."""
    if not case.rules.enforce("topic.before-acknowledgement"):
        return d.unproduced
    found = "".join(members(case, o) for o in dead_letters(case, d) if d.number < o.record)
    return "".join(record for record in found if record not in d.found)


def acknowledging(case: Case, d: Driver) -> Driver:
    """The driver that acknowledges what is visible. Without the rule it produces the dead letters afterwards."""
    if case.rules.enforce("topic.before-acknowledgement"):
        return d
    late = "".join(members(case, o) for o in dead_letters(case, d) if o.key in d.visible)
    return d._replace(unproduced=d.unproduced + late)


def produce(case: Case, model: ModelState, d: Driver) -> Steps:
    """Starts the producer, reads the number, and produces what has a higher one in a transaction."""
    rules = case.rules
    if d.number == UNREAD and (d.producer or not rules.enforce("topic.read-after-start")):
        yield from _read(case, model, d)
    elif not d.producer:
        started = model._replace(producer=model.producer + 1)
        yield Step(f"{d.name} starts its producer", started.with_driver(d._replace(producer=started.producer)))
    elif d.producer != model.producer and rules.enforce("topic.fences"):
        yield _fenced(case, model, d)
    else:
        yield from _transaction(case, model, d)


def _read(case: Case, model: ModelState, d: Driver) -> Steps:
    if model.number == UNREAD:
        found = model.topic if case.rules.enforce("topic.searches") else ""
        label = f"{d.name} finds no number, and {found or 'nothing'} in the topic"
        yield Step(label, model.with_driver(d._replace(number=0, found=found)))
    else:
        read = d._replace(number=model.number, found="")
        yield Step(f"{d.name} reads the number {model.number}", model.with_driver(read))


def _fenced(case: Case, model: ModelState, d: Driver) -> Step[ModelState]:
    """The broker rejects the producer. The driver checks the head of the ledger, and starts its producer again."""
    label = f"{d.name} is rejected by the topic and checks the head"
    if is_fenced(model, d):
        return fenced(case, model, d, f"{label}: it is fenced")
    again = d._replace(producer=0)
    if case.rules.enforce("topic.reads-again"):
        again = again._replace(number=UNREAD, found="")
    return Step(label, model.with_driver(again))


def _transaction(case: Case, model: ModelState, d: Driver) -> Steps:
    letters = missing(case, d)
    number = d.state.value.number
    after = d._replace(number=number, found="", unproduced="")
    produced = model._replace(topic="".join(sorted(model.topic + letters)))
    label = f"{d.name} produces {letters}"
    if case.rules.enforce("topic.one-transaction"):
        yield Step(f"{label} with the number {number}", produced._replace(number=number).with_driver(after))
    else:
        yield Step(label, produced.with_driver(after._replace(at="commit number")))


def commit_number(case: Case, model: ModelState, d: Driver) -> Steps:
    """The number after the records, without `topic.one-transaction`."""
    committed = model._replace(number=d.number)
    yield Step(f"{d.name} commits the number {d.number}", committed.with_driver(d._replace(at="publish")))


def leaves_to_driver(case: Case, d: Driver) -> bool:
    """Whether a command ends because dead letters may not be in the topic."""
    return d.name in COMMANDS and bool(dead_letters(case, d)) and case.rules.enforce("topic.left-to-driver")


def broken(case: Case, model: ModelState) -> Iterator[tuple[str, str]]:
    """What must hold of the topic in each state."""
    if len(set(model.topic)) < len(model.topic):
        yield "duplicate", f"the topic has {model.topic}"
    ahead = [n for n in _rejected(min(model.group, case.records)) if str(n) not in model.topic]
    if ahead and not model.group_is_foreign:
        yield "group ahead", f"the group's offset is {model.group}, but {ahead} are not in the topic"


def lost(case: Case, model: ModelState, d: Driver) -> Iterator[tuple[str, str]]:
    """What must hold of the topic when a driver is done."""
    if not set(map(str, _rejected(case.records))) <= set(model.topic):
        yield "lost", f"{d.name} is done, but only {model.topic or 'nothing'} is in the topic"


def _rejected(end: int) -> range:
    """The rejected records below `end`."""
    return range(1, end, 2)
