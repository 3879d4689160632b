"""The start of a driver: it reads the ledger, claims it, confirms the claim, and later cleans up (P4, P10).

The order of the reads is that of the sink: it lists records before snapshots. Other steps can happen in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from model import ledger
from model.model_state import COMMANDS, FOREIGN, NAMES, Case, Driver, ModelState, directory_of, first_of
from model.search import Step
from sink_job.ledger.sequence import Chain
from sink_job.ledger.state import LedgerState, Record

Steps = Iterator[Step[ModelState]]


def begin(case: Case, model: ModelState, d: Driver) -> Steps:
    if case.commands and all(other.at == "requested" for other in model.drivers if other.name in COMMANDS):
        return
    yield Step(f"{d.name} starts", model.with_driver(d._replace(at="list records")))


def list_records(case: Case, model: ModelState, d: Driver) -> Steps:
    if case.reads_at_once:
        chain = ledger.choose(case.rules, [n for n, _ in model.records], [n for n, _ in model.snapshots])
        assert chain is not None, "no record is lost in these cases"
        yield from read(case, model, d._replace(numbers=tuple(chain)))
        return
    numbers = tuple(n for n, _ in model.records)
    yield Step(f"{d.name} lists records {numbers}", model.with_driver(d._replace(at="list snapshots", numbers=numbers)))


def list_snapshots(case: Case, model: ModelState, d: Driver) -> Steps:
    snapshots = tuple(n for n, _ in model.snapshots)
    chain = ledger.choose(case.rules, d.numbers, snapshots)
    if chain is None:
        yield Step(f"{d.name} lists snapshots {snapshots}: a gap, lists again", model.with_driver(_again(case, d)))
    else:
        reads = d._replace(at="read", numbers=tuple(chain))
        yield Step(f"{d.name} lists snapshots {snapshots}", model.with_driver(reads))


def read(case: Case, model: ModelState, d: Driver) -> Steps:
    chain = Chain(*d.numbers)
    careful = case.rules.enforce("p4.check-gap") and case.rules.enforce("p4.above-snapshot")
    try:
        state = (
            ledger.read(model.records, model.snapshots, chain)
            if careful
            else ledger.read_carelessly(case.rules, model.records, model.snapshots, chain)
        )
    except KeyError:
        yield Step(f"{d.name} finds a contradiction in the ledger", model.with_driver(Driver(d.name, at="broken")))
        return
    if state is None:
        yield Step(f"{d.name} reads the ledger: a file was dropped, lists again", model.with_driver(_again(case, d)))
        return
    d = d._replace(state=state, numbers=(), epoch=chain.head + 1, recorded=chain.head + 1)
    if not case.rules.enforce("p4.claim-first") and state.value.partitions:
        after = _begins_work(case, d)
    elif not case.rules.enforce("p10.after-claim"):
        after = d._replace(at="clean", then="claim")
    else:
        after = d._replace(at="claim")
    yield Step(f"{d.name} reads the ledger up to record {chain.head}", model.with_driver(after))


def claim(case: Case, model: ModelState, d: Driver) -> Steps:
    record = ledger.claim(d.state, d.name)
    number = record.value.number
    rule = "loss.claim" if d.name in COMMANDS and case.command(d.name).kind == "accept" else "reset.claims-first"
    if d.name in COMMANDS and not case.rules.enforce(rule):
        d = d._replace(epoch=d.state.value.epoch, recorded=d.state.value.number)
        yield Step(f"{d.name} claims nothing", model.with_driver(_begins_work(case, d)))
        return
    if number in dict(model.records) and case.rules.enforce("p4.conditional"):
        yield Step(f"{d.name} claims {number}: taken, lists again", model.with_driver(_again(case, d, claimed=True)))
        return
    d = d._replace(state=ledger.after(d.state, record), epoch=number, recorded=number)
    after = (
        d._replace(at="check records")
        if case.rules.enforce("p4.acts-after-check")
        else d._replace(at="clean", then="check records")
    )
    if case.reads_at_once and case.rules.enforce("p4.acts-after-check"):
        after = _begins_work(case, d)
    yield Step(f"{d.name} claims {number}", put_record(model, record).with_driver(after))


def check_records(case: Case, model: ModelState, d: Driver) -> Steps:
    numbers = tuple(n for n, _ in model.records)
    after = d._replace(at="check snapshots", numbers=numbers)
    yield Step(f"{d.name} lists records {numbers} again", model.with_driver(after))


def check_snapshots(case: Case, model: ModelState, d: Driver) -> Steps:
    snapshots = tuple(n for n, _ in model.snapshots)
    if ledger.is_head(case.rules, d.epoch, d.numbers, snapshots):
        after = _begins_work(case, d._replace(numbers=()))
        yield Step(f"{d.name} lists snapshots {snapshots}: {d.epoch} is the head", model.with_driver(after))
    else:
        label = f"{d.name} lists snapshots {snapshots}: {d.epoch} is not the head, lists again"
        yield Step(label, model.with_driver(_again(case, d, claimed=True)))


def clean(case: Case, model: ModelState, d: Driver) -> Steps:
    """Lists orphaned uploads and staging objects; `remove` removes them one by one."""
    uploads, staging = orphans(case, model, d.state, d.epoch, d.recorded)
    after = d._replace(at="remove", todo=(*uploads, *staging))
    yield Step(
        f"{d.name} lists uploads and staging objects: {', '.join(after.todo) or 'nothing'} to remove",
        _continues(model, after),
    )


def remove(case: Case, model: ModelState, d: Driver) -> Steps:
    name, left = d.todo[0], d.todo[1:]
    yield Step(f"{d.name} removes {name}", _continues(removed(model, d, name), d._replace(todo=left)))


def orphans(
    case: Case, model: ModelState, state: ledger.Interned[LedgerState], epoch: int, recorded: int
) -> tuple[list[str], list[str]]:
    """The orphans that a driver of this epoch can remove: uploads and staging objects that began before `recorded`
    (P10)."""
    rules = case.rules
    named, staged = state.value.uploads(), state.value.staged()
    folders = {ledger.below(text) for text in state.value.settings.values()}
    folders |= {ledger.below(text) for *_, settings in model.intents for text in settings}
    uploads = [
        u.id
        for u in model.uploads
        if (u.id not in named or not rules.enforce("p10.unreferenced"))
        and (u.began < recorded or not rules.enforce("p10.started-before"))
        and (_could_have_opened(model, u.key, folders) or not rules.enforce("p10.could-have-opened"))
    ]
    staging = [
        name for name, _ in model.staging if name not in staged and _is_past(case, name, epoch, state.value.number)
    ]
    return uploads, staging


def _could_have_opened(model: ModelState, key: str, folders: Collection[str]) -> bool:
    first = first_of(key)
    within = first is not None and any(start <= first < end for _, start, end, _ in model.intents)
    return within and directory_of(key) in folders


def _is_past(case: Case, name: str, epoch: int, recorded: int) -> bool:
    of_epoch, of_round = (int(n) for n in name.split(".")[:2])
    if of_epoch == epoch:
        return of_round <= recorded and case.rules.enforce("p10.superseded")
    return of_epoch < epoch or not case.rules.enforce("p10.lower-epochs")


def removed(model: ModelState, d: Driver, name: str) -> ModelState:
    """The state without an upload or a staging object; a breach if the ledger names it."""
    true = ledger.truth(model.records, model.snapshots)
    there = model.upload(name) is not None or model.staged(name) is not None
    if there and true is not None and name in true.value.uploads() | true.value.staged():
        model = model._replace(breach=("removed in use", f"{d.name} removes {name}, which the ledger names"))
    if name == FOREIGN:
        model = model._replace(breach=("foreign changed", f"{d.name} aborts a foreign upload"))
    return model.without_upload(name).without_staging(name)


def put_record(model: ModelState, record: ledger.Interned[Record]) -> ModelState:
    others = tuple(r for r in model.records if r[0] != record.value.number)
    if record.value.reset is not None:
        model = model._replace(resets=(*model.resets, record.value.reset.nonce or ""))
    return model._replace(records=tuple(sorted((*others, (record.value.number, record)), key=lambda r: r[0])))


def _again(case: Case, d: Driver, *, claimed: bool = False) -> Driver:
    """Starts over. A driver other than the last one stops after two failed claims, which bounds the search."""
    failed = d.failed + claimed
    if failed > 1 and d.name != NAMES[case.drivers - 1]:
        return Driver(d.name, at="fenced")
    return Driver(d.name, at="list records", started=d.started, failed=failed, generation=d.generation, then=_asked(d))


def _asked(d: Driver) -> str:
    """A command keeps its next position when it starts over."""
    return d.then if d.name in COMMANDS else ""


def is_fenced(model: ModelState, d: Driver) -> bool:
    """Whether another driver has claimed the ledger since; this driver may not know it."""
    true = ledger.truth(model.records, model.snapshots)
    return true is None or true.value.epoch != d.epoch


def after_done(case: Case, model: ModelState, d: Driver) -> Steps:
    """The last driver starts again after a command, since more records may have to be copied."""
    again = starts_again(case, d) if is_fenced(model, d) else None
    if again:
        yield Step(f"{d.name} starts again", model.with_driver(again))


def starts_again(case: Case, d: Driver) -> Driver | None:
    """The last driver after a command has fenced it: a user starts it again."""
    if not case.commands or d.name != NAMES[case.drivers - 1]:
        return None
    return Driver(d.name, at="list records", started=d.started)


def _begins_work(case: Case, d: Driver) -> Driver:
    """Publishes closed objects, then removes orphans; with `case.cleans_first` in the reverse order."""
    if d.name in COMMANDS:
        return _takes(case, d)
    visible = () if case.rules.enforce("p9.recovery-publishes") else tuple(ledger.pending(d.state))
    at, then = ("clean", "publish") if case.cleans_first else ("publish", "clean")
    return d._replace(at=at, then=then, visible=visible)


def _takes(case: Case, d: Driver) -> Driver:
    """A command under its claim. For a request that was carried out it only finishes the remaining work."""
    if d.then == "repeat":
        return d._replace(at="clean", then="offsets of the group")
    if case.command(d.name).kind == "accept":
        return d._replace(at="accept" if d.state.value.generation == d.generation else "rejected")
    is_other = d.state.value.generation != d.generation and case.command(d.name).kind == "reset"
    if is_other and case.rules.enforce("reset.concurrent-reset"):
        return Driver(d.name, at="rejected")
    published_first = case.rules.enforce("reset.published-first")
    return d._replace(at="publish" if published_first else "check again", then="check again")


def _continues(model: ModelState, d: Driver) -> ModelState:
    if d.todo:
        return model.with_driver(d)
    if d.then == "clean":
        return model.with_driver(d._replace(at="clean", then="offsets of the group"))
    if d.then in ("claim", "check records", "offsets of the group"):
        return model.with_driver(d._replace(at=d.then, then=""))
    if d.then == "publish":
        return model.with_driver(d._replace(at="publish", then="idle"))
    return model.with_driver(d._replace(at="idle", then=""))
