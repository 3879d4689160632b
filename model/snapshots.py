"""Snapshots: the published list, the whole state, and then the removal of the records that they cover (P9, P10)."""

from __future__ import annotations

from collections.abc import Iterator

from model import ledger
from model.model_state import Case, Driver, ModelState
from model.search import Step

Steps = Iterator[Step[ModelState]]


def maintain(case: Case, model: ModelState, d: Driver) -> Steps:
    """A snapshot is due: the published list comes first."""
    first = put_published if case.rules.enforce("p10.published-first") else put_snapshot
    yield from first(case, model, d)


def put_published(case: Case, model: ModelState, d: Driver) -> Steps:
    state = d.state.value
    name = (state.audited_to, state.number, ledger.list_of(d.state))
    others = (p for p in model.published if p[:2] != name[:2])
    at = "snapshot" if case.rules.enforce("p10.published-first") else "list old"
    after = d._replace(at=at)
    if at == "list old":
        after = after._replace(state=ledger.snapshot(case.rules, d.state))
    put = model._replace(published=tuple(sorted((*others, name), key=lambda p: p[:2])))
    yield Step(
        f"{d.name} writes the published list {name[0]}-{name[1]}: {'/'.join(o.key for o in state.published)}",
        put.with_driver(after),
    )


def put_snapshot(case: Case, model: ModelState, d: Driver) -> Steps:
    number, kept = d.state.value.number, ledger.snapshot(case.rules, d.state)
    others = (s for s in model.snapshots if s[0] != number)
    put = model._replace(snapshots=tuple(sorted((*others, (number, kept)), key=lambda s: s[0])))
    if case.rules.enforce("p10.published-first"):
        mine = ledger.after_snapshot(d.state)
        after = d._replace(at="list old", state=mine)
    else:
        after = d._replace(at="published")
    yield Step(f"{d.name} writes snapshot {number}", put.with_driver(after))


def list_old(case: Case, model: ModelState, d: Driver) -> Steps:
    """Lists the records that two snapshots cover."""
    snapshots = [n for n, _ in model.snapshots]
    old = ledger.droppable(case.rules, d.state, [n for n, _ in model.records], snapshots)
    gone = ledger.superseded(snapshots)
    names = (*(f"record {n}" for n in sorted(old)), *(f"snapshot {n}" for n in sorted(gone)))
    after = d._replace(at="drop" if names else "clean", todo=names, then="idle", recorded=d.state.value.number)
    yield Step(f"{d.name} lists what to drop: {', '.join(names) or 'nothing'}", model.with_driver(after))


def drop(case: Case, model: ModelState, d: Driver) -> Steps:
    after = model._replace(
        records=tuple(r for r in model.records if f"record {r[0]}" not in d.todo),
        snapshots=tuple(s for s in model.snapshots if f"snapshot {s[0]}" not in d.todo),
    )
    yield Step(f"{d.name} drops {', '.join(d.todo)}", after.with_driver(d._replace(at="clean", todo=())))
