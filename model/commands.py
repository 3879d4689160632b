"""`discard-open` and `reset-offsets`, effect by effect, in the order of docs/adr/0005-offset-reset.md.

A command is an actor like a driver: it can crash or sleep between any two of its effects. It claims the ledger,
publishes, records, cleans up and commits by the steps of a driver. This module holds its additional steps. The sink's
own functions make its decisions (`sink_job.ledger.generations`, `sink_job.maintenance.reset_targets` and
`existing_objects`).

Bounds: up to three commands, one or two records (four for `scope: Object`), up to two drivers beside one command. In
cases with several commands no driver takes a step while a command works, and each command can be killed at any effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from model import generations, ledger, publishing, repairs, rounds
from model.model_state import COMMANDS, FOREIGN, Case, Command, Driver, ModelState, Plan
from model.search import Step
from model.starting import removed
from sink_job.ledger.generations import open_object_ranges, rewind, without_open_bytes
from sink_job.ledger.session import changed
from sink_job.ledger.state import LedgerState, PartitionState, Record

Steps = Iterator[Step[ModelState]]
AT_REST = ("requested", "reported", "rejected", "fenced", "conflict", "killed")
"""The positions of a command before and after its work."""


def at_work(model: ModelState) -> list[Driver]:
    return [d for d in model.drivers if d.name in COMMANDS and d.at not in AT_REST]


def kill(model: ModelState) -> Steps:
    for d in at_work(model):
        yield Step(f"{d.name} is killed", model.with_driver(Driver(d.name, at="killed")))


def requested(case: Case, model: ModelState, d: Driver) -> Steps:
    """The first check, before the claim: an invalid request is rejected here."""
    earlier = [other for other in model.drivers if other.name in COMMANDS and other.name < d.name]
    if case.in_turn and any(other.at == "requested" or other.at not in AT_REST for other in earlier):
        return
    command, state = case.command(d.name), ledger.truth(model.records, model.snapshots)
    assert state is not None, "no record is lost in these cases"
    if command.kind in repairs.KINDS:
        yield from repairs.requested(case, model, d, state)
        return
    takes = d._replace(at="list records", generation=state.value.generation)
    if command.kind == "discard":
        yield Step(f"{d.name} is requested to discard open objects", model.with_driver(takes))
        return
    label = f"{d.name} is requested to reset to {command.to} ({command.nonce}, {command.on_existing})"
    known = _carried_out(case, model, state, command)
    if known is None:
        if generations.planned(case, model, state, d) is None:
            yield Step(f"{label}: rejects", model.with_driver(Driver(d.name, at="rejected")))
        else:
            yield Step(label, model.with_driver(takes))
        return
    reset = known.reset
    assert reset is not None, "it was carried out"
    if reset.request != generations.digest_of(command) and case.rules.enforce("reset.same-request"):
        yield Step(
            f"{label}: the nonce was used by another request, rejects", model.with_driver(Driver(d.name, at="rejected"))
        )
    elif reset.generation == state.value.generation:
        yield Step(f"{label}: it was carried out", model.with_driver(takes._replace(then="repeat")))
    else:
        reported = model.with_driver(Driver(d.name, at="report"))
        yield Step(f"{label}: it was carried out, and later resets followed", reported)


def _carried_out(case: Case, model: ModelState, state: ledger.Interned[LedgerState], command: Command) -> Record | None:
    if not case.rules.enforce("reset.once"):
        return None
    if not case.rules.enforce("reset.in-all-claims") and state.value.nonce != command.nonce:
        return None
    return next((r for r in generations.claims(model, state) if r.reset and r.reset.nonce == command.nonce), None)


def check_again(case: Case, model: ModelState, d: Driver) -> Steps:
    """Decides the record under the claim, when no other writer can change the result."""
    command, state = case.command(d.name), d.state.value
    if command.kind == "discard":
        body = _discards(case, d)
    elif case.rules.enforce("reset.checks-again"):
        body = generations.planned(case, model, d.state, d)
        if body is None:
            yield Step(f"{d.name} checks again: rejects", model.with_driver(Driver(d.name, at="rejected")))
            return
    else:
        body = generations.record(case, d.state, d)
    if body is None:
        cleans = d._replace(at="clean", then="offsets of the group")
        yield Step(f"{d.name} checks again: nothing is open", model.with_driver(cleans))
        return
    uploads = tuple(sorted(o.upload for p in state.partitions.values() for o in p.open if o.upload))
    plan = Plan(body, replaced=uploads)
    at = "intend" if open_object_ranges(state) and case.rules.enforce("reset.intent") else "discard open"
    yield Step(f"{d.name} checks again", model.with_driver(d._replace(at=at, then="discard open", plan=plan)))


def _discards(case: Case, d: Driver) -> ledger.Interned[Record] | None:
    """The record of a discard; None if no object is open."""
    before = d.state.value.partitions
    after = changed(d.state.value, {name: _discarded(case, p) for name, p in before.items()})
    if not after:
        return None
    return ledger.step(d.state, driver=d.name, epoch=d.epoch, new=after[str(ledger.TP)])


def _discarded(case: Case, p: PartitionState) -> PartitionState:
    if not p.open:
        return p
    if not case.rules.enforce("discard.rewinds"):
        return PartitionState.start(p.next)
    return without_open_bytes(p) if case.rules.enforce("discard.scope-object") else rewind(p)


def intend(case: Case, model: ModelState, d: Driver) -> Steps:
    """The intent that covers the open objects comes before the record."""
    start, end = open_object_ranges(d.state.value)[str(ledger.TP)]
    model = rounds.intend(case, model, d, start, end)
    if not case.rules.enforce("reset.intent-settings"):
        mine = (*model.intents[-1][:3], ())
        model = model._replace(intents=(*(i for i in model.intents if i[0] != d.epoch), mine))
    yield Step(f"{d.name} intends [{start}, {end})", model.with_driver(d._replace(at="discard open")))


def discard_open(case: Case, model: ModelState, d: Driver) -> Steps:
    """Appends the record, which decides the outcome."""
    if not case.rules.enforce("reset.record-first") and d.plan is not None:
        gone = [*d.plan.replaced, *sorted(d.state.value.staged())]
        there = [name for name in gone if model.upload(name) or model.staged(name) is not None]
        for name in there:
            model = removed(model, d, name)
        if there:
            yield Step(f"{d.name} removes {', '.join(there)} before its record", model.with_driver(d))
            return
    yield from rounds.record(case, model, d)


def offsets(case: Case, model: ModelState, d: Driver) -> Steps:
    """A reset commits the group's offsets after it has checked that it is not fenced; a discard commits nothing."""
    if case.command(d.name).kind == "discard":
        yield Step(f"{d.name} has finished", model.with_driver(d._replace(at="report")))
    else:
        yield from publishing.check_head(case, model, d, ledger.to_commit(d.state, ()))


def report(case: Case, model: ModelState, d: Driver) -> Steps:
    """The command reports that it is done."""
    wrong = _untrue(case, model, d)
    if wrong and model.breach is None:
        model = model._replace(breach=("reported", f"{d.name} reports that it is done, but {wrong}"))
    yield Step(f"{d.name} reports that it is done", model.with_driver(Driver(d.name, at="reported")))


def _untrue(case: Case, model: ModelState, d: Driver) -> str:
    """The part of the work that is not done; empty if all is done."""
    command = case.command(d.name)
    true = ledger.truth(model.records, model.snapshots)
    assert true is not None, "no record is lost in these cases"
    if command.kind == "reset":
        mine = [r for r in generations.claims(model, true) if r.reset and r.reset.nonce == command.nonce]
        if not mine:
            return f"no claim holds {command.nonce}"
        start = mine[0].partitions[str(ledger.TP)].state.next
        existing = [r.reset.on_existing for r in mine if r.reset]
        if start != generations.start_of(case, command) or existing[0] != command.on_existing:
            return f"{command.nonce} began at {start} with {existing[0]}"
    if command.kind == "discard" and (d.state.value.pending or d.state.value.uploads() | d.state.value.staged()):
        return f"{', '.join(d.state.value.pending) or 'something'} is neither visible nor discarded"
    if command.kind == "accept":
        return ""
    named = true.value.uploads()
    ours = (u for u in model.uploads if u.id != FOREIGN and u.id[0] not in COMMANDS)
    left = [u.id for u in ours if u.began < d.recorded and u.id not in named]
    return f"uploads {', '.join(left)} are left" if left else ""
