"""`discard-open` and `reset-offsets`, effect by effect, in the order of docs/adr/0005-offset-reset.md.

A command is an actor like a driver: it may stop for good or sleep between any two of its effects. It takes a ledger,
publishes, records, cleans up and commits by the drivers' own steps; here stands what is its own. What it decides is
decided by the sink's own functions (`sink_job.ledger.generations`, `starts` and `in_the_way`).

Bounds: up to three commands, worlds of one or two records (four for `scope: Object`), up to two drivers beside one
command. Where there are several commands no driver moves while one is at work, and each may be killed at any effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from model import generations, ledger, publishing, rounds
from model.model_state import COMMANDS, FOREIGN, Case, Command, Driver, Plan, World
from model.search import Step
from model.starting import removed
from sink_job.ledger.generations import open_object_ranges, rewind, without_open_bytes
from sink_job.ledger.session import changed
from sink_job.ledger.state import LedgerState, PartitionState, Record

Steps = Iterator[Step[World]]
AT_REST = ("asked", "told", "refused", "fenced", "conflict", "killed")
"""Where a command is before and after its work."""


def at_work(world: World) -> list[Driver]:
    return [d for d in world.drivers if d.name in COMMANDS and d.at not in AT_REST]


def killed(world: World) -> Steps:
    for d in at_work(world):
        yield Step(f"{d.name} is killed", world.with_driver(Driver(d.name, at="killed")))


def asked(case: Case, world: World, d: Driver) -> Steps:
    """The first look, before anything is claimed: what can be refused is refused here."""
    earlier = [other for other in world.drivers if other.name in COMMANDS and other.name < d.name]
    if case.in_turn and any(other.at == "asked" or other.at not in AT_REST for other in earlier):
        return
    command, state = case.command(d.name), ledger.truth(world.records, world.snapshots)
    assert state is not None, "no record is lost in these cases"
    takes = d._replace(at="list records", generation=state.value.generation)
    if command.kind == "discard":
        yield Step(f"{d.name} is asked to discard what is open", world.with_driver(takes))
        return
    label = f"{d.name} is asked to reset to {command.to} ({command.nonce}, {command.on_existing})"
    known = _carried_out(case, world, state, command)
    if known is None:
        if generations.planned(case, world, state, d) is None:
            yield Step(f"{label}: refuses", world.with_driver(Driver(d.name, at="refused")))
        else:
            yield Step(label, world.with_driver(takes))
        return
    reset = known.reset
    assert reset is not None, "it was carried out"
    if reset.request != generations.digest_of(command) and case.rules.say("reset.same-request"):
        yield Step(f"{label}: the nonce was another's, refuses", world.with_driver(Driver(d.name, at="refused")))
    elif reset.generation == state.value.generation:
        yield Step(f"{label}: it was carried out", world.with_driver(takes._replace(then="repeat")))
    else:
        told = world.with_driver(Driver(d.name, at="tell"))
        yield Step(f"{label}: it was carried out, and others since", told)


def _carried_out(case: Case, world: World, state: ledger.Kept[LedgerState], command: Command) -> Record | None:
    if not case.rules.say("reset.once"):
        return None
    if not case.rules.say("reset.in-all-claims") and state.value.nonce != command.nonce:
        return None
    return next((r for r in generations.claims(world, state) if r.reset and r.reset.nonce == command.nonce), None)


def look_again(case: Case, world: World, d: Driver) -> Steps:
    """Under the claim nobody can change it any more: what will be recorded is decided now."""
    command, state = case.command(d.name), d.state.value
    if command.kind == "discard":
        body = _discards(case, d)
    elif case.rules.say("reset.looks-again"):
        body = generations.planned(case, world, d.state, d)
        if body is None:
            yield Step(f"{d.name} looks again: refuses", world.with_driver(Driver(d.name, at="refused")))
            return
    else:
        body = generations.record(case, d.state, d)
    if body is None:
        cleans = d._replace(at="clean", then="offsets of the group")
        yield Step(f"{d.name} looks again: nothing is open", world.with_driver(cleans))
        return
    uploads = tuple(sorted(o.upload for p in state.partitions.values() for o in p.open if o.upload))
    plan = Plan(body, replaced=uploads)
    at = "intend" if open_object_ranges(state) and case.rules.say("reset.intent") else "give up"
    yield Step(f"{d.name} looks again", world.with_driver(d._replace(at=at, then="give up", plan=plan)))


def _discards(case: Case, d: Driver) -> ledger.Kept[Record] | None:
    """The record of a discard; None where nothing is open."""
    before = d.state.value.partitions
    after = changed(d.state.value, {name: _given_up(case, p) for name, p in before.items()})
    if not after:
        return None
    return ledger.step(d.state, driver=d.name, epoch=d.epoch, new=after[str(ledger.TP)])


def _given_up(case: Case, p: PartitionState) -> PartitionState:
    if not p.open:
        return p
    if not case.rules.say("discard.goes-back"):
        return PartitionState(next=p.next, committable=p.next, rotation_start=p.next, accepted_end=p.next)
    return without_open_bytes(p) if case.rules.say("discard.scope-object") else rewind(p)


def intend(case: Case, world: World, d: Driver) -> Steps:
    """The intent that covers the open objects comes before the record."""
    start, end = open_object_ranges(d.state.value)[str(ledger.TP)]
    world = rounds.intend(case, world, d, start, end)
    if not case.rules.say("reset.intent-settings"):
        mine = (*world.intents[-1][:3], ())
        world = world._replace(intents=(*(i for i in world.intents if i[0] != d.epoch), mine))
    yield Step(f"{d.name} intends [{start}, {end})", world.with_driver(d._replace(at="give up")))


def give_up(case: Case, world: World, d: Driver) -> Steps:
    """The record: from here on it has happened."""
    if not case.rules.say("reset.record-first") and d.plan is not None:
        gone = [*d.plan.replaced, *sorted(d.state.value.staged())]
        there = [name for name in gone if world.upload(name) or world.staged(name) is not None]
        for name in there:
            world = removed(world, d, name)
        if there:
            yield Step(f"{d.name} removes {', '.join(there)} before its record", world.with_driver(d))
            return
    yield from rounds.record(case, world, d)


def offsets(case: Case, world: World, d: Driver) -> Steps:
    """A reset commits the offsets of the group, once it has looked whether it was fenced; a discard leaves them."""
    if case.command(d.name).kind == "discard":
        yield Step(f"{d.name} is through", world.with_driver(d._replace(at="tell")))
    else:
        yield from publishing.look(case, world, d, ledger.to_commit(d.state, ()))


def tell(case: Case, world: World, d: Driver) -> Steps:
    """It says that it is done."""
    wrong = _untrue(case, world, d)
    if wrong and world.breach is None:
        world = world._replace(breach=("told", f"{d.name} says that it is done, and {wrong}"))
    yield Step(f"{d.name} tells that it is done", world.with_driver(Driver(d.name, at="told")))


def _untrue(case: Case, world: World, d: Driver) -> str:
    """What is not as this command says."""
    command = case.command(d.name)
    true = ledger.truth(world.records, world.snapshots)
    assert true is not None, "no record is lost in these cases"
    if command.kind == "reset":
        mine = [r for r in generations.claims(world, true) if r.reset and r.reset.nonce == command.nonce]
        if not mine:
            return f"no claim holds {command.nonce}"
        start = mine[0].partitions[str(ledger.TP)].state.next
        existing = [r.reset.on_existing for r in mine if r.reset]
        if start != generations.start_of(case, command) or existing[0] != command.on_existing:
            return f"{command.nonce} began at {start} with {existing[0]}"
    if command.kind == "discard" and (d.state.value.pending or d.state.value.uploads() | d.state.value.staged()):
        return f"{', '.join(d.state.value.pending) or 'something'} is neither visible nor given up"
    named = true.value.uploads()
    left = [u.id for u in world.uploads if u.id != FOREIGN and u.began < d.recorded and u.id not in named]
    return f"uploads {', '.join(left)} are left" if left else ""
