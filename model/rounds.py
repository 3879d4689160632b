"""A round: intent, tasks, leftovers, record (P2, P4, P6, P10)."""

from __future__ import annotations

from collections.abc import Iterator

from model import ledger
from model.model_state import NAMES, Case, Driver, Late, Plan, World, key_of
from model.search import Step
from model.starting import is_fenced, put_record, removed, starts_again
from model.writing import Cut, Lost, Task, closings, content, path_of
from sink_job.ledger.state import LedgerState, PartitionState, Record
from sink_job.ledger.transitions import superseded_staging

Steps = Iterator[Step[World]]


def idle(case: Case, world: World, d: Driver) -> Steps:
    """Chooses a round and writes its intent; ends when there is nothing left."""
    state = ledger.partition(d.state)
    if state.next == case.records and not state.open:
        begun = d.begun if case.commands else 0
        yield Step(f"{d.name} is done", world.with_driver(Driver(d.name, at="done", epoch=d.epoch, begun=begun)))
        return
    for end in sorted({min(state.next + n, case.records) for n in case.rounds}):
        paths = [o.path for o in state.open]
        for offset in range(state.next, end):
            path = path_of(case, offset, clock(case, d))
            if path not in paths:
                paths.append(path)
        for closing in closings(case, paths, last=end == case.records):
            yield from _intends(case, world, d, state, end, closing)


def _intends(case: Case, world: World, d: Driver, state: PartitionState, end: int, closing: tuple[str, ...]) -> Steps:
    what = f"[{state.next}, {end}){' closing ' + '/'.join(closing) if closing else ''}"
    oldest = min([state.next, *(o.first for o in state.open)])
    writes = intend(case, world, d, oldest, end).with_driver(d._replace(at="write", numbers=(end,), todo=closing))
    yield Step(f"{d.name} plans {what}", writes)
    earlier = next((f"{start}-{stop}" for epoch, start, stop, _ in world.intents if epoch == d.epoch), None)
    if "late intent" in world.faults and earlier is not None:
        late = Late("intent", str(d.epoch), content=earlier)
        repeated = f"{d.name} plans {what}; a repetition of its last intent's put is on its way"
        yield Step(repeated, _with_late(writes, "late intent", late))


def intend(case: Case, world: World, d: Driver, start: int, end: int) -> World:
    """One intent an epoch; it only grows, so that a late task's uploads of earlier rounds are covered, too."""
    if not case.rules.say("p10.intent"):
        return world
    settings = tuple(sorted(d.state.value.settings.values()))
    mine = [(start, end), *((s, e) for epoch, s, e, _ in world.intents if epoch == d.epoch)]
    grown = (d.epoch, min(s for s, _ in mine), max(e for _, e in mine), settings)
    return world._replace(intents=tuple(sorted((*(i for i in world.intents if i[0] != d.epoch), grown))))


def write(case: Case, world: World, d: Driver) -> Steps:
    """The tasks: uploads are begun, full parts sent."""
    task = Task(case, world, d, staging_name(case, d), clock(case, d))
    try:
        cut = task.cut(ledger.partition(d.state), d.numbers[0], d.todo)
    except Lost as lost:
        yield _makes_again(case, world, d, lost)
        return
    sent = f"{d.name} writes {_told(cut)}"
    world = _sent(world, cut)
    after = d._replace(at="stage" if cut.staging else "record", begun=d.begun + len(cut.begun), numbers=(), todo=())
    plan = _plan(case, d, cut)
    yield Step(sent, world.with_driver(after._replace(plan=plan)))
    yield from _late_attempts(case, world.with_driver(after._replace(plan=plan)), d, cut, sent)


def _makes_again(case: Case, world: World, d: Driver, why: Lost) -> Step[World]:
    """Open objects whose upload or leftovers are gone: made again from their members, or cut anew."""
    state = ledger.partition(d.state)
    if not why.given_up:
        world = blame(case, world, d, "its open objects")
    lost = [o for o in state.open if not case.apart or o.path == why.path]
    replaced = tuple(o.upload for o in lost if o.upload)
    task = Task(case, world, d, staging_name(case, d), clock(case, d))
    if case.recut and (case.scope == "partition" or not case.rules.say("p2.scope-object")):
        first = state.committable if case.rules.say("p2.recut-from") else 0
        cut = Cut(PartitionState(next=first, committable=first, rotation_start=0), (), (), (), None)
        label = f"{d.name}: {why}: will cut anew from {first}"
    else:
        cut = task.rebuild_open(state, why.path if case.apart else None)
        label = f"{d.name}: {why}: makes {'/'.join(key_of(o.path, o.first) for o in lost)} again, {_told(cut)}"
    world = _sent(world, cut)
    if not case.rules.say("p4.replaced-after-record"):
        for upload in replaced:
            world = removed(world, d, upload) if is_fenced(world, d) else world.without_upload(upload)
    plan = _plan(case, d, cut)._replace(replaced=replaced)
    after = d._replace(
        at="stage" if cut.staging else "record", plan=plan, begun=d.begun + len(cut.begun), numbers=(), todo=()
    )
    return Step(label, world.with_driver(after))


def _late_attempts(case: Case, world: World, d: Driver, cut: Cut, sent: str) -> Steps:
    """Another attempt of the same task, thought dead, has a request on its way."""
    for upload in cut.uploads:
        number, etag = upload.parts[-1]
        for fault, late_etag in (("late part", etag + "~"), ("late other part", etag[:-1])):
            if fault in world.faults:
                late = Late("part", upload.id, number=number, content=late_etag)
                yield Step(f"{sent}; a late attempt's part {number} is on its way", _with_late(world, fault, late))
    for upload in cut.uploads:
        if "late upload" in world.faults and upload.id in cut.begun:
            late = Late("upload", f"{upload.id}-late", key=upload.key)
            yield Step(f"{sent}; a late attempt begins {upload.key}, too", _with_late(world, "late upload", late))
    if cut.staging and "late staging" in world.faults:
        late = Late("staging", staging_name(case, d, attempt="late"))
        yield Step(f"{sent}; a late attempt's leftovers are on their way", _with_late(world, "late staging", late))


def _with_late(world: World, fault: str, late: Late) -> World:
    return world.after(fault)._replace(late=tuple(sorted((*world.late, late))))


def stage(case: Case, world: World, d: Driver) -> Steps:
    """Puts the leftovers, before the record that names them."""
    assert d.plan is not None, "there is a round"
    assert d.plan.staging is not None, "it has leftovers"
    if not case.rules.say("p6.staged-first") and d.numbers == ():
        yield Step(f"{d.name} leaves its leftovers for later", world.with_driver(d._replace(at="record")))
        return
    name, content = d.plan.staging
    at = "record" if case.rules.say("p6.staged-first") else "publish"
    plan = d.plan if at == "record" else None
    after = d._replace(at=at, plan=plan, numbers=())
    yield Step(f"{d.name} stages {content} in {name}", world.with_staging(name, content).with_driver(after))


def record(case: Case, world: World, d: Driver) -> Steps:
    """Appends the record: from here on it is decided."""
    assert d.plan is not None, "there is something to record"
    if not case.rules.say("p2.recorded-first"):
        early = [o for o in d.plan.record.value.closed if world.upload(o.upload) and world.object(o.key) is None]
        for o in early:
            shown = world.without_upload(o.upload).with_object(o.key, content(o))
            yield Step(f"{d.name} completes {o.key} ({o.upload}) without a record", shown.with_driver(d))
        if early:
            return
    body, stored = d.plan.record, dict(world.records).get(d.plan.record.value.number)
    number, rules = body.value.number, case.rules
    if stored is None or not rules.say("p4.conditional"):
        put = put_record(world, body)
        yield Step(f"{d.name} records {number}: {_says(body)}", put.with_driver(_recorded(case, d, body)))
        if "record reply lost" in world.faults:
            again = d if rules.say("p4.frozen-body") else d._replace(at="idle", plan=None)
            yield Step(
                f"{d.name} records {number}: {_says(body)}, the reply is lost",
                put.after("record reply lost").with_driver(again),
            )
        return
    own = stored is body or (not rules.say("p4.frozen-body") and stored.value.attempt == d.name)
    if own and rules.say("p4.own-record"):
        yield Step(f"{d.name} records {number}: 412, its own", world.with_driver(_recorded(case, d, body)))
    elif rules.say("p4.fenced-stops"):
        yield fenced(case, world, d, f"{d.name} records {number}: 412, it is fenced")
    else:
        yield Step(f"{d.name} records {number}: 412, goes on", world.with_driver(_recorded(case, d, body)))


def fenced(case: Case, world: World, d: Driver, label: str) -> Step[World]:
    """A fenced driver stops; it aborts only what it began and never recorded."""
    begun = set(d.plan.begun) if d.plan else set()
    if not case.rules.say("p4.fenced-aborts-own"):
        begun |= d.state.value.uploads()
    if not is_fenced(world, d):
        world = world._replace(
            breach=("fenced by nobody", f"{d.name} stops, though nobody else has claimed the ledger")
        )
    for upload in sorted(begun):
        world = removed(world, d, upload)
    again = starts_again(case, d)
    label = f"{label}{', aborts ' + '/'.join(sorted(begun)) if begun else ''}{', starts again' if again else ''}"
    return Step(label, world.with_driver(again or Driver(d.name, at="fenced")))


def _recorded(case: Case, d: Driver, body: ledger.Kept[Record]) -> Driver:
    """The driver after its record; what it replaces goes next."""
    assert d.plan is not None, "there was something to record"
    state = ledger.after(d.state, body)
    acknowledged = body.value.acknowledged
    todo = (*_superseded(case, d.state.value, state.value), *d.plan.replaced)
    if d.then == "give up":
        return given_up(d, state, body.value.number)
    d = d._replace(
        state=state, visible=tuple(k for k in d.visible if k not in acknowledged), todo=todo, recorded=body.value.number
    )
    if d.then in ("", "idle", "maintain"):
        d = d._replace(
            then="maintain" if body.value.number - state.value.audited_to >= case.snapshot_every > 0 else "idle"
        )
    if d.plan is not None and d.plan.staging and not case.rules.say("p6.staged-first"):
        return d._replace(at="stage", numbers=(0,), todo=())
    return d._replace(at="sweep" if todo else "publish", plan=None)


def _superseded(case: Case, before: LedgerState, after: LedgerState) -> list[str]:
    """The staging objects that nobody needs any more; without `p6.still-named`, that some object needs no more."""
    if not case.rules.say("p10.superseded"):
        return []
    if case.rules.say("p6.still-named"):
        return superseded_staging(before, after, [str(ledger.TP)])
    kept = {(o.path, extent.name) for p in after.partitions.values() for o in p.open for extent in o.staged}
    named = ((o.path, extent.name) for p in before.partitions.values() for o in p.open for extent in o.staged)
    return sorted({name for path, name in named if (path, name) not in kept})


def given_up(d: Driver, state: ledger.Kept[LedgerState], number: int) -> Driver:
    """A command after the record by which nothing names any more what was open: its bytes go one by one."""
    assert d.plan is not None, "there was something to record"
    todo = (*d.plan.replaced, *sorted(d.state.value.staged() - state.value.staged()))
    d = d._replace(state=state, epoch=state.value.epoch, recorded=number, plan=None, visible=())
    return d._replace(at="remove" if todo else "clean", todo=todo, then="clean" if todo else "offsets of the group")


def sweep(case: Case, world: World, d: Driver) -> Steps:
    """Removes what the record just written has replaced."""
    for name in d.todo:
        world = removed(world, d, name)
    yield Step(f"{d.name} removes {', '.join(d.todo)}", world.with_driver(d._replace(at="publish", todo=())))


def blame(case: Case, world: World, d: Driver, what: str) -> World:
    """Where nothing can be lost, nothing may be made again, except by a driver that is fenced and can't know it yet."""
    if loses(case) or is_fenced(world, d):
        return world
    return world._replace(breach=("made again needlessly", f"{d.name} makes {what} again, but nothing was lost"))


def loses(case: Case) -> bool:
    """Whether uploads or staging objects may be lost in this case."""
    harmless = {
        "record reply lost",
        "completion reply lost",
        "late upload",
        "late staging",
        "error in 200",
        "snapshot lost",
        "moved",
        "group set forward",
        "group set back",
        "late intent",
    }
    return not set(case.faults) <= harmless


def staging_name(case: Case, d: Driver, attempt: str = "0") -> str:
    """Unique to epoch, round and attempt; without that sentence, to the round alone."""
    number = d.state.value.number + 1
    return f"{d.epoch}.{number}.{attempt}" if case.rules.say("p6.unique-names") else f"0.{number}"


def clock(case: Case, d: Driver) -> int:
    """The round's clock: of each driver its own, since time has passed when the second one starts; or the host's."""
    if not case.clocks:
        return NAMES.index(d.name)
    host, state = case.clocks[min(ledger.partition(d.state).next, len(case.clocks) - 1)], d.state.value
    waits = ledger.partition(d.state).open and case.rules.say("p2.clock-forward")
    return max(host, state.clock) if waits else host


def _plan(case: Case, d: Driver, cut: Cut) -> Plan:
    body = ledger.step(
        d.state,
        driver=d.name,
        epoch=d.epoch,
        new=cut.state,
        named=cut.named,
        rotations=cut.rotations,
        clock=clock(case, d) if case.clocks else None,
        acknowledged=d.visible if case.rules.say("p9.seen-visible") else ledger.pending(d.state),
    )
    return Plan(body, staging=cut.staging, begun=cut.begun)


def _sent(world: World, cut: Cut) -> World:
    for upload in cut.uploads:
        world = world.with_upload(upload)
    return world


def _told(cut: Cut) -> str:
    uploads = (f"{u.key} as {u.id} ({', '.join(f'{n}={etag}' for n, etag in u.parts)})" for u in cut.uploads)
    return "; ".join(uploads) or "nothing"


def _says(body: ledger.Kept[Record]) -> str:
    record = body.value
    change = record.partitions.get(str(ledger.TP))
    said = [f"next {change.state.next}"] if change else []
    said += [f"named {o.key} as {o.upload}" for o in record.closed]
    said += [f"seen {key}" for key in record.acknowledged]
    return ", ".join(said) or "nothing"
