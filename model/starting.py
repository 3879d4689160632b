"""How a driver begins: it reads the ledger, claims it, makes sure of the claim, and later cleans up (P4, P10).

The order of the reads is the sink's own: records are listed before snapshots, and anything may happen in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from model import ledger
from model.model_state import COMMANDS, FOREIGN, NAMES, Case, Driver, World, directory_of, first_of
from model.search import Step
from sink_job.ledger.sequence import Chain
from sink_job.ledger.state import LedgerState, Record

Steps = Iterator[Step[World]]


def begin(case: Case, world: World, d: Driver) -> Steps:
    if case.commands and all(other.at == "asked" for other in world.drivers if other.name in COMMANDS):
        return
    yield Step(f"{d.name} starts", world.with_driver(d._replace(at="list records")))


def list_records(case: Case, world: World, d: Driver) -> Steps:
    if case.reads_at_once:
        chain = ledger.choose(case.rules, [n for n, _ in world.records], [n for n, _ in world.snapshots])
        assert chain is not None, "no record is lost in these cases"
        yield from read(case, world, d._replace(numbers=tuple(chain)))
        return
    numbers = tuple(n for n, _ in world.records)
    yield Step(f"{d.name} lists records {numbers}", world.with_driver(d._replace(at="list snapshots", numbers=numbers)))


def list_snapshots(case: Case, world: World, d: Driver) -> Steps:
    snapshots = tuple(n for n, _ in world.snapshots)
    chain = ledger.choose(case.rules, d.numbers, snapshots)
    if chain is None:
        yield Step(f"{d.name} lists snapshots {snapshots}: a gap, lists again", world.with_driver(_again(case, d)))
    else:
        reads = d._replace(at="read", numbers=tuple(chain))
        yield Step(f"{d.name} lists snapshots {snapshots}", world.with_driver(reads))


def read(case: Case, world: World, d: Driver) -> Steps:
    chain = Chain(*d.numbers)
    careful = case.rules.say("p4.check-gap") and case.rules.say("p4.above-snapshot")
    try:
        state = (
            ledger.read(world.records, world.snapshots, chain)
            if careful
            else ledger.read_carelessly(case.rules, world.records, world.snapshots, chain)
        )
    except KeyError:
        yield Step(f"{d.name} can make no sense of the ledger", world.with_driver(Driver(d.name, at="broken")))
        return
    if state is None:
        yield Step(f"{d.name} reads the ledger: something was dropped, lists again", world.with_driver(_again(case, d)))
        return
    d = d._replace(state=state, numbers=(), epoch=chain.head + 1, recorded=chain.head + 1)
    if not case.rules.say("p4.claim-first") and state.value.partitions:
        after = _goes_to_work(case, d)
    elif not case.rules.say("p10.after-claim"):
        after = d._replace(at="clean", then="claim")
    else:
        after = d._replace(at="claim")
    yield Step(f"{d.name} reads the ledger up to record {chain.head}", world.with_driver(after))


def claim(case: Case, world: World, d: Driver) -> Steps:
    record = ledger.claim(d.state, d.name)
    number = record.value.number
    if d.name in COMMANDS and not case.rules.say("reset.claims-first"):
        d = d._replace(epoch=d.state.value.epoch, recorded=d.state.value.number)
        yield Step(f"{d.name} claims nothing", world.with_driver(_goes_to_work(case, d)))
        return
    if number in dict(world.records) and case.rules.say("p4.conditional"):
        yield Step(f"{d.name} claims {number}: taken, lists again", world.with_driver(_again(case, d, claimed=True)))
        return
    d = d._replace(state=ledger.after(d.state, record), epoch=number, recorded=number)
    after = (
        d._replace(at="check records")
        if case.rules.say("p4.then-acts")
        else d._replace(at="clean", then="check records")
    )
    if case.reads_at_once and case.rules.say("p4.then-acts"):
        after = _goes_to_work(case, d)
    yield Step(f"{d.name} claims {number}", put_record(world, record).with_driver(after))


def check_records(case: Case, world: World, d: Driver) -> Steps:
    numbers = tuple(n for n, _ in world.records)
    after = d._replace(at="check snapshots", numbers=numbers)
    yield Step(f"{d.name} lists records {numbers} again", world.with_driver(after))


def check_snapshots(case: Case, world: World, d: Driver) -> Steps:
    snapshots = tuple(n for n, _ in world.snapshots)
    if ledger.is_head(case.rules, d.epoch, d.numbers, snapshots):
        after = _goes_to_work(case, d._replace(numbers=()))
        yield Step(f"{d.name} lists snapshots {snapshots}: {d.epoch} is the head", world.with_driver(after))
    else:
        label = f"{d.name} lists snapshots {snapshots}: {d.epoch} is not the head, lists again"
        yield Step(label, world.with_driver(_again(case, d, claimed=True)))


def clean(case: Case, world: World, d: Driver) -> Steps:
    """Lists what to remove; `remove` does it, one by one."""
    uploads, staging = litter(case, world, d.state, d.epoch, d.recorded)
    after = d._replace(at="remove", todo=(*uploads, *staging))
    yield Step(
        f"{d.name} lists uploads and staging objects: {', '.join(after.todo) or 'nothing'} to remove",
        _goes_on(world, after),
    )


def remove(case: Case, world: World, d: Driver) -> Steps:
    name, left = d.todo[0], d.todo[1:]
    yield Step(f"{d.name} removes {name}", _goes_on(removed(world, d, name), d._replace(todo=left)))


def litter(
    case: Case, world: World, state: ledger.Kept[LedgerState], epoch: int, recorded: int
) -> tuple[list[str], list[str]]:
    """What a driver of this epoch may remove: uploads and staging objects that began before `recorded` (P10)."""
    rules = case.rules
    named, staged = state.value.uploads(), state.value.staged()
    folders = {ledger.below(text) for text in state.value.settings.values()}
    folders |= {ledger.below(text) for *_, settings in world.intents for text in settings}
    uploads = [
        u.id
        for u in world.uploads
        if (u.id not in named or not rules.say("p10.not-named"))
        and (u.began < recorded or not rules.say("p10.began-before"))
        and (_could_have_opened(world, u.key, folders) or not rules.say("p10.could-have-opened"))
    ]
    staging = [
        name for name, _ in world.staging if name not in staged and _is_past(case, name, epoch, state.value.number)
    ]
    return uploads, staging


def _could_have_opened(world: World, key: str, folders: Collection[str]) -> bool:
    first = first_of(key)
    within = first is not None and any(start <= first < end for _, start, end, _ in world.intents)
    return within and directory_of(key) in folders


def _is_past(case: Case, name: str, epoch: int, recorded: int) -> bool:
    of_epoch, of_round = (int(n) for n in name.split(".")[:2])
    if of_epoch == epoch:
        return of_round <= recorded and case.rules.say("p10.superseded")
    return of_epoch < epoch or not case.rules.say("p10.lower-epochs")


def removed(world: World, d: Driver, name: str) -> World:
    """The world without an upload or a staging object; a breach when the ledger names it."""
    true = ledger.truth(world.records, world.snapshots)
    there = world.upload(name) is not None or world.staged(name) is not None
    if there and true is not None and name in true.value.uploads() | true.value.staged():
        world = world._replace(breach=("named removed", f"{d.name} removes {name}, which the ledger names"))
    if name == FOREIGN:
        world = world._replace(breach=("foreign harmed", f"{d.name} aborts somebody else's upload"))
    return world.without_upload(name).without_staging(name)


def put_record(world: World, record: ledger.Kept[Record]) -> World:
    others = tuple(r for r in world.records if r[0] != record.value.number)
    if record.value.reset is not None:
        world = world._replace(resets=(*world.resets, record.value.reset.nonce or ""))
    return world._replace(records=tuple(sorted((*others, (record.value.number, record)), key=lambda r: r[0])))


def _again(case: Case, d: Driver, *, claimed: bool = False) -> Driver:
    """Starts over. All but the last driver give up when their claim came to nothing twice: so there is an end to it."""
    failed = d.failed + claimed
    if failed > 1 and d.name != NAMES[case.drivers - 1]:
        return Driver(d.name, at="fenced")
    return Driver(d.name, at="list records", begun=d.begun, failed=failed, generation=d.generation, then=_asked(d))


def _asked(d: Driver) -> str:
    """What a command is about to do keeps, however often it starts over."""
    return d.then if d.name in COMMANDS else ""


def is_fenced(world: World, d: Driver) -> bool:
    """Whether another driver has claimed the ledger since, known to this one or not."""
    true = ledger.truth(world.records, world.snapshots)
    return true is None or true.value.epoch != d.epoch


def after_done(case: Case, world: World, d: Driver) -> Steps:
    """The last driver is started again when a command came after it: there may be more to copy."""
    again = starts_again(case, d) if is_fenced(world, d) else None
    if again:
        yield Step(f"{d.name} starts again", world.with_driver(again))


def starts_again(case: Case, d: Driver) -> Driver | None:
    """The last driver after a command has fenced it: somebody starts it again."""
    if not case.commands or d.name != NAMES[case.drivers - 1]:
        return None
    return Driver(d.name, at="list records", begun=d.begun)


def _goes_to_work(case: Case, d: Driver) -> Driver:
    """What is named is published first, then the litter is removed; `case.cleans_first`: the other way round."""
    if d.name in COMMANDS:
        return _takes(case, d)
    visible = () if case.rules.say("p9.recovery-publishes") else tuple(ledger.pending(d.state))
    at, then = ("clean", "publish") if case.cleans_first else ("publish", "clean")
    return d._replace(at=at, then=then, visible=visible)


def _takes(case: Case, d: Driver) -> Driver:
    """A command under its claim: of a request that was carried out it only does what may be left to do."""
    if d.then == "repeat":
        return d._replace(at="clean", then="offsets of the group")
    is_other = d.state.value.generation != d.generation and case.command(d.name).kind == "reset"
    if is_other and case.rules.say("reset.another-meanwhile"):
        return Driver(d.name, at="refused")
    published_first = case.rules.say("reset.published-first")
    return d._replace(at="publish" if published_first else "look again", then="look again")


def _goes_on(world: World, d: Driver) -> World:
    if d.todo:
        return world.with_driver(d)
    if d.then == "clean":
        return world.with_driver(d._replace(at="clean", then="offsets of the group"))
    if d.then in ("claim", "check records", "offsets of the group"):
        return world.with_driver(d._replace(at=d.then, then=""))
    if d.then == "publish":
        return world.with_driver(d._replace(at="publish", then="idle"))
    return world.with_driver(d._replace(at="idle", then=""))
