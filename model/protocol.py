"""The whole model: every step that any driver, command or fault may take next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from model import commands, faults, ledger, publishing, rounds, snapshots, starting
from model.initial_states import begin
from model.invariants import broken
from model.model_state import COMMANDS, NAMES, Case, Driver, World
from model.search import Outcome, Search, Step

PROGRAM: dict[str, Callable[[Case, World, Driver], Iterator[Step[World]]]] = {
    "off": starting.begin,
    "list records": starting.list_records,
    "list snapshots": starting.list_snapshots,
    "read": starting.read,
    "claim": starting.claim,
    "check records": starting.check_records,
    "check snapshots": starting.check_snapshots,
    "clean": starting.clean,
    "remove": starting.remove,
    "idle": publishing.idle,
    "write": rounds.write,
    "stage": rounds.stage,
    "record": rounds.record,
    "sweep": rounds.sweep,
    "maintain": snapshots.maintain,
    "published": snapshots.put_published,
    "snapshot": snapshots.put_snapshot,
    "list old": snapshots.list_old,
    "drop": snapshots.drop,
    "publish": publishing.publish,
    "head gone": publishing.head,
    "head taken": publishing.head,
    "head unusable": publishing.head,
    "lost": publishing.lost,
    "commit": publishing.commit,
    "done": starting.after_done,
    "asked": commands.asked,
    "look again": commands.look_again,
    "intend": commands.intend,
    "give up": commands.give_up,
    "offsets of the group": commands.offsets,
    "tell": commands.tell,
}
"""What a driver does next, by where it is. It has ended in any other place: fenced, conflict, refused, told."""

LIMIT = 400_000


def steps(case: Case, world: World) -> Iterator[Step[World]]:
    rests = case.alone and commands.at_work(world)
    for d in world.drivers:
        program = PROGRAM.get(d.at)
        if program and (d.name in COMMANDS or not rests):
            yield from program(case, world, d)
    if case.alone:
        yield from commands.killed(world)
    yield from faults.happen(case, world)


def ended(case: Case, world: World) -> bool:
    """Whether a driver has finished: with everything visible, or rightly stopped before what somebody else has done."""
    for d in world.drivers:
        if (d.at == "done" and not (case.commands and starting.is_fenced(world, d))) or (
            d.at == "conflict" and case.foreign
        ):
            return True
        if (
            d.at == "list records"
            and "record lost" in case.faults
            and ledger.truth(world.records, world.snapshots) is None
        ):
            return True
    return False


def explore(case: Case, *, only: str | None = None, limit: int = LIMIT) -> Outcome:
    """Searches everything that can happen in a case, for any invariant that does not hold, or for `only` one.

    The last driver must be able to finish by itself, whatever has become of the others (where each may be the last to
    claim: some driver must).
    """
    return Search[World](
        steps=lambda world: steps(case, world),
        broken=lambda world: next((b for b in broken(case, world) if only in (None, b[0])), None),
        ended=lambda world: only not in (None, "stuck") or ended(case, world),
        relied_on=lambda label: (
            case.claiming
            or case.drivers > 2
            or label.startswith(NAMES[case.drivers - 1])
            or " is asked " in label
            or " is killed" in label
        ),
        limit=limit,
    ).run(begin(case))
