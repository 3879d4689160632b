"""A round: intent, tasks, staged remainder, record (P2, P4, P6, P10)."""

from __future__ import annotations

from collections.abc import Iterator

from model import ledger
from model.model_state import NAMES, Case, Driver, Late, ModelState, Plan, key_of
from model.search import Step
from model.starting import is_fenced, put_record, removed, starts_again
from model.writing import DataGone, Task, TaskResult, closings, content, id_of, skipped_below
from sink_job.ledger.state import LedgerState, PartitionState, Record
from sink_job.ledger.transitions import superseded_staging
from sink_job.rotation.types import ObjectId, RotationState

Steps = Iterator[Step[ModelState]]


def idle(case: Case, model: ModelState, d: Driver) -> Steps:
    """Chooses a round and writes its intent; ends when no records are left."""
    state = ledger.partition(d.state)
    if state.next == case.records and not state.open:
        started = d.started if case.commands else 0
        yield Step(f"{d.name} is done", model.with_driver(Driver(d.name, at="done", epoch=d.epoch, started=started)))
        return
    for end in sorted({min(state.next + n, case.records) for n in case.rounds}):
        objects = [o.id for o in state.open]
        skipped = skipped_below(case, d.name, state, end)
        for offset in range(state.next, end):
            if offset in skipped:
                continue
            target = id_of(case, offset, clock(case, d))
            if target not in objects:
                objects.append(target)
        for closing in closings(case, objects, last=end == case.records):
            yield from _intends(case, model, d, state, end, closing)


def _intends(
    case: Case, model: ModelState, d: Driver, state: PartitionState, end: int, closing: tuple[ObjectId, ...]
) -> Steps:
    what = f"[{state.next}, {end}){' closing ' + '/'.join(map(_name, closing)) if closing else ''}"
    oldest = min([state.next, *(o.first for o in state.open)])
    writes = intend(case, model, d, oldest, end).with_driver(d._replace(at="write", numbers=(end,), closing=closing))
    yield Step(f"{d.name} plans {what}", writes)
    earlier = next((f"{start}-{stop}" for epoch, start, stop, _ in model.intents if epoch == d.epoch), None)
    if "late intent" in model.faults and earlier is not None:
        late = Late("intent", str(d.epoch), content=earlier)
        repeated = f"{d.name} plans {what}; a repeated put of its previous intent is delayed"
        yield Step(repeated, _with_late(writes, "late intent", late))


def _name(target: ObjectId) -> str:
    return target.path if target.schema is None else f"{target.path} {target.schema}"


def intend(case: Case, model: ModelState, d: Driver, start: int, end: int) -> ModelState:
    """One intent per epoch. It only grows, so it also covers uploads of delayed tasks of earlier rounds."""
    if not case.rules.enforce("p10.intent"):
        return model
    settings = tuple(sorted(d.state.value.settings.values()))
    mine = [(start, end), *((s, e) for epoch, s, e, _ in model.intents if epoch == d.epoch)]
    grown = (d.epoch, min(s for s, _ in mine), max(e for _, e in mine), settings)
    return model._replace(intents=tuple(sorted((*(i for i in model.intents if i[0] != d.epoch), grown))))


def write(case: Case, model: ModelState, d: Driver) -> Steps:
    """The tasks: uploads are started, full parts sent."""
    task = Task(case, model, d, staging_name(case, d), clock(case, d))
    try:
        result = task.write(ledger.partition(d.state), d.numbers[0], d.closing)
    except DataGone as lost:
        yield _rebuilds_open(case, model, d, lost)
        return
    sent = f"{d.name} writes {_describe_uploads(result)}"
    model = _sent(model, result)
    after = d._replace(
        at="stage" if result.staging else "record", started=d.started + len(result.started), numbers=(), closing=()
    )
    plan = _plan(case, d, result)
    yield Step(sent, model.with_driver(after._replace(plan=plan)))
    yield from _late_attempts(case, model.with_driver(after._replace(plan=plan)), d, result, sent)


def _rebuilds_open(case: Case, model: ModelState, d: Driver, why: DataGone) -> Step[ModelState]:
    """Open objects whose upload or staged remainder is lost are rebuilt from their members, or written again."""
    state = ledger.partition(d.state)
    if not why.discarded:
        model = check_needless(case, model, d, "its open objects")
    lost = [o for o in state.open if not case.apart or o.path == why.path]
    replaced = tuple(o.upload for o in lost if o.upload)
    task = Task(case, model, d, staging_name(case, d), clock(case, d))
    if case.rewrite_open and (case.scope == "partition" or not case.rules.enforce("p2.scope-object")):
        first = state.committable if case.rules.enforce("p2.rewrite-from") else 0
        result = TaskResult(PartitionState(RotationState.start(first), rotation_start=0), (), (), (), None)
        label = f"{d.name}: {why}: will write again from {first}"
    else:
        result = task.rebuild_open(state, why.path if case.apart else None)
        keys = "/".join(key_of(o.path, o.first) for o in lost)
        label = f"{d.name}: {why}: rebuilds {keys}, {_describe_uploads(result)}"
    model = _sent(model, result)
    if not case.rules.enforce("p4.replaced-after-record"):
        for upload in replaced:
            model = removed(model, d, upload) if is_fenced(model, d) else model.without_upload(upload)
    plan = _plan(case, d, result)._replace(replaced=replaced)
    after = d._replace(
        at="stage" if result.staging else "record",
        plan=plan,
        started=d.started + len(result.started),
        numbers=(),
        todo=(),
    )
    return Step(label, model.with_driver(after))


def _late_attempts(case: Case, model: ModelState, d: Driver, result: TaskResult, sent: str) -> Steps:
    """An ended attempt of the same task has a delayed request."""
    for upload in result.uploads:
        number, etag = upload.parts[-1]
        for fault, late_etag in (("late part", etag + "~"), ("late other part", etag[:-1])):
            if fault in model.faults:
                late = Late("part", upload.id, number=number, content=late_etag)
                yield Step(f"{sent}; part {number} of a late attempt is delayed", _with_late(model, fault, late))
    for upload in result.uploads:
        if "late upload" in model.faults and upload.id in result.started:
            late = Late("upload", f"{upload.id}-late", key=upload.key)
            yield Step(f"{sent}; a late attempt also starts {upload.key}", _with_late(model, "late upload", late))
    if result.staging and "late staging" in model.faults:
        late = Late("staging", staging_name(case, d, attempt="late"))
        yield Step(
            f"{sent}; the staged remainder of a late attempt is delayed", _with_late(model, "late staging", late)
        )


def _with_late(model: ModelState, fault: str, late: Late) -> ModelState:
    return model.after(fault)._replace(late=tuple(sorted((*model.late, late))))


def stage(case: Case, model: ModelState, d: Driver) -> Steps:
    """Puts the staged remainder before the record that names it."""
    assert d.plan is not None, "there is a round"
    assert d.plan.staging is not None, "it has a staged remainder"
    if not case.rules.enforce("p6.staged-first") and d.numbers == ():
        yield Step(f"{d.name} postpones its staged remainder", model.with_driver(d._replace(at="record")))
        return
    name, content = d.plan.staging
    at = "record" if case.rules.enforce("p6.staged-first") else "publish"
    plan = d.plan if at == "record" else None
    after = d._replace(at=at, plan=plan, numbers=())
    yield Step(f"{d.name} stages {content} in {name}", model.with_staging(name, content).with_driver(after))


def record(case: Case, model: ModelState, d: Driver) -> Steps:
    """Appends the record, which decides the round."""
    assert d.plan is not None, "there is something to record"
    if not case.rules.enforce("p2.recorded-first"):
        early = [o for o in d.plan.record.value.closed if model.upload(o.upload) and model.object(o.key) is None]
        for o in early:
            shown = model.without_upload(o.upload).with_object(o.key, content(o))
            yield Step(f"{d.name} completes {o.key} ({o.upload}) without a record", shown.with_driver(d))
        if early:
            return
    body, stored = d.plan.record, dict(model.records).get(d.plan.record.value.number)
    number, rules = body.value.number, case.rules
    if stored is None or not rules.enforce("p4.conditional"):
        put = put_record(model, body)
        yield Step(f"{d.name} records {number}: {_describe_record(body)}", put.with_driver(_recorded(case, d, body)))
        if "record reply lost" in model.faults:
            again = d if rules.enforce("p4.frozen-body") else d._replace(at="idle", plan=None)
            yield Step(
                f"{d.name} records {number}: {_describe_record(body)}, the reply is lost",
                put.after("record reply lost").with_driver(again),
            )
        return
    own = stored is body or (not rules.enforce("p4.frozen-body") and stored.value.attempt == d.name)
    if own and rules.enforce("p4.own-record"):
        yield Step(f"{d.name} records {number}: 412, its own", model.with_driver(_recorded(case, d, body)))
    elif rules.enforce("p4.fenced-stops"):
        yield fenced(case, model, d, f"{d.name} records {number}: 412, it is fenced")
    else:
        yield Step(f"{d.name} records {number}: 412, continues", model.with_driver(_recorded(case, d, body)))


def fenced(case: Case, model: ModelState, d: Driver, label: str) -> Step[ModelState]:
    """A fenced driver stops; it aborts only uploads that it began and never recorded."""
    started = set(d.plan.started) if d.plan else set()
    if not case.rules.enforce("p4.fenced-aborts-own"):
        started |= d.state.value.uploads()
    if not is_fenced(model, d):
        model = model._replace(
            breach=("fenced without claim", f"{d.name} stops, but no other driver has claimed the ledger")
        )
    for upload in sorted(started):
        model = removed(model, d, upload)
    again = starts_again(case, d)
    label = f"{label}{', aborts ' + '/'.join(sorted(started)) if started else ''}{', starts again' if again else ''}"
    return Step(label, model.with_driver(again or Driver(d.name, at="fenced")))


def _recorded(case: Case, d: Driver, body: ledger.Interned[Record]) -> Driver:
    """The driver after its record; next it removes replaced uploads and staging objects."""
    assert d.plan is not None, "there was something to record"
    state = ledger.after(d.state, body)
    acknowledged = body.value.acknowledged
    todo = (*_superseded(case, d.state.value, state.value), *d.plan.replaced)
    if d.then == "discard open":
        return discarded(d, state, body.value.number)
    if d.then == "record losses":
        return d._replace(at="report", state=state, plan=None)
    d = d._replace(
        state=state, visible=tuple(k for k in d.visible if k not in acknowledged), todo=todo, recorded=body.value.number
    )
    if d.then in ("", "idle", "maintain"):
        d = d._replace(
            then="maintain" if body.value.number - state.value.audited_to >= case.snapshot_every > 0 else "idle"
        )
    if d.plan is not None and d.plan.staging and not case.rules.enforce("p6.staged-first"):
        return d._replace(at="stage", numbers=(0,), todo=())
    return d._replace(at="sweep" if todo else "publish", plan=None)


def _superseded(case: Case, before: LedgerState, after: LedgerState) -> list[str]:
    """The staging objects that no object refers to; without `p6.still-referenced`, those that one object has
    released."""
    if not case.rules.enforce("p10.superseded"):
        return []
    if case.rules.enforce("p6.still-referenced"):
        return superseded_staging(before, after, [str(ledger.TP)])
    kept = {(o.path, extent.name) for p in after.partitions.values() for o in p.open for extent in o.staged}
    named = ((o.path, extent.name) for p in before.partitions.values() for o in p.open for extent in o.staged)
    return sorted({name for path, name in named if (path, name) not in kept})


def discarded(d: Driver, state: ledger.Interned[LedgerState], number: int) -> Driver:
    """A command after the record that discards open objects: it removes their bytes one by one."""
    assert d.plan is not None, "there was something to record"
    todo = (*d.plan.replaced, *sorted(d.state.value.staged() - state.value.staged()))
    d = d._replace(state=state, epoch=state.value.epoch, recorded=number, plan=None, visible=())
    return d._replace(at="remove" if todo else "clean", todo=todo, then="clean" if todo else "offsets of the group")


def sweep(case: Case, model: ModelState, d: Driver) -> Steps:
    """Removes uploads and staging objects that the last record has replaced."""
    for name in d.todo:
        model = removed(model, d, name)
    yield Step(f"{d.name} removes {', '.join(d.todo)}", model.with_driver(d._replace(at="publish", todo=())))


def check_needless(case: Case, model: ModelState, d: Driver, what: str) -> ModelState:
    """Marks a needless rebuild: the case loses no bytes, and the driver is not fenced."""
    if loses(case) or is_fenced(model, d):
        return model
    return model._replace(breach=("needless rebuild", f"{d.name} rebuilds {what}, but nothing was lost"))


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
        "number expires",
        "damaged",
        "deleted",
        "overwritten",
    }
    return not set(case.faults) <= harmless


def staging_name(case: Case, d: Driver, attempt: str = "0") -> str:
    """A name unique to epoch, round and attempt; without `p6.unique-names`, to the round only."""
    number = d.state.value.number + 1
    return f"{d.epoch}.{number}.{attempt}" if case.rules.enforce("p6.unique-names") else f"0.{number}"


def clock(case: Case, d: Driver) -> int:
    """The round's clock: a later one for each driver, or that of the host."""
    if not case.clocks:
        return NAMES.index(d.name)
    host, state = case.clocks[min(ledger.partition(d.state).next, len(case.clocks) - 1)], d.state.value
    waits = ledger.partition(d.state).open and case.rules.enforce("p2.clock-forward")
    return max(host, state.clock) if waits else host


def _plan(case: Case, d: Driver, result: TaskResult) -> Plan:
    body = ledger.step(
        d.state,
        driver=d.name,
        epoch=d.epoch,
        new=result.state,
        closed=result.closed,
        rotations=result.rotations,
        clock=clock(case, d) if case.clocks else None,
        acknowledged=d.visible if case.rules.enforce("p9.observed-visible") else ledger.pending(d.state),
    )
    return Plan(body, staging=result.staging, started=result.started)


def _sent(model: ModelState, result: TaskResult) -> ModelState:
    for upload in result.uploads:
        model = model.with_upload(upload)
    return model


def _describe_uploads(result: TaskResult) -> str:
    uploads = (f"{u.key} as {u.id} ({', '.join(f'{n}={etag}' for n, etag in u.parts)})" for u in result.uploads)
    return "; ".join(uploads) or "nothing"


def _describe_record(body: ledger.Interned[Record]) -> str:
    record = body.value
    change = record.partitions.get(str(ledger.TP))
    parts = [f"next {change.state.next}"] if change else []
    parts += [f"closed {o.key} as {o.upload}" for o in record.closed]
    parts += [f"acknowledged {key}" for key in record.acknowledged]
    parts += [f"lost {each.key}" for each in record.lost]
    return ", ".join(parts) or "nothing"
